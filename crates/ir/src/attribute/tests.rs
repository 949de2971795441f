use super::*;
use crate::ElementType::{BF16, F32, F64, S32, S64, U8};

fn typed(text: &str) -> Dictionary {
    match BackendConfig::read(text).value() {
        ConfigValue::Typed(attributes) => attributes.clone(),
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn attributes_in_mlirs_notation() {
    let text = r#"{a = 1 : i64, b = "x\22y\0A\\", c = -2.5e-3 : f32, d = true, e = [1 : i32, [], {}],
        f = array<i64: 1, -2>, g = dense<[1.0, 2.0]> : tensor<2xf64>, h = {u = 7 : ui8, "v w" = "é"},
        i = 0x7F80 : bf16, j = 3, k = 1.5, l, m = #foo.bar<[a, b] -> "}">, n = @sym, o = array<i1: true>,
        p = dense<[[1]]> : tensor<1x1xi64>, q = array<f32>}"#;
    let found = typed(text);
    let expected = [
        ("a", Attribute::Integer(1, S64)),
        ("b", Attribute::String("x\"y\n\\".to_owned())),
        ("c", Attribute::Float(-2.5e-3, F32)),
        ("d", Attribute::Bool(true)),
        (
            "e",
            Attribute::List(vec![
                Attribute::Integer(1, S32),
                Attribute::List(vec![]),
                Attribute::Dictionary(Dictionary::default()),
            ]),
        ),
        (
            "f",
            Attribute::Numbers(S64, vec![Attribute::Integer(1, S64), Attribute::Integer(-2, S64)]),
        ),
        ("g", Attribute::Numbers(F64, [1.0, 2.0].map(|v| Attribute::Float(v, F64)).to_vec())),
        (
            "h",
            Attribute::Dictionary(
                Dictionary::new(vec![
                    ("u".to_owned(), Attribute::Integer(7, U8)),
                    ("v w".to_owned(), Attribute::String("é".to_owned())),
                ])
                .unwrap(),
            ),
        ),
        ("i", Attribute::Float(f64::INFINITY, BF16)),
        ("j", Attribute::Integer(3, S64)),
        ("k", Attribute::Float(1.5, F64)),
        ("l", Attribute::Other("unit".to_owned())),
        ("m", Attribute::Other("#foo.bar<[a, b] -> \"}\">".to_owned())),
        ("n", Attribute::Other("@sym".to_owned())),
        ("o", Attribute::Numbers(ElementType::Pred, vec![Attribute::Bool(true)])),
        ("p", Attribute::Other("dense<[[1]]> : tensor<1x1xi64>".to_owned())),
        ("q", Attribute::Numbers(F32, vec![])),
    ];
    assert_eq!(
        found.iter().collect::<Vec<_>>(),
        expected.iter().map(|(n, v)| (*n, v)).collect::<Vec<_>>()
    );
    // What is printed means the same.
    let printed = found.to_string();
    assert_eq!(typed(&printed), found, "{printed}");
    assert_eq!(BackendConfig::typed(found).to_string(), printed);
}

#[test]
fn configurations_are_strings() {
    // As XLA prints them: a quoted dictionary is no other string than one without quotes.
    let kinds = [
        (r#"{"a": [1, 2.5, null, true], "b": {"c": "\u00e9\"}"}}"#, "json"),
        ("{}", "json"),
        ("{ a  =  1 }", "typed"),
        (r#""a \"b\"""#, "opaque"),
        ("{a b}", "braced"),
        ("{a = 1, a = 2}", "braced"),
        (r#"{"a": 1,}"#, "braced"),
        (r#"{"a": 1e999}"#, "braced"),
    ];
    for (text, kind) in kinds {
        let config = BackendConfig::read(text);
        let found = match config.value() {
            ConfigValue::Json(_) => "json",
            ConfigValue::Typed(_) => "typed",
            ConfigValue::Opaque => "opaque",
            ConfigValue::Braced => "braced",
        };
        assert_eq!((found, config.to_string().as_str()), (kind, text));
    }
    for (quoted, text) in
        [(r#""{a = 1 : i64}""#, "{a = 1 : i64}"), (r#""{\"a\": 1}""#, r#"{"a": 1}"#)]
    {
        let config = BackendConfig::read(quoted);
        assert_eq!((config.as_str(), config.to_string().as_str()), (text, text));
        assert_eq!(config, BackendConfig::read(text));
        assert_eq!(config.value(), BackendConfig::of(text).value());
        assert!(config.attributes().is_some());
    }
    assert_eq!(BackendConfig::read(r#""a \"b\"""#).as_str(), "a \"b\"");
    let json = BackendConfig::read(kinds[0].0);
    let json = json.attributes().unwrap();
    assert_eq!(json.dictionary("b").unwrap().string("c").unwrap(), "é\"}");
}

#[test]
fn attributes_of_other_kinds_are_errors() {
    let found = typed("{a = 1 : i64, b = \"x\", c = 18446744073709551615 : ui64}");
    assert_eq!(found.integer("a").unwrap(), 1);
    let error = |error: Error| error.detail().to_owned();
    assert_eq!(
        error(found.string("a").unwrap_err()),
        "attribute `a` must be a string, is an integer: 1 : i64"
    );
    assert!(found.integer("c").is_err());
    assert_eq!(error(found.bool("d").unwrap_err()), "there is no attribute `d`, but `a`, `b`, `c`");
    assert_eq!(
        error(Dictionary::default().float("x").unwrap_err()),
        "there is no attribute `x`, but no other"
    );
}

#[test]
fn nesting_is_limited() {
    for (open, close) in [("[", "]"), ("{a=", "}")] {
        let text = format!("{{a = {}1{}}}", open.repeat(100_000), close.repeat(100_000));
        assert!(BackendConfig::read(&text).to_string() == text);
    }
}
