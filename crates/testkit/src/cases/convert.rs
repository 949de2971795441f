//! Cases in other formats.

use helio::ir::Module;
use helio::{Code, Error, Literal, RunOptions, Shape};

use super::Case;
use super::check::{Ready, Shown};
use crate::engines::ENGINES;

/// What a case has shown whose program was converted.
#[derive(Clone, Debug)]
pub enum Converted {
    /// The conversion says `Unimplemented`.
    NotWritten(Error),
    /// The converted program verifies, and nothing was to be compared.
    Verifies,
    /// The converted program gives the expected results.
    Holds,
}

impl Case {
    /// Runs the program as it is after a conversion, on the interpreter, and compares its results with
    /// those that are expected. In the converted program tuples of arguments and results may have been
    /// taken apart. `None` if the case is about a program that is rejected. Errors: what went wrong, with
    /// the case's name.
    pub fn check_converted(
        &self,
        convert: &dyn Fn(&Module) -> Result<Module, Error>,
    ) -> Result<Option<Converted>, String> {
        let named = |e: String| format!("{} ({}): {e}", self.name, self.source);
        let (module, worlds) = match self.ready().map_err(named)? {
            Ready::Shown(Shown::Rejected) => return Ok(None),
            Ready::Shown(_) => (self.verified().map_err(named)?, None),
            Ready::Compare(module, worlds) => (*module, Some(worlds)),
        };
        let converted = match convert(&module) {
            Ok(converted) => converted,
            Err(e) if e.code() == Code::Unimplemented => return Ok(Some(Converted::NotWritten(e))),
            Err(e) => return Err(named(e.to_string())),
        };
        let converted = helio::ir::verify(converted);
        let converted = converted.map_err(|errors| named(format!("{errors:?}")))?;
        let Some(worlds) = worlds else { return Ok(Some(Converted::Verifies)) };
        let [interpreter, ..] = ENGINES else { return Err("no engine".to_owned()) };
        let program = interpreter
            .compile_with(&converted, self.subnormals)
            .map_err(|e| named(e.to_string()))?;
        let shape = module.entry().program_shape().result;
        let run = |args: &[&[Literal]], options: &RunOptions| {
            let flat = args.iter().map(|args| args.iter().flat_map(leaves).collect::<Vec<_>>());
            let flat: Vec<Vec<Literal>> = flat.collect();
            let flat: Vec<&[Literal]> = flat.iter().map(Vec::as_slice).collect();
            let results = interpreter.run_replicas(&program, &flat, options)?;
            let nested =
                results.iter().map(|result| nested(&shape, &mut leaves(result).into_iter()));
            nested.collect()
        };
        self.run(&program, &run, &worlds).map_err(named)?;
        Ok(Some(Converted::Holds))
    }
}

/// The arrays and tokens of a value.
fn leaves(value: &Literal) -> Vec<Literal> {
    value.leaves().into_iter().cloned().collect()
}

/// The value of this shape with these leaves. Errors: there are too few.
fn nested(shape: &Shape, leaves: &mut impl Iterator<Item = Literal>) -> Result<Literal, Error> {
    match shape {
        Shape::Tuple(parts) => {
            let parts = parts.iter().map(|part| nested(part, leaves));
            parts.collect::<Result<_, _>>().map(Literal::Tuple)
        }
        _ => leaves.next().ok_or_else(|| Error::internal("too few results")),
    }
}
