//! The registry of the functions, in Rust or C, that custom calls find by name.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use helio_eval::services::{CustomCalls, CustomFunction};
use helio_eval::{Call, OperandBytes, is_defined};
use helio_ir::{Error, Module, Op, Result, Shape};
use helio_runtime::{CArguments, CFailure, CFunction, COperand, Tree};

use crate::linalg;

/// Functions by the name under which custom calls find them: those of a client
/// ([`Client::custom_calls`](crate::Client::custom_calls)). Every registry has those of linear algebra
/// (`lapack_sgesdd_ffi` and such), which registered ones of the same name replace in programs that are
/// compiled afterwards.
///
/// ```
/// # fn main() -> Result<(), helio::Errors> {
/// let client = helio::Client::default();
/// client.custom_calls().register("scaled", |call| {
///     let factor = call.info().attributes()?.float("factor")? as f32;
///     let x = call.operand(0)?.as_slice::<f32>()?;
///     let y = call.result_mut(0)?.as_mut_slice::<f32>()?;
///     y.iter_mut().zip(x).for_each(|(y, x)| *y = factor * x);
///     Ok(())
/// });
/// let module = helio::parse(
///     "ENTRY e { x = f32[2] parameter(0)
///        ROOT y = f32[2] custom-call(x), custom_call_target=\"scaled\",
///          api_version=API_VERSION_TYPED_FFI, backend_config={factor = 3.0 : f32} }",
/// )?;
/// let program = client.compile(module, &helio::CompileOptions::default())?;
/// let y = program.run(&[helio::Literal::array([2], vec![1f32, 2.0])?])?;
/// assert_eq!(y.as_array().and_then(|y| y.as_slice::<f32>()), Some(&[3.0, 6.0][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct CustomCallRegistry {
    functions: RwLock<HashMap<String, Arc<CustomFunction>>>,
}

impl CustomCallRegistry {
    /// No functions but those of linear algebra.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a Rust function, which writes the results of a [`Call`]. A function of the same name
    /// is replaced. Its errors, and its panics, are errors of the run that called it, with its name.
    pub fn register(
        &self,
        target: impl Into<String>,
        function: impl Fn(&mut Call<'_>) -> Result<()> + Send + Sync + 'static,
    ) {
        self.insert(target.into(), Arc::new(function));
    }

    /// Registers a C function: each pointer of `in`, and `out`, points to the elements of an array
    /// in the order of its layout, row-major unless the program says otherwise, or for a tuple to a
    /// table of such pointers. Elements narrower than a byte take a byte each. Memory is aligned to
    /// 16 bytes. An operand that shares memory with a result is copied, unless the function may share it
    /// ([`CFunction::sharing`]). A call with operands or a result that the function does not accept is an
    /// error.
    pub fn register_c(&self, target: impl Into<String>, function: CFunction) {
        self.register(target, move |call| call_c(&function, call));
    }

    /// Whether there is a function of this name.
    pub fn contains(&self, target: &str) -> bool {
        self.find(target).is_some()
    }

    /// Whether a function of this name has been registered, if only in the place of one of linear algebra.
    pub(crate) fn is_replaced(&self, target: &str) -> bool {
        self.functions.read().unwrap_or_else(PoisonError::into_inner).contains_key(target)
    }

    /// The calls of a module for which there is no function: for each target, the error that a run
    /// with these functions ends with where it comes to the first such call. Targets that mean
    /// something by themselves (`TopK`, `ApproxTopK`, annotations such as `Sharding`) need no function.
    pub fn missing(&self, module: &Module) -> Vec<Error> {
        let mut missing: BTreeMap<&str, Error> = BTreeMap::new();
        for instr in module.computations().iter().flat_map(|computation| computation.instrs()) {
            let Op::CustomCall(op) = &instr.op else { continue };
            if !is_defined(&op.target) && !self.contains(&op.target) {
                missing.entry(&op.target).or_insert_with(|| {
                    let detail = format!("no custom call is registered as `{}`", op.target);
                    module.place(Error::invalid(detail), instr)
                });
            }
        }
        missing.into_values().collect()
    }

    fn insert(&self, target: String, function: Arc<CustomFunction>) {
        let mut functions = self.functions.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = functions.insert(target, function);
        // What goes with it is the user's, and may use this very registry.
        drop(functions);
        drop(replaced);
    }
}

impl fmt::Debug for CustomCallRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(functions.keys()).finish()
    }
}

impl CustomCalls for CustomCallRegistry {
    fn find(&self, target: &str) -> Option<Arc<CustomFunction>> {
        let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        functions.get(target).or_else(|| linalg::find(target)).cloned()
    }
}

fn call_c(function: &CFunction, call: &mut Call<'_>) -> Result<()> {
    let info = call.info();
    let operand_trees: Vec<Tree> = info.operands.iter().map(tree).collect();
    let result_tree = &tree(&info.result);
    let (operands, results) = call.bytes();
    let operand = |bytes| match bytes {
        OperandBytes::Own(bytes) => COperand::Bytes(bytes),
        OperandBytes::Result(number) => COperand::Result(number),
    };
    let operands: Vec<COperand<'_>> = operands.into_iter().map(operand).collect();
    let (operands, operand_trees) = (&operands, &operand_trees);
    let opaque = info.opaque();
    let arguments = CArguments { operand_trees, result_tree, operands, results, opaque };
    function.call(arguments).map_err(|failure| match failure {
        CFailure::NotAccepted => {
            let operands: Vec<String> = info.operands.iter().map(Shape::to_string).collect();
            let operands = operands.join(", ");
            Error::invalid(format!("{failure}: ({operands}) -> {}", info.result))
        }
        CFailure::Failed(message) => Error::invalid(message),
    })
}

/// How C sees the memory of a value.
fn tree(shape: &Shape) -> Tree {
    match shape {
        Shape::Tuple(elements) => Tree::Tuple(elements.iter().map(tree).collect()),
        part => Tree::Array(part.size_bytes()),
    }
}
