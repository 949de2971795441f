//! Constants from files.

use std::collections::BTreeMap;
use std::path::Path;

use helio::data::{self, TensorElement};
use helio::ir::ArrayShape;
use helio::{Array, Error, Result};

/// The arrays of a file (`.npy`, `.npz`, `.safetensors`), by name; the one of an `.npy` is `in0`.
///
/// ```
/// use helio_graph::prelude::*;
/// # let path = std::env::temp_dir().join(format!("weights-{}.safetensors", std::process::id()));
/// let mut weights = Weights::default();
/// weights.insert("layer1.weight", [[1f32, 2.0], [3.0, 4.0]]);
/// weights.save(&path)?;
///
/// let g = Graph::new("model");
/// let weights = Weights::load(&path)?;
/// let w1 = g.constant(weights.get("layer1.weight")?);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Weights {
    arrays: BTreeMap<String, Array>,
}

impl Weights {
    /// Reads a file; [`Weights`] has an example. Errors: `InvalidArgument` if it cannot be read or is
    /// damaged, or an array's type is not one of helio's; `ResourceExhausted`.
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

    /// Writes a file; the path's extension says of which kind. [`Weights`] has an example. Errors:
    /// `InvalidArgument` if it cannot be written, or cannot say which type an array has; an `.npy` holds one
    /// array.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let format = data::Format::of(path)?;
        if let Some((name, array)) = self.iter().find(|(_, array)| !format.has(array.element())) {
            let (element, file) = (array.element(), path.display());
            let detail = format!("{file}: array {name:?}: the format has no type {element}");
            let help = match data::Format::Safetensors.has(element) {
                true => "save it as .safetensors",
                false => "convert it to a wider type",
            };
            return Err(Error::invalid(format!("{detail}\n  help: {help}")));
        }
        let arrays = self.arrays.iter();
        let tensors = arrays.map(|(name, array)| (name.clone(), data::Tensor::from_array(array)));
        data::write(path, &tensors.collect())
    }

    /// Puts in an array under a name; gives what was there before.
    ///
    /// ```
    /// use helio_graph::prelude::*;
    /// let mut weights = Weights::default();
    /// assert_eq!(weights.insert("b", [1f32]), None);
    /// assert_eq!(weights.insert("b", [2f32]), Some([1f32].into()));
    /// ```
    pub fn insert(&mut self, name: impl Into<String>, array: impl Into<Array>) -> Option<Array> {
        self.arrays.insert(name.into(), array.into())
    }

    /// The array of this name. Errors: `InvalidArgument`, with the names that there are.
    ///
    /// ```
    /// use helio_graph::prelude::*;
    /// let weights = Weights::from_iter([("w", [1f32]), ("b", [2f32])]);
    /// assert_eq!(weights.get("w")?, [1f32].into());
    /// let error = weights.get("v").expect_err("no such name");
    /// assert!(error.detail().ends_with("there are \"b\", \"w\""), "{error}");
    /// # Ok::<(), Error>(())
    /// ```
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

    /// The arrays and their names, in the order of the names.
    ///
    /// ```
    /// use helio_graph::prelude::*;
    /// let weights = Weights::from_iter([("w", [1f32, 2.0]), ("b", [3.0, 4.0])]);
    /// let shapes: Vec<_> = weights.iter().map(|(name, array)| (name, array.dims())).collect();
    /// assert_eq!(shapes, [("b", &[2][..]), ("w", &[2])]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Array)> {
        self.arrays.iter().map(|(name, array)| (name.as_str(), array))
    }

    /// The names, in alphabetical order.
    ///
    /// ```
    /// use helio_graph::prelude::*;
    /// assert!(Weights::from_iter([("w", [1f32]), ("b", [2f32])]).names().eq(["b", "w"]));
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }
}

impl<N: Into<String>, A: Into<Array>> FromIterator<(N, A)> for Weights {
    fn from_iter<I: IntoIterator<Item = (N, A)>>(arrays: I) -> Self {
        let arrays = arrays.into_iter().map(|(name, array)| (name.into(), array.into()));
        Weights { arrays: arrays.collect() }
    }
}
