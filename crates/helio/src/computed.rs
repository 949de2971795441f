//! What depends on constants alone, computed by compiled code while the program is compiled.

use helio_eval::Subnormals;
use helio_ir::text::print;
use helio_ir::{Literal, Module, Result, Verified};
use helio_passes::ConstantEvaluator;

use crate::{Client, CompileOptions, Executable, RunOptions};

/// Compiles and runs programs for another's compilation. What programs of the client have already is not computed again.
pub(crate) struct OfConstants<'a> {
    pub client: &'a Client,
    /// Those of the other compilation.
    pub options: &'a CompileOptions,
}

impl ConstantEvaluator for OfConstants<'_> {
    fn evaluate(
        &self,
        module: Verified<Module>,
        args: &[Literal],
        subnormals: Subnormals,
    ) -> Result<Literal> {
        let CompileOptions { backend, opt_level, .. } = self.options;
        let key = format!("{backend:?} {opt_level:?} {subnormals:?}\n{}", print(&module));
        if let Some(known) = self.client.constants().computed(&key, args) {
            return Ok(Literal::Tuple(known));
        }
        // It runs once, and on one device.
        let options =
            CompileOptions { subnormals, assignment: None, observer: None, ..self.options.clone() };
        let program = Executable::new(self.client.clone(), module.into_inner(), &options)
            .map_err(|errors| errors.first().clone())?;
        let options = RunOptions::default().with_limits(self.options.limits.clone());
        let results = program.run_with(args, &options)?;
        if let Literal::Tuple(results) = &results {
            self.client.constants().remember(key, args, results);
        }
        Ok(results)
    }
}
