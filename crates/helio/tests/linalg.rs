//! Custom calls of linear algebra: what they refuse, and matrices in every order.

use helio::{Backend, Client, CompileOptions, Error, Literal};
use helio_linalg::Complex;

/// A call: its target, operands, results and attributes, of matrices of 3 rows and 3 columns.
struct Call {
    target: String,
    operands: Vec<String>,
    results: Vec<String>,
    attributes: &'static str,
}

impl Call {
    fn text(&self) -> String {
        let parameters: Vec<String> = self
            .operands
            .iter()
            .enumerate()
            .map(|(i, shape)| format!("  p{i} = {shape} parameter({i})\n"))
            .collect();
        let names: Vec<String> = (0..self.operands.len()).map(|i| format!("p{i}")).collect();
        let result = match &self.results[..] {
            [one] => one.clone(),
            results => format!("({})", results.join(", ")),
        };
        format!(
            "ENTRY e {{\n{}  ROOT called = {result} custom-call({}), custom_call_target=\"{}\",\n    \
             api_version=API_VERSION_TYPED_FFI, backend_config={{{}}}\n}}",
            parameters.concat(),
            names.join(", "),
            self.target,
            self.attributes
        )
    }

    /// Runs it on these operands.
    fn run(&self, backend: Backend, threads: usize, operands: &[Literal]) -> Literal {
        let text = self.text();
        let mut options = helio::ClientOptions::default();
        options.threads = Some(threads);
        let mut compile = CompileOptions::default();
        compile.backend = backend;
        let module = helio::parse(&text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let program = Client::new(&options).compile(module, &compile);
        let program = program.unwrap_or_else(|e| panic!("{text}: {e:?}"));
        program.run(operands).unwrap_or_else(|e| panic!("{text}: {e:?}"))
    }

    /// Runs it on zeros, on each engine.
    fn outcomes(&self) -> Vec<Result<Literal, Error>> {
        let zeros = |shape: &helio::Shape| match shape.as_array() {
            Some(array) => Literal::Array(helio::Array::zeros(array.clone()).unwrap()),
            None => Literal::Token,
        };
        run(&self.text(), zeros)
    }
}

fn run(text: &str, argument: impl Fn(&helio::Shape) -> Literal) -> Vec<Result<Literal, Error>> {
    [Backend::Cpu, Backend::Interpreter]
        .into_iter()
        .map(|backend| {
            let module = helio::parse(text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            let shape = module.entry().program_shape();
            let arguments: Vec<Literal> = shape.params.iter().map(&argument).collect();
            let mut options = CompileOptions::default();
            options.backend = backend;
            let program = Client::default().compile(module, &options);
            program.unwrap_or_else(|e| panic!("{text}: {e:?}")).run(&arguments)
        })
        .collect()
}

/// Every target, for each type.
fn calls() -> Vec<Call> {
    let mut calls = Vec::new();
    for (letter, ty, real, complex) in [
        ('s', "f32", "f32", "c64"),
        ('d', "f64", "f64", "c128"),
        ('c', "c64", "f32", "c64"),
        ('z', "c128", "f64", "c128"),
    ] {
        let is_complex = ty == complex;
        let matrix = format!("{ty}[2,3,3]");
        let vector = format!("{ty}[2,3]");
        let short = format!("{ty}[2,2]");
        let (reals, few_reals) = (format!("{real}[2,3]"), format!("{real}[2,2]"));
        let vectors = format!("{complex}[2,3,3]");
        let (info, pivots) = ("s32[2]".to_owned(), "s32[2,3]".to_owned());
        let (m, v) = (|| matrix.clone(), || vector.clone());
        let (i, p) = (|| info.clone(), || pivots.clone());
        let values = if is_complex { vec![v()] } else { vec![v(), v()] };
        let orthogonal = if is_complex { "un" } else { "or" };
        let symmetric = if is_complex { "he" } else { "sy" };
        let mut put = |name: &str, operands, results, attributes| {
            let target = format!("lapack_{letter}{name}_ffi");
            calls.push(Call { target, operands, results, attributes });
        };
        put("potrf", vec![m()], vec![m(), i()], "uplo = 76 : ui8");
        put("getrf", vec![m()], vec![m(), p(), i()], "");
        put("geqrf", vec![m()], vec![m(), v()], "");
        put("geqp3", vec![m(), p()], vec![m(), p(), v()], "");
        put(&format!("{orthogonal}gqr"), vec![m(), v()], vec![m()], "");
        let attributes = "left = true, transpose = false";
        put(&format!("{orthogonal}mqr"), vec![m(), v(), m()], vec![m()], attributes);
        for name in ["gesdd", "gesvd"] {
            let results = vec![m(), reals.clone(), m(), m(), i()];
            put(name, vec![m()], results, "mode = 65 : ui8");
        }
        let attributes = "mode = 86 : ui8, uplo = 85 : ui8";
        put(&format!("{symmetric}evd"), vec![m()], vec![m(), reals.clone(), i()], attributes);
        let results = vec![m(), reals, few_reals, short.clone(), i()];
        put(&format!("{symmetric}trd"), vec![m()], results, "uplo = 76 : ui8");
        let results = [&values[..], &[vectors.clone(), vectors, i()]].concat();
        put("geev", vec![m()], results, "compute_left = 86 : ui8, compute_right = 78 : ui8");
        let results = [&[m(), m()], &values[..], &[i(), i()]].concat();
        put("gees", vec![m()], results, "mode = 86 : ui8, sort = 78 : ui8");
        put("gehrd", vec![m()], vec![m(), short, i()], "low = 1 : i32, high = 3 : i32");
        put("gtsv", vec![v(), v(), v(), m()], vec![v(), v(), v(), m(), i()], "");
        let attributes = "side = 76 : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, diag = 85 : ui8";
        put("trsm", vec![m(), m()], vec![m()], attributes);
        let mut put = |target: &str, operands, results| {
            calls.push(Call { target: target.to_owned(), operands, results, attributes: "" });
        };
        put("Qr", vec![m()], vec![m(), v()]);
        put("ProductOfElementaryHouseholderReflectors", vec![m(), v()], vec![m()]);
        put("cholesky_update", vec![m(), v()], vec![m(), v()]);
        put("tridiagonal_solve_perturbed_ffi", vec![v(), v(), v(), m()], vec![m()]);
        let lists = vec![format!("{ty}[4]"), "s32[4]".to_owned(), "s32[4]".to_owned()];
        let operands = [lists, vec![format!("{ty}[5,2]")]].concat();
        put("cpu_csr_sparse_dense_ffi", operands, vec![format!("{ty}[3,2]")]);
    }
    calls
}

#[test]
fn calls_take_what_they_should() {
    for call in calls() {
        for outcome in call.outcomes() {
            assert!(outcome.is_ok(), "{}: {outcome:?}", call.text());
        }
    }
}

/// The call must be refused, in words that name it, and without a panic.
fn expect_refusal(call: &Call) {
    for outcome in call.outcomes() {
        let error = match outcome {
            Err(error) => error.to_string(),
            Ok(_) => panic!("accepted: {}", call.text()),
        };
        assert!(error.contains(&call.target) && error.contains("called"), "{error}");
        assert!(!error.contains("panic"), "{}: {error}", call.text());
    }
}

#[test]
fn other_operands_and_results_are_refused() {
    for mut call in calls() {
        for number in 0..call.operands.len() {
            let given = call.operands[number].clone();
            for other in ["f32[]", "u8[2,3,3]", "f32[3]", "f32[7,7,7]", "f16[2,3]", "s32[1,3]"] {
                if call.target == "cpu_csr_sparse_dense_ffi" && other == "f32[3]" {
                    continue;
                }
                call.operands[number] = other.to_owned();
                expect_refusal(&call);
            }
            call.operands[number] = given;
        }
        for number in 0..call.results.len() {
            let given = call.results[number].clone();
            for other in ["f32[]", "u8[2,3,3]", "pred[2]", "c64[7,7,7]", "token[]"] {
                call.results[number] = other.to_owned();
                expect_refusal(&call);
            }
            call.results[number] = given;
        }
        call.operands.push("f32[]".to_owned());
        expect_refusal(&call);
        call.operands.truncate(call.operands.len() - 2);
        expect_refusal(&call);
    }
}

#[test]
fn other_attributes_are_refused() {
    for mut call in calls().into_iter().filter(|call| !call.attributes.is_empty()) {
        let names: Vec<&str> =
            call.attributes.split(", ").filter_map(|part| part.split(' ').next()).collect();
        call.attributes = "";
        expect_refusal(&call);
        for value in ["\"L\"", "1.5 : f32", "1000 : i64", "-1 : i32", "0 : ui8", "[76 : ui8]"] {
            let all: Vec<String> = names.iter().map(|name| format!("{name} = {value}")).collect();
            call.attributes = all.join(", ").leak();
            expect_refusal(&call);
        }
    }
}

fn floats(literal: &Literal) -> Vec<f32> {
    literal.leaves()[0].as_array().unwrap().as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn rows_or_columns_give_the_same() {
    let text = |layout: &str, constraint: &str| {
        format!(
            "ENTRY e {{ a = f32[2,2,3] parameter(0)
               r = (f32[2,2,3]{layout}, f32[2,2]{{1,0}}) custom-call(a),
                 custom_call_target=\"lapack_sgeqrf_ffi\"{constraint}
               ROOT q = f32[2,2,3] get-tuple-element(r), index=0 }}"
        )
    };
    let values: Vec<f32> = (0u8..12).map(|i| f32::from(i * i % 7)).collect();
    let outcome = |text: String| -> Vec<Vec<f32>> {
        let a = |_: &helio::Shape| Literal::array([2, 2, 3], values.clone()).unwrap();
        run(&text, a).into_iter().map(|outcome| floats(&outcome.unwrap())).collect()
    };
    let by_rows = outcome(text("", ""));
    for layout in ["{1,2,0}", "{2,1,0}"] {
        let constraint = format!(", operand_layout_constraints={{f32[2,2,3]{layout}}}");
        assert_eq!(outcome(text(layout, &constraint)), by_rows);
    }
    let constraint = ", operand_layout_constraints={f32[2,2,3]{0,1,2}}";
    let odd = text("{2,1,0}", constraint);
    let a = |_: &helio::Shape| Literal::array([2, 2, 3], values.clone()).unwrap();
    for outcome in run(&odd, a) {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("by rows or by columns"), "{error}");
    }
}

