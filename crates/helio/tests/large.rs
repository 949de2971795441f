//! Loops over more points than 32 bits count are compiled, and take no memory for them.

use helio::{Client, ClientOptions, CompileOptions, Literal};

/// More than 2^31, not divisible by any power of two that loops are cut by.
const COUNT: u64 = 2_150_000_002;

/// Folds an iota of this type with an operation.
fn folded(ty: &str, op: &str, init: &str) -> Literal {
    let text = format!(
        "f {{ a = {ty}[] parameter(0) b = {ty}[] parameter(1) ROOT r = {ty}[] {op}(a, b) }}
         ENTRY e {{ i = {ty}[{COUNT}] iota(), iota_dimension=0 z = {ty}[] constant({init})
         ROOT r = {ty}[] reduce(i, z), dimensions={{0}}, to_apply=f }}"
    );
    let mut options = ClientOptions::default();
    options.memory_limit = Some(16 << 20);
    let module = helio::parse(&text).expect("a module");
    let program = Client::new(&options).compile(module, &CompileOptions::default());
    program.expect("a program").run(&[]).expect("a result")
}

fn assert_is<T: helio::ir::Native + PartialEq + std::fmt::Debug>(found: &Literal, expected: T) {
    let array = found.as_array().expect("an array");
    assert_eq!(array.as_slice::<T>(), Some(&[expected][..]));
}

#[test]
fn numbers_of_few_bits_wrap() {
    // 0 to 2^7 - 1 give 0, the two that are left 1.
    assert_is(&folded("s8", "xor", "0"), 1i8);
    assert_is(&folded("s32", "minimum", "0"), i32::MIN);
    assert_is(&folded("u32", "maximum", "0"), COUNT as u32 - 1);
}

#[test]
fn numbers_of_many_bits_do_not() {
    assert_is(&folded("s64", "maximum", "0"), COUNT as i64 - 1);
    assert_is(&folded("f32", "maximum", "0"), (COUNT - 1) as f32);
    assert_is(&folded("f64", "maximum", "0"), (COUNT - 1) as f64);
}
