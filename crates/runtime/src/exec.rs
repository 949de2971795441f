//! Pages of executable code: written first, then made executable and never writable again.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod pages {
    use std::io;
    use std::ptr::{self, NonNull};

    /// A mapping of code, executable and not writable; unmapped when dropped.
    pub(crate) struct Pages {
        start: NonNull<u8>,
        len: usize,
    }

    impl Pages {
        /// Maps `bytes`, at an address divisible by the page size.
        pub(crate) fn new(bytes: &[u8]) -> io::Result<Pages> {
            // An empty mapping is an error; a page of nothing is simpler than a case of its own.
            let len = bytes.len().max(1);
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new anonymous mapping at an address of the system's choice touches no memory
            // that is in use.
            let start = unsafe { libc::mmap(ptr::null_mut(), len, access, kind, -1, 0) };
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let start = NonNull::new(start.cast()).ok_or_else(io::Error::last_os_error)?;
            let pages = Pages { start, len };
            // SAFETY: the mapping is new, writable, and has at least as many bytes; it overlaps nothing.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr(), bytes.len()) };
            // SAFETY: these are all pages of a mapping that `pages` owns and that nothing refers to yet.
            let done = unsafe {
                libc::mprotect(start.as_ptr().cast(), len, libc::PROT_READ | libc::PROT_EXEC)
            };
            if done == 0 { Ok(pages) } else { Err(io::Error::last_os_error()) }
        }

        /// The address of a byte.
        pub(crate) fn at(&self, offset: usize) -> *const u8 {
            assert!(offset < self.len, "byte {offset} of {}", self.len);
            self.start.as_ptr().wrapping_add(offset)
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            // SAFETY: the mapping is owned, and whoever runs code in it keeps `self` alive. A failure
            // would leave it mapped, which harms nothing.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }

    // SAFETY: nothing writes the pages while they are mapped.
    unsafe impl Send for Pages {}
    // SAFETY: through a shared reference pages are only read, as data or code.
    unsafe impl Sync for Pages {}
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod pages {
    use std::io;

    /// Executable pages, which this system does not have.
    pub(crate) enum Pages {}

    impl Pages {
        pub(crate) fn new(_: &[u8]) -> io::Result<Pages> {
            let what = "generated code runs on x86-64 Linux only";
            Err(io::Error::new(io::ErrorKind::Unsupported, what))
        }

        pub(crate) fn at(&self, _: usize) -> *const u8 {
            match *self {}
        }
    }
}

pub(crate) use pages::Pages;
