//! Loops, choices and random numbers.

mod common;

use common::call;
use helio_graph::{Array, ElementType, Graph, Result, Tensor};

#[test]
fn loops_use_what_is_outside_at_any_depth() -> Result<()> {
    // sum over i < n of (i + a) * (number of steps of an inner loop that counts to b)
    let g = Graph::new("nested");
    let (a, b) = (g.input("a", ElementType::S64, ()), g.input("b", ElementType::S64, ()));
    let zero = g.constant(Array::scalar(0i64));
    let total = g.for_loop(0, 5, zero.clone(), |i, total| {
        let steps = g.while_loop(zero.clone(), |s| s.less(&b), |s| s + 1);
        let outer = i + &a;
        // The inner loop's body uses values of the outer one's.
        let product = g.for_loop(0, &steps, zero.clone(), |_, sum| sum + &outer);
        total + product
    });
    let program = g.compile(&total + &a)?;
    let run = |a: i64, b: i64| -> Result<i64> {
        let results = program.run(&[Array::scalar(a), Array::scalar(b)])?;
        Ok(results[0].as_slice::<i64>().expect("s64")[0])
    };
    let expected = |a: i64, b: i64| (0..5).map(|i| (i + a) * b.max(0)).sum::<i64>() + a;
    for (a, b) in [(0, 0), (3, 4), (-2, 7), (5, -1)] {
        assert_eq!(run(a, b)?, expected(a, b), "{a} {b}");
    }
    Ok(())
}

#[test]
fn states_are_lists_of_any_form() -> Result<()> {
    let g = Graph::new("fibonacci");
    let [a, b] = [0i64, 1].map(|v| g.constant(Array::scalar(v)));
    let (pair, _) = g.for_loop(0, 50, ([a.clone(), b], vec![a]), |i, ([a, b], mut log)| {
        log[0] = &log[0] + i;
        ([b.clone(), a + b], log)
    });
    let results = g.compile(pair)?.run(&[] as &[Array])?;
    assert_eq!(results[0].as_slice::<i64>(), Some(&[12_586_269_025][..]));
    Ok(())
}

#[test]
fn a_state_with_symbolic_dimensions() -> Result<()> {
    let g = Graph::new("power_iteration");
    let x = g.input("x", ElementType::F32, ("n",));
    let y = g.for_loop(0, 3, x.clone(), |_, y| &y * 2.0 + &x);
    let program = g.compile(y)?;
    for n in [1usize, 5] {
        let ones = Array::new([n], vec![1f32; n])?;
        assert_eq!(program.run(&[ones])?[0].as_slice::<f32>(), Some(&vec![15f32; n][..]));
    }
    Ok(())
}

#[test]
fn choices() -> Result<()> {
    let g = Graph::new("choices");
    let (x, i) = (g.input("x", ElementType::F32, ("n",)), g.input("i", ElementType::S32, ()));
    let positive = x.sum(0).greater(0.0);
    let (y, one) = g.cond(
        &positive,
        || (&x + 1.0, x.max(0)),
        || (-&x, g.cond(i.less(0), || x.min(0), || x.sum(0))),
    );
    let double = || vec![&x * 2.0];
    let half = || vec![&x / 2.0];
    let same = || vec![x.clone()];
    let branches: [&dyn Fn() -> Vec<Tensor>; 3] = [&double, &half, &same];
    let z = g.switch(&i, &branches);
    let program = g.compile((y, one, z))?;
    let run = |x: [f32; 2], i: i32| -> Result<Vec<Vec<f32>>> {
        let results = program.run(&[Array::new([2], x.to_vec())?, Array::scalar(i)])?;
        Ok(results.iter().map(|r| r.as_slice::<f32>().expect("f32").to_vec()).collect())
    };
    assert_eq!(run([1.0, 2.0], 0)?, [vec![2.0, 3.0], vec![2.0], vec![2.0, 4.0]]);
    assert_eq!(run([-1.0, -2.0], 1)?, [vec![1.0, 2.0], vec![-3.0], vec![-0.5, -1.0]]);
    assert_eq!(run([-1.0, -2.0], -7)?, [vec![1.0, 2.0], vec![-2.0], vec![-2.0, -4.0]]);
    assert_eq!(run([1.0, -2.0], 9)?[2], [1.0, -2.0]);
    Ok(())
}