#[test]
fn users_replace_functions() {
    let client = Client::default();
    client.custom_calls().register("lapack_spotrf_ffi", |call| {
        call.result_mut(0)?.as_mut_slice::<f32>()?.fill(7.0);
        Ok(())
    });
    let text = "ENTRY e { a = f32[1,1] parameter(0)
      ROOT r = f32[1,1] custom-call(a), custom_call_target=\"lapack_spotrf_ffi\" }";
    let program = client.compile(helio::parse(text).unwrap(), &CompileOptions::default()).unwrap();
    let a = Literal::array([1, 1], vec![4f32]).unwrap();
    assert_eq!(floats(&program.run(&[a]).unwrap()), [7.0]);
    assert!(program.warnings().is_empty());
}

#[test]
fn a_large_batch_is_the_same_for_any_number_of_threads() {
    let text = "ENTRY e { a = f32[500,6,6] parameter(0)
      b = f32[500,6,6] transpose(a), dimensions={0,2,1}
      s = f32[500,6,6] add(a, b)
      r = (f32[500,6,6], f32[500,6], s32[500]) custom-call(s),
        custom_call_target=\"lapack_ssyevd_ffi\",
        backend_config={mode = 86 : ui8, uplo = 76 : ui8}
      ROOT v = f32[500,6,6] get-tuple-element(r), index=0 }";
    let mut random = oorandom::Rand32::new(7);
    let values: Vec<f32> = (0..500 * 36).map(|_| random.rand_float() - 0.5).collect();
    let a = Literal::array([500, 6, 6], values).unwrap();
    let of_threads = |threads| {
        let mut options = helio::ClientOptions::default();
        options.threads = Some(threads);
        let client = Client::new(&options);
        let module = helio::parse(text).unwrap();
        let program = client.compile(module, &CompileOptions::default()).unwrap();
        floats(&program.run(std::slice::from_ref(&a)).unwrap())
    };
    assert_eq!(of_threads(1), of_threads(3));
}

