//! Constants from files.

use std::collections::BTreeMap;
use std::path::Path;

use helio::data::{self, TensorElement};
use helio::ir::ArrayShape;
use helio::{Array, Error, Result};

/// The arrays of a file (`.npy`, `.npz`, `.safetensors`), by name; the one of an `.npy` is `in0`.
///
/// ```no_run
/// use helio_graph::{Graph, Weights};
/// let g = Graph::new("model");
/// let weights = Weights::load("model.safetensors")?;
/// let w1 = g.constant(weights.get("layer1.weight")?);
/// # Ok::<(), helio_graph::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Weights {
    arrays: BTreeMap<String, Array>,
}

impl Weights {
    /// Reads a file. Errors: `InvalidArgument` if it cannot be read or is damaged, or an array's
    /// type is not one of helio's; `ResourceExhausted`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let array = |(name, tensor): (String, data::Tensor)| {
            let TensorElement::Known(element) = tensor.element else {
                let detail = format!(
                    "{}: array {name:?} has raw bits of a type that NumPy lacks; which one, the file \
                     does not say\n  help: save it as .safetensors",
                    path.display()
                );
                return Err(Error::invalid(detail));
            };
            let shape = ArrayShape::new(element, tensor.dims.clone())?;
            Ok((name, tensor.to_array(&shape)?))
        };
        let arrays = data::read(path)?.into_iter().map(array).collect::<Result<_>>()?;
        Ok(Weights { arrays })
    }

    /// The array of this name. Errors: `InvalidArgument`, with the names that there are.
    pub fn get(&self, name: &str) -> Result<Array> {
        self.arrays.get(name).cloned().ok_or_else(|| {
            const SHOWN: usize = 20;
            let mut names: Vec<_> =
                self.names().take(SHOWN).map(|name| format!("{name:?}")).collect();
            if self.arrays.len() > SHOWN {
                names.push(format!("and {} more", self.arrays.len() - SHOWN));
            }
            Error::invalid(format!("there is no array {name:?}; there are {}", names.join(", ")))
        })
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }
}
