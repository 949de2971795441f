use std::time::{Duration, Instant};

use oorandom::Rand64;

use super::*;
use crate::mlir::Location;

fn error(text: &str) -> String {
    parse(text).map(drop).unwrap_err().to_string()
}

/// The body of a function of two tensors.
fn body(text: &str) -> Result<Module> {
    parse(&format!("func.func @f(%x: tensor<2xf32>, %y: tensor<2xf32>) {{\n{text}\nreturn\n}}\n"))
}

fn body_error(text: &str) -> String {
    body(text).map(drop).unwrap_err().to_string()
}

#[test]
fn errors_say_what_was_expected_and_where() {
    for (text, expected) in [
        (
            "%0 = stablehlo.add %x, %z : tensor<2xf32>",
            "2:24: invalid argument: `%z` is not defined here",
        ),
        (
            "%0 = stablehlo.iota dim 0 : tensor<2xi32>",
            "2:25: invalid argument: expected `=`, found `0`",
        ),
        (
            "%0 = \"stablehlo.add\"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>",
            "2:6: invalid argument: operand 1 is of type tensor<2xf32>, but is said to be tensor<3xf32>",
        ),
        (
            "%0:3 = stablehlo.tanh %x : tensor<2xf32>",
            "2:26: invalid argument: 1 types for 3 results",
        ),
        (
            "%0 = tosa.add %x, %y : tensor<2xf32>",
            "2:6: invalid argument: unknown operation `tosa.add`",
        ),
        (
            "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi8>",
            "2:30: invalid argument: elements of sizes [3] for tensor<2xi8>",
        ),
        (
            "%0 = stablehlo.constant dense<[1, 300]> : tensor<2xi8>",
            "2:35: invalid argument: `300` is no value of i8",
        ),
        (
            "%0 = stablehlo.constant dense<\"0x01\"> : tensor<2xi32>",
            "2:30: invalid argument: 1 bytes for tensor<2xi32>, which needs 2 times 4",
        ),
        ("%x = stablehlo.tanh %x : tensor<2xf33>", "2:35: invalid argument: unknown type `f33`"),
    ] {
        assert_eq!(body_error(text), expected, "{text}");
    }
}

#[test]
fn aliases_may_follow_their_uses_but_not_refer_to_themselves() {
    let module = parse(
        "func.func @f() {\n  return loc(#loc1)\n} loc(#loc)\n\
         #loc = loc(\"f.py\":3:4)\n#loc1 = loc(\"jit(f)/add\"(#loc))\n",
    )
    .unwrap();
    let end = &module.operations[0].regions[0].blocks[0].operations[0];
    let Location::Name { name, child } = &module.locations[end.location.0 as usize] else {
        panic!("a name")
    };
    assert_eq!(name, "jit(f)/add");
    let file = &module.locations[child.0 as usize];
    assert!(matches!(file, Location::File { line: 3, column: 4, .. }), "{file:?}");
    assert_eq!(
        error(
            "func.func @f() {\n  return loc(#a)\n}\n#a = loc(callsite(#b at #b))\n#b = loc(\"x\"(#a))\n"
        ),
        "5:14: invalid argument: `#a` is defined by itself"
    );
    assert_eq!(
        error("func.func @f() {\n  return loc(#a)\n}\n"),
        "2:14: invalid argument: `#a` is not defined"
    );
}

#[test]
fn nesting_is_limited() {
    let deep = |open: &str, close: &str| {
        format!(
            "%0 = stablehlo.tanh %x {{a = {}1{}}} : tensor<2xf32>",
            open.repeat(1000),
            close.repeat(1000)
        )
    };
    for (open, close) in [("[", "]"), ("{a = ", "}")] {
        assert!(body_error(&deep(open, close)).contains("nested more than 128 deep"));
    }
    let lists = format!("%0 = stablehlo.constant dense<{}", "[".repeat(1000));
    assert!(body_error(&lists).contains("nested more than 128 deep"));
    let types = format!("%0 = stablehlo.tanh %x : {}", "tuple<".repeat(1000));
    assert!(body_error(&types).contains("nested more than 128 deep"));
    let regions = "\"a.b\"() ({\n".repeat(1000);
    assert!(body_error(&regions).contains("nested more than 128 deep"));
    let text = format!("%0 = stablehlo.tanh %x {{a = #sdy.b<{}", "(".repeat(1000));
    assert!(body_error(&text).contains("nested more than 128 deep"));
}