/// The elements of the arrays of a result, complex ones as two, as wide as can be.
fn numbers(literal: &Literal) -> Vec<f64> {
    let mut all = Vec::new();
    for leaf in literal.leaves() {
        let array = leaf.as_array().unwrap();
        if let Some(values) = array.as_slice::<f64>() {
            all.extend(values);
        } else if let Some(values) = array.as_slice::<f32>() {
            all.extend(values.iter().map(|&v| f64::from(v)));
        } else if let Some(values) = array.as_slice::<i32>() {
            all.extend(values.iter().map(|&v| f64::from(v)));
        } else if let Some(values) = array.as_slice::<Complex<f32>>() {
            all.extend(values.iter().flat_map(|v| [f64::from(v.re), f64::from(v.im)]));
        } else {
            let values = array.as_slice::<Complex<f64>>().unwrap();
            all.extend(values.iter().flat_map(|v| [v.re, v.im]));
        }
    }
    all
}

/// An array of this type and dimensions: small numbers, and a large one in each row of each matrix, where
/// `large` says for the number of the row.
fn matrices(ty: &str, dims: &[usize], large: impl Fn(usize) -> usize) -> Literal {
    let [.., rows, columns] = *dims else { panic!("no matrices") };
    let mut random = oorandom::Rand64::new(11);
    let count: usize = dims.iter().product();
    let mut next = |i: usize| {
        let small = random.rand_float() - 0.5;
        let (row, column) = (i / columns % rows, i % columns);
        if column == large(row) { small + 2.0 * rows.max(columns) as f64 } else { small }
    };
    let parts = |v: f64| (v, if v > 1.0 { 0.0 } else { v * v });
    let values: Vec<f64> = (0..count).map(&mut next).collect();
    match ty {
        "f32" => Literal::array(dims, values.iter().map(|&v| v as f32).collect::<Vec<_>>()),
        "f64" => Literal::array(dims, values),
        "c64" => {
            let of = |(re, im): (f64, f64)| Complex { re: re as f32, im: im as f32 };
            Literal::array(dims, values.iter().map(|&v| of(parts(v))).collect::<Vec<_>>())
        }
        _ => {
            let of = |(re, im): (f64, f64)| Complex { re, im };
            Literal::array(dims, values.iter().map(|&v| of(parts(v))).collect::<Vec<_>>())
        }
    }
    .unwrap()
}