#[test]
fn random_numbers_have_their_distributions() -> Result<()> {
    let g = Graph::new("random");
    let random = g.random(7);
    const N: usize = 40_000;
    let outputs = (
        random.uniform(ElementType::F32, [N]),
        random.normal(ElementType::F64, [N]),
        random.uniform(ElementType::F16, [N]),
        random.integers(ElementType::S8, -3, 4, [N]),
        random.bernoulli(0.25, [N]).cast(ElementType::F32),
        random.normal(ElementType::BF16, [N]),
    );
    let results = g.compile(outputs)?.run(&[] as &[Array])?;
    let moments = |array: &Array| {
        let values: Vec<f64> = common::numbers(array).collect();
        let mean = values.iter().sum::<f64>() / N as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / N as f64;
        (mean, variance, values)
    };
    let near = |found: f64, wanted: f64, tolerance: f64| {
        assert!((found - wanted).abs() < tolerance, "{found} is not {wanted}");
    };
    // Six standard errors.
    for (array, mean, variance, error) in [
        (&results[0], 0.5, 1.0 / 12.0, 0.009),
        (&results[1], 0.0, 1.0, 0.05),
        (&results[2], 0.5, 1.0 / 12.0, 0.009),
        (&results[3], 0.0, 4.0, 0.12),
        (&results[4], 0.25, 0.1875, 0.013),
        (&results[5], 0.0, 1.0, 0.05),
    ] {
        let found = moments(array);
        near(found.0, mean, error);
        near(found.1, variance, error);
    }
    assert!(moments(&results[0]).2.iter().all(|v| (0.0..1.0).contains(v)));
    assert!(moments(&results[2]).2.iter().all(|v| (0.0..1.0).contains(v)));
    assert!(moments(&results[3]).2.iter().all(|v| (-3.0..4.0).contains(v)));
    // No two calls give the same numbers.
    assert!(!results[1].same_bits(&results[5]));
    Ok(())
}

/// Expected values by mpmath, with 30 digits, rounded.
#[test]
fn erfc_keeps_its_digits() {
    let x = [-3.0f64, -0.5, 0.0, 1e-8, 0.5, 1.0, 2.0, 5.0, 10.0, 26.0, f64::INFINITY];
    let expected = [
        1.9999779095030015,
        1.5204998778130465,
        1.0,
        0.9999999887162083,
        0.4795001221869535,
        0.15729920705028513,
        0.004677734981047266,
        1.537459794428035e-12,
        2.088487583762545e-45,
        5.663192408856143e-296,
        0.0,
    ];
    let array = Array::new([x.len()], x.to_vec()).expect("an array");
    let found = call(&[&array], |x| x[0].erfc());
    for ((found, expected), x) in common::numbers(&found).zip(expected).zip(x) {
        let error = (found - expected).abs();
        let tolerance = 1e-15 * (2.0 + x.abs().min(30.0).powi(2)) * expected;
        assert!(error <= tolerance, "erfc({x}) = {found}, not {expected}");
    }
    let found = call(&[array], |x| x[0].cast(ElementType::F32).erfc());
    for ((found, expected), x) in common::numbers(&found).zip(expected).zip(x) {
        let error = (found - expected).abs();
        let tolerance = 3e-7 * (1.0 + x.abs().min(10.0).powi(2)) * expected;
        // Subnormal numbers are flushed to zero.
        let tolerance = tolerance.max(f32::MIN_POSITIVE.into());
        assert!(error <= tolerance, "erfc({x}) = {found}, not {expected}");
    }
}
