//! The mark of kernels and machine code that this crate itself has made, which is why they may be
//! run.

use std::ops::Deref;

/// A value that this crate alone has made, and that nobody has changed since: a kernel that the
/// lowering of a verified module wrote, or the machine code of such a kernel.
///
/// Whoever runs code believes what its kernel says of it: that it touches no byte outside of its
/// buffers ([`Param::bytes`](crate::kernel::Param::bytes)), writes those only that it says it writes,
/// and that pieces of its range may run at the same time. Anyone can write a
/// [`Kernel`](crate::kernel::Kernel) of which that is not true, and
/// [`Kernel::check`](crate::kernel::Kernel::check) does not find out; so what is run as machine code
/// is only what is vouched for. (The tile machine, which checks each access, runs any kernel.)
#[derive(Clone, Debug)]
pub struct Vouched<T>(T);

impl<T> Vouched<T> {
    /// To be called for what is true by construction, here and nowhere else.
    pub(crate) fn new(value: T) -> Self {
        Vouched(value)
    }

    /// The value itself, free to be changed, no longer vouched for.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// What becomes of the value in this crate's hands.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Deref for Vouched<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}
