use super::*;
use crate::ElementType::F32;
use std::collections::HashSet;

fn all_names_are_unique(module: &crate::Module) {
    let mut names = HashSet::new();
    for computation in module.computations() {
        assert!(names.insert(&computation.name), "{}", text::print(module));
    }
    let mut names = HashSet::new();
    for instr in module.computations().iter().flat_map(|c| c.instrs()) {
        assert!(names.insert(&instr.name), "{} in\n{}", instr.name, text::print(module));
    }
}

#[test]
fn a_computation_is_imported_once() {
    let b = XlaBuilder::new("b");
    let [x] = parameters(&b, ["f32[2,3]"]);
    let add = add();
    let outer = function("outer", "f32[3]", |x| drop(x.reduce(0, &add, &[0])));
    // `add` comes by itself, twice, and by way of `outer`.
    b.call(&outer, &[x.reduce(0, &add, &[0]).add(x.reduce(1, &add, &[0]))]);
    let module = b.build().expect("a program").into_module();
    assert_eq!(module.computations().len(), 3, "{}", text::print(&module));
    all_names_are_unique(&module);
}

#[test]
fn names_do_not_clash() {
    let b = XlaBuilder::new("f");
    let [x] = parameters(&b, ["f32[]"]);
    x.exp();
    for _ in 0..3 {
        let f = function("f", "f32[]", |x| drop(x.exp().log()));
        b.call(&f, &[&x]);
    }
    let module = b.build().expect("a program").into_module();
    assert_eq!(module.computations().len(), 4);
    all_names_are_unique(&module);
}

#[test]
fn any_name_will_do() {
    let b = XlaBuilder::new("a name, \"quoted\" {");
    b.parameter(0, Shape::scalar(F32), "%x y");
    b.parameter(1, Shape::scalar(F32), "").add(1);
    let module = b.build().expect("a program").into_module();
    let printed = text::print(&module);
    assert_eq!(text::print(&text::parse(&printed).expect("right text")), printed);
    assert!(printed.contains("_x_y.1 = f32[] parameter(0)"), "{printed}");
    assert!(printed.contains("parameter.2 = f32[] parameter(1)"), "{printed}");
}

#[test]
fn a_builder_goes_on_after_building() {
    let b = XlaBuilder::new("b");
    let x = b.parameter(0, Shape::scalar(F32), "x");
    let before = b.build().expect("a program");
    x.exp();
    let after = b.build().expect("a program");
    let root = b.build_with_root(&x).expect("a program");
    assert_eq!(before.module().entry().instrs().len(), 1);
    assert_eq!(after.module().entry().instrs().len(), 2);
    assert_eq!(root.module().entry().root(), InstrId(0));
    assert_eq!(format!("{after:?}"), "XlaComputation(b: (f32[])->f32[])");
    assert_eq!(format!("{b:?} {x:?}"), "XlaBuilder(b) XlaOp(x.1)");
}

/// Only what is called comes along from a module with more in it.
#[test]
fn modules_from_text() {
    let text = "HloModule m
        unused { ROOT x = f32[] parameter(0) }
        double { x = f32[] parameter(0) ROOT y = f32[] add(x, x) }
        ENTRY e { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply=double }";
    let module = verify(text::parse(text).expect("right text")).expect("a right module");
    let computation = XlaComputation::from_module(module);
    assert_eq!(computation.name(), "e");
    let b = XlaBuilder::new("b");
    let [x] = parameters(&b, ["f32[]"]);
    b.call(&computation, &[&x]);
    b.call(&computation.clone(), &[&x]);
    let module = b.build().expect("a program").into_module();
    let names: Vec<_> = module.computations().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["double", "e", "b"]);
    all_names_are_unique(&module);
}

#[test]
fn parameters_keep_their_layout() {
    let b = XlaBuilder::new("b");
    b.parameter(0, shape("f32[2,3]{0,1}"), "x");
    assert_eq!(b.build().expect("a program").program_shape().params, [shape("f32[2,3]{0,1}")]);
}