/// Kernels on arrays where they lie must give what the host's function does, which the interpreter calls: on
/// one thread and on several the same.
fn expect_same(call: &Call, arguments: &[Literal]) {
    let text = call.text();
    let [one, two] = [1, 2].map(|threads| call.run(Backend::Cpu, threads, arguments));
    let host = numbers(&call.run(Backend::Interpreter, 1, arguments));
    let [one, two] = [one, two].map(|result| numbers(&result));
    let is_double = text.contains("f64") || text.contains("c128");
    let tolerance = if is_double { 1e-11 } else { 2e-4 };
    let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&one), bits(&two), "{text}");
    assert_eq!(one.len(), host.len());
    let scale = host.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
    for (i, (&x, &y)) in one.iter().zip(&host).enumerate() {
        assert!((x - y).abs() <= tolerance * scale, "{text}\nelement {i}: {x}, the host's {y}");
    }
}

const TYPES: [(char, &str); 4] = [('s', "f32"), ('d', "f64"), ('c', "c64"), ('z', "c128")];

#[test]
fn triangular_systems_are_solved_as_the_host_does() {
    for (letter, ty) in TYPES {
        for (batch, order, free) in [
            (1, 1, 1),
            (3, 2, 5),
            (2, 13, 1),
            (2, 31, 4),
            (1, 64, 64),
            (2, 65, 33),
            (1, 63, 2),
            (1, 130, 3),
        ] {
            for bits in 0..8 {
                let [left, lower, unit] = [1, 2, 4].map(|bit| bits & bit != 0);
                for transpose in ['N', 'T', 'C'] {
                    let dims = if left { [batch, order, free] } else { [batch, free, order] };
                    let shape = |dims: [usize; 3]| format!("{ty}{dims:?}").replace(' ', "");
                    let code = |is: bool, yes: char, no: char| u32::from(if is { yes } else { no });
                    let attributes = format!(
                        "side = {} : ui8, uplo = {} : ui8, trans_x = {} : ui8, diag = {} : ui8",
                        code(left, 'L', 'R'),
                        code(lower, 'L', 'U'),
                        u32::from(transpose),
                        code(unit, 'U', 'N'),
                    );
                    // A unit diagonal with elements that are not small in comparison makes solutions large.
                    let far = order;
                    let a = matrices(ty, &[batch, order, order], |i| if unit { far } else { i });
                    let order = [batch, order, order];
                    let call = Call {
                        target: format!("lapack_{letter}trsm_ffi"),
                        operands: vec![shape(order), shape(dims)],
                        results: vec![shape(dims)],
                        attributes: attributes.leak(),
                    };
                    if unit && order[1] > 31 {
                        continue;
                    }
                    expect_same(&call, &[a, matrices(ty, &dims, |_| 0)]);
                }
            }
        }
    }
}

