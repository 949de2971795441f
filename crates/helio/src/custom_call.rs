//! The functions that custom calls name.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use helio_eval::is_defined;
use helio_eval::services::CustomCalls;
use helio_ir::{Array, Error, Literal, Module, Op, Result, Shape, memory};
use helio_runtime::{Bytes, CFunction, Tree};

type RustFunction = dyn Fn(&[Literal], &Shape) -> Result<Literal> + Send + Sync;

#[derive(Clone)]
enum Function {
    Rust(Arc<RustFunction>),
    C(CFunction),
}

/// Functions by the name under which custom calls find them.
///
/// ```
/// # fn main() -> Result<(), helio::Error> {
/// let registry = helio::CustomCallRegistry::new();
/// registry.register("twice", |args, _shape| {
///     let x = args[0].as_array().ok_or_else(|| helio::Error::invalid("expected an array"))?;
///     let doubled = x.values::<f32>()?.iter().map(|v| 2.0 * v).collect();
///     helio::Literal::array(x.dims(), doubled)
/// });
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct CustomCallRegistry {
    functions: RwLock<HashMap<String, Function>>,
}

impl CustomCallRegistry {
    /// No functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a Rust function: it takes the operands and the shape that the program states for
    /// the result. A function of the same name is replaced.
    pub fn register(
        &self,
        target: impl Into<String>,
        function: impl Fn(&[Literal], &Shape) -> Result<Literal> + Send + Sync + 'static,
    ) {
        self.insert(target.into(), Function::Rust(Arc::new(function)));
    }

    /// Registers a C function, `void target(void* out, void** in)`: each pointer of `in`, and
    /// `out`, points to the elements of an array in row-major order, or for a tuple to a table of
    /// such pointers. Elements narrower than a byte take a byte each. Memory is aligned to 64
    /// bytes. A call with operands or a result that the function does not accept is an error.
    pub fn register_c(&self, target: impl Into<String>, function: CFunction) {
        self.insert(target.into(), Function::C(function));
    }

    /// Whether there is a function of this name.
    pub fn contains(&self, target: &str) -> bool {
        let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        functions.contains_key(target)
    }

    /// The calls of a module for which there is no function: for each target, the error that a run
    /// with these functions ends with where it comes to the first such call. Targets that mean
    /// something by themselves (`TopK`, annotations such as `Sharding`) need no function.
    pub fn missing(&self, module: &Module) -> Vec<Error> {
        let mut missing: BTreeMap<&str, Error> = BTreeMap::new();
        for instr in module.computations().iter().flat_map(|computation| computation.instrs()) {
            let Op::CustomCall(op) = &instr.op else { continue };
            if !is_defined(&op.target) && !self.contains(&op.target) {
                missing.entry(&op.target).or_insert_with(|| {
                    let detail = format!("no custom call is registered as `{}`", op.target);
                    Error::invalid(detail).at(instr.at.clone()).in_instruction(&instr.name)
                });
            }
        }
        missing.into_values().collect()
    }

    fn insert(&self, target: String, function: Function) {
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
    fn call(&self, target: &str, operands: &[Literal], result: &Shape) -> Option<Result<Literal>> {
        let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        let function = functions.get(target)?.clone();
        drop(functions); // a function may register another one
        Some(match function {
            Function::Rust(function) => function(operands, result),
            Function::C(function) => call_c(target, &function, operands, result),
        })
    }
}

fn call_c(
    target: &str,
    function: &CFunction,
    operands: &[Literal],
    result: &Shape,
) -> Result<Literal> {
    let bytes = operands
        .iter()
        .fold(result.size_bytes(), |sum, operand| sum.saturating_add(operand.shape().size_bytes()));
    let _counted = memory::reserve(bytes)?;
    let mut trees = operands.iter().map(to_tree).collect::<Result<Vec<_>>>()?;
    let mut out = zeroed(result);
    function.call(&mut trees, &mut out).map_err(|e| {
        let operands: Vec<String> =
            operands.iter().map(|value| value.shape().to_string()).collect();
        Error::invalid(format!("{target}: {e}: ({}) -> {result}", operands.join(", ")))
    })?;
    from_tree(&out, result)
}

fn to_tree(value: &Literal) -> Result<Tree> {
    Ok(match value {
        Literal::Array(array) => Tree::Array(Bytes::copy_of(&array.to_bytes())),
        Literal::Tuple(elements) => {
            Tree::Tuple(elements.iter().map(to_tree).collect::<Result<_>>()?)
        }
        // A token has no content; C sees a pointer to no bytes.
        Literal::Token => Tree::Array(Bytes::zeroed(0)),
    })
}

fn zeroed(shape: &Shape) -> Tree {
    match shape {
        Shape::Tuple(elements) => Tree::Tuple(elements.iter().map(zeroed).collect()),
        leaf => Tree::Array(Bytes::zeroed(leaf.size_bytes())),
    }
}

fn from_tree(tree: &Tree, shape: &Shape) -> Result<Literal> {
    match (tree, shape) {
        (Tree::Array(bytes), Shape::Array(shape)) => {
            Array::from_bytes(shape.clone(), bytes.as_slice()).map(Literal::Array)
        }
        (Tree::Tuple(trees), Shape::Tuple(shapes)) => {
            let elements = trees.iter().zip(shapes).map(|(tree, shape)| from_tree(tree, shape));
            elements.collect::<Result<_>>().map(Literal::Tuple)
        }
        (_, Shape::Token) => Ok(Literal::Token),
        _ => Err(Error::unimplemented(format!("a custom call with a result of {shape}"))),
    }
}