#[test]
fn dense_elements_are_bytes() {
    let bytes = |text: &str| {
        let module = body(&format!("%0 = stablehlo.constant {text}")).unwrap();
        let op = &module.operations[0].regions[0].blocks[0].operations[0];
        match op.attribute("value") {
            Some(Attribute::Dense(dense)) => (dense.bytes.to_vec(), dense.is_splat),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(bytes("dense<[true, false]> : tensor<2xi1>"), (vec![1, 0], false));
    assert_eq!(bytes("dense<\"0x05\"> : tensor<3xi1>"), (vec![1, 0, 1], false));
    assert_eq!(bytes("dense<-2> : tensor<3xi16>"), (vec![0xfe, 0xff], true));
    assert_eq!(bytes("dense<0x7FC0> : tensor<bf16>"), (vec![0xc0, 0x7f], true));
    let complex = bytes("dense<(1.0, -1.0)> : tensor<2xcomplex<f32>>");
    assert_eq!(complex, (vec![0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf], true));
    assert_eq!(bytes("dense<[[], []]> : tensor<2x0xi8>"), (vec![], false));
    // Of six bits: sign, exponent, mantissa; ties go to the even mantissa.
    assert_eq!(bytes("dense<[1.0, -7.5, 1.0625]> : tensor<3xf6E2M3FN>").0, [8, 0b111111, 8]);
}

#[test]
fn resources_are_read_before_they_are_used() {
    let module = parse(
        "func.func @f() {\n %0 = stablehlo.constant dense_resource<a> : tensor<2xi8>\n return\n}\n\
         {-#\n  dialect_resources: { builtin: { a: \"0x040000000102\" } }\n#-}\n",
    )
    .unwrap();
    let op = &module.operations[0].regions[0].blocks[0].operations[0];
    let Some(Attribute::Dense(dense)) = op.attribute("value") else { panic!("elements") };
    assert_eq!(&dense.bytes[..], [1, 2]);
}

#[test]
fn modules_are_split() {
    let text = "func.func @a() { return }\n// -----\n\n// // -----\nfunc.func @b(\n";
    assert_eq!(split(text).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [0, 2, 4]);
    let error = parse_all(text).unwrap_err().to_string();
    assert_eq!(error, "6:1: invalid argument: expected a type, found the end of the text");
}

#[test]
fn mutated_programs_give_errors() {
    let text = include_str!("../../tests/programs/forms.mlir");
    parse_all(text).unwrap();
    // `HELIO_MUTANTS` asks for more of them.
    let count = std::env::var("HELIO_MUTANTS").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(3000);
    let mut longest = Duration::ZERO;
    let mut random = Rand64::new(1);
    let mut next = |below: usize| random.rand_range(0..below as u64) as usize;
    let pieces =
        ["%", "#", "<", ">", "(", ")", "{", "[", "]", "x", "?", "\"", "\\", "-", "0x", "é"];
    for _ in 0..count {
        let mut mutant: Vec<char> = text.chars().collect();
        for _ in 0..=next(3) {
            let at = next(mutant.len());
            match next(3) {
                0 => drop(mutant.drain(at..(at + 1 + next(20)).min(mutant.len()))),
                1 => mutant[at] = char::from(32 + next(95) as u8),
                _ => {
                    let piece = pieces[next(pieces.len())].chars();
                    mutant.splice(at..at, piece);
                }
            }
        }
        let mutant: String = mutant.into_iter().collect();
        let begin = Instant::now();
        for module in parse_all(&mutant).into_iter().flatten() {
            let _ = crate::lower(&module);
        }
        longest = longest.max(begin.elapsed());
    }
    println!("{count} mutants; the longest took {longest:?}");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}