#[test]
fn factors_are_those_of_the_host() {
    for (letter, ty) in TYPES {
        for (batch, m, n) in [
            (1, 1, 1),
            (3, 2, 2),
            (500, 9, 9),
            (2, 13, 13),
            (2, 31, 63),
            (1, 64, 64),
            (2, 65, 65),
            (1, 63, 10),
            (1, 200, 200),
        ] {
            if n == 200 && letter != 's' {
                continue;
            }
            let (matrix, k) = (format!("{ty}[{batch},{m},{n}]"), m.min(n));
            let (vector, info) = (format!("[{batch},{k}]"), format!("s32[{batch}]"));
            let call = |name: &str, results, attributes| Call {
                target: format!("lapack_{letter}{name}_ffi"),
                operands: vec![matrix.clone()],
                results,
                attributes,
            };
            // Other rows are the pivots, and beyond doubt.
            let a = matrices(ty, &[batch, m, n], |i| (i * 7 + 3) % m);
            let results = vec![matrix.clone(), format!("s32{vector}"), info.clone()];
            expect_same(&call("getrf", results, ""), std::slice::from_ref(&a));
            let results = vec![matrix.clone(), format!("{ty}{vector}")];
            let factors = call("geqrf", results, "");
            expect_same(&factors, std::slice::from_ref(&a));
            if m >= n {
                let name = if ty.starts_with('c') { "ungqr" } else { "orgqr" };
                let mut call = call(name, vec![matrix.clone()], "");
                call.operands.push(format!("{ty}{vector}"));
                let packed = factors.run(Backend::Interpreter, 1, std::slice::from_ref(&a));
                let packed: Vec<Literal> = packed.leaves().into_iter().cloned().collect();
                expect_same(&call, &packed);
            }
            if m == n {
                let a = matrices(ty, &[batch, m, n], |i| i);
                for attributes in ["uplo = 76 : ui8", "uplo = 85 : ui8"] {
                    let results = vec![matrix.clone(), info.clone()];
                    expect_same(&call("potrf", results, attributes), std::slice::from_ref(&a));
                }
            }
        }
    }
}

#[test]
fn pivots_that_fail_are_told() {
    // Of matrices of ones on the diagonal, with others in some places: an order of each, and a place.
    for (n, failing) in [(9, 0), (40, 0), (40, 31), (40, 32), (100, 70)] {
        for value in [0.0, -1.0, f32::NAN] {
            let mut values = vec![0f32; 2 * n * n];
            for matrix in values.chunks_mut(n * n) {
                (0..n).for_each(|i| matrix[i * n + i] = 1.0);
            }
            values[n * n + failing * n + failing] = value;
            let a = |_: &helio::Shape| Literal::array([2, n, n], values.clone()).unwrap();
            let text = |target: &str, results: &str, attributes: &str, of: usize| {
                format!(
                    "ENTRY e {{ a = f32[2,{n},{n}] parameter(0)
                       r = ({results}) custom-call(a), custom_call_target=\"{target}\",
                         backend_config={{{attributes}}}
                       ROOT i = s32[2] get-tuple-element(r), index={of} }}"
                )
            };
            let outcome = |text: String| -> Vec<Vec<i32>> {
                let info = |outcome: Result<Literal, Error>| {
                    let literal = outcome.unwrap();
                    literal.leaves()[0].as_array().unwrap().as_slice::<i32>().unwrap().to_vec()
                };
                run(&text, a).into_iter().map(info).collect()
            };
            let number = i32::try_from(failing + 1).unwrap();
            for attributes in ["uplo = 76 : ui8", "uplo = 85 : ui8"] {
                let results = format!("f32[2,{n},{n}], s32[2]");
                let found = outcome(text("lapack_spotrf_ffi", &results, attributes, 1));
                assert_eq!(found, [[0, number], [0, number]], "{n} {failing} {value}");
            }
            let results = format!("f32[2,{n},{n}], s32[2,{n}], s32[2]");
            let found = outcome(text("lapack_sgetrf_ffi", &results, "", 2));
            let number = if value == 0.0 { number } else { 0 };
            assert_eq!(found, [[0, number], [0, number]], "{n} {failing} {value}");
        }
    }
}
