//! Parameters that become constants.

use std::collections::{BTreeMap, BTreeSet};

use helio_ir::{Error, Literal, Module, Op, Result, ops};

/// The program with some of its parameters bound to values that never change, as the weights of a trained
/// model do not: they become constants of the program.
///
/// `values` gives values by the numbers of their parameters. Those that are left are numbered anew, in their
/// order. What is compiled then has more to go by: what depends on constants alone and takes no more memory than
/// they do is computed beforehand, once for all programs of a client, and products with many rows pack a
/// constant right operand once, in the order in which they read it, and
/// not in every run. Large values are not copied; what is packed of them takes as much memory again, which
/// [`Client::memory_stats`](crate::Client::memory_stats) counts, is shared by all programs of a client to
/// which the same literal is bound, and is not taken if that were more than half of the memory still free.
///
/// A bound parameter whose memory a result should have been given (`input_output_alias`, `buffer_donor`) is
/// given no more.
///
/// Errors: `InvalidArgument` if there is no such parameter, two values are for one, or a value has another
/// shape than its parameter.
///
/// ```
/// let text = "ENTRY e {
///   x = f32[2] parameter(0)
///   w = f32[2] parameter(1)
///   b = f32[2] parameter(2)
///   xw = f32[2] multiply(x, w)
///   ROOT y = f32[2] add(xw, b)
/// }";
/// let module = helio::parse(text)?;
/// let bound = helio::bind(module, [(1, vec![2f32, 3.0].into())])?;
/// let line = helio::compile(bound, &helio::CompileOptions::default())?;
/// let (x, b) = (vec![1f32, 10.0].into(), vec![0.5f32, 0.5].into());
/// assert_eq!(line.run(&[x, b])?, vec![2.5f32, 30.5].into());
/// # Ok::<(), helio::Errors>(())
/// ```
pub fn bind(
    mut module: Module,
    values: impl IntoIterator<Item = (usize, Literal)>,
) -> Result<Module> {
    if module.computations().is_empty() {
        return Err(Error::invalid("a program without computations has no parameters"));
    }
    let entry = module.entry_id();
    let params = module.entry().params();
    let mut bound = BTreeSet::new();
    for (number, value) in values {
        let Some(&id) = params.get(&number) else {
            let detail = format!(
                "a value for parameter {number}; the program has {} parameters",
                params.len()
            );
            return Err(Error::invalid(detail));
        };
        if !bound.insert(number) {
            return Err(Error::invalid(format!("two values for parameter {number}")));
        }
        let instr = module.computation_mut(entry).instr_mut(id);
        let shape = value.shape();
        if !shape.same(&instr.shape) {
            let detail =
                format!("a value of shape {shape} for parameter {number}, {}", instr.shape);
            return Err(Error::invalid(detail));
        }
        instr.shape = shape.without_layout();
        instr.op = Op::from(ops::Constant::new(value));
    }
    let left: BTreeMap<usize, usize> =
        params.keys().filter(|number| !bound.contains(number)).copied().zip(0..).collect();
    for (old, new) in &left {
        if let Op::Parameter(param) = &mut module.computation_mut(entry).instr_mut(params[old]).op {
            param.number = *new;
        }
    }
    let config = &mut module.config;
    config.input_output_alias.retain_mut(|alias| renumber(&mut alias.parameter, &left));
    config.buffer_donors.retain_mut(|(parameter, _)| renumber(parameter, &left));
    if let Some(layout) = &mut config.entry_layout {
        let mut number = 0..;
        layout.params.retain(|_| number.next().is_some_and(|number| left.contains_key(&number)));
    }
    Ok(module)
}

/// Gives a parameter its new number; false if it has none.
fn renumber(number: &mut usize, left: &BTreeMap<usize, usize>) -> bool {
    let new = left.get(number).copied();
    *number = new.unwrap_or(*number);
    new.is_some()
}
