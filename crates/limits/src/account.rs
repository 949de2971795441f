//! Accounts of memory.
//!
//! An account knows how many bytes are in use and how many may be. Accounts of clients are below the
//! account of the process, which counts what they count. Memory that is kept for later use is no
//! use: it counts beside it, and whoever keeps it gives it up when there would be no room.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// The bytes that a process may use unless [`Account::set_limit_bytes`] says otherwise.
const DEFAULT_LIMIT: usize = 16 << 30;

static PROCESS: LazyLock<Account> = LazyLock::new(|| Account::new(DEFAULT_LIMIT, None));

thread_local! {
    /// The accounts that this thread has entered, the innermost last.
    static ENTERED: RefCell<Vec<Account>> = const { RefCell::new(Vec::new()) };
}

/// An account of memory; cloning gives another handle to the same account.
#[derive(Clone)]
pub struct Account {
    inner: Arc<Inner>,
}

struct Inner {
    live: AtomicUsize,
    peak: AtomicUsize,
    limit: AtomicUsize,
    /// Bytes that are kept for later.
    cached: AtomicUsize,
    /// Who keeps them.
    caches: Mutex<Vec<Weak<dyn Reclaim>>>,
    parent: Option<Account>,
}

/// Who keeps memory that is not in use, and can give it up.
pub trait Reclaim: Send + Sync {
    /// Gives up at least `bytes` of the bytes that are kept, or all of them.
    fn reclaim(&self, bytes: usize);
}

/// The error that an account or the system has no memory left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The bytes that were asked for.
    pub needed: usize,
    /// The bytes of the account in use.
    pub live: usize,
    /// The account's limit; `None` if the system had no more before the limit.
    pub limit: Option<usize>,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed, live) = (Bytes(self.needed), Bytes(self.live));
        match self.limit.map(Bytes) {
            Some(limit) if self.live == 0 => {
                write!(f, "{needed} of memory needed, more than the limit of {limit}")
            }
            Some(limit) => {
                write!(
                    f,
                    "{needed} of memory needed, but {live} of the limit of {limit} are in use"
                )
            }
            None => write!(f, "{needed} of memory needed besides {live}: the system has no more"),
        }
    }
}

impl std::error::Error for OutOfMemory {}

/// A number of bytes as a person reads it: `512 bytes`, `4.0 GiB`.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.into_iter().find(|&(shift, _)| self.0 >> shift > 0) {
            Some((shift, unit)) => {
                write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << shift) as f64)
            }
            None => write!(f, "{} bytes", self.0),
        }
    }
}

impl Account {
    fn new(limit: usize, parent: Option<Account>) -> Self {
        let inner = Inner {
            live: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            cached: AtomicUsize::new(0),
            caches: Mutex::default(),
            parent,
        };
        Account { inner: Arc::new(inner) }
    }

    /// The account of the process: all others but those [alone](Account::alone) are below it.
    pub fn of_process() -> &'static Account {
        &PROCESS
    }

    /// An account with a limit of its own, below that of the process.
    pub fn within_process(limit: usize) -> Self {
        Self::new(limit, Some(PROCESS.clone()))
    }

    /// An account that nothing else counts.
    pub fn alone(limit: usize) -> Self {
        Self::new(limit, None)
    }

    /// The account that this thread has [entered](Account::enter) last, or that of the process.
    pub fn current() -> Account {
        ENTERED.with_borrow(|entered| entered.last().unwrap_or(&PROCESS).clone())
    }

    /// Makes this the account of what this thread makes, until the guard is dropped.
    pub fn enter(&self) -> Entered {
        ENTERED.with_borrow_mut(|entered| entered.push(self.clone()));
        Entered { not_send: std::marker::PhantomData }
    }

    /// Counts bytes that are about to be used. Errors: they would pass a limit.
    pub fn charge(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let add = |live: usize| {
            let limit = self.inner.limit.load(Ordering::Relaxed);
            live.checked_add(bytes).filter(|&sum| sum <= limit)
        };
        let before = self.inner.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        let before = before.map_err(|live| self.exhausted(bytes, live))?;
        if let Some(parent) = &self.inner.parent
            && let Err(error) = parent.charge(bytes)
        {
            self.inner.live.fetch_sub(bytes, Ordering::Relaxed);
            return Err(error);
        }
        self.used(before + bytes);
        Ok(())
    }

    /// Counts bytes that are in use already, whatever the limit.
    pub fn add(&self, bytes: usize) {
        let before = self.inner.live.fetch_add(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.inner.parent {
            parent.add(bytes);
        }
        self.used(before + bytes);
    }

    /// Bytes that were counted are used no more.
    pub fn release(&self, bytes: usize) {
        self.inner.live.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.inner.parent {
            parent.release(bytes);
        }
    }

    /// Counts bytes until what it returns is dropped. Errors: as for [`Account::charge`].
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, OutOfMemory> {
        self.charge(bytes)?;
        Ok(Reservation { account: self.clone(), bytes })
    }

    /// Errors: `bytes` more would pass a limit.
    pub fn ensure_available(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let live = self.live_bytes();
        if bytes > self.inner.limit.load(Ordering::Relaxed).saturating_sub(live) {
            return Err(self.exhausted(bytes, live));
        }
        self.inner.parent.as_ref().map_or(Ok(()), |parent| parent.ensure_available(bytes))
    }

    fn exhausted(&self, needed: usize, live: usize) -> OutOfMemory {
        OutOfMemory { needed, live, limit: Some(self.inner.limit.load(Ordering::Relaxed)) }
    }

    /// Notes that `live` bytes are in use in all, and sees to it that what is cached leaves room for them.
    fn used(&self, live: usize) {
        self.inner.peak.fetch_max(live, Ordering::Relaxed);
        let cached = self.inner.cached.load(Ordering::Relaxed);
        let most = self.inner.limit.load(Ordering::Relaxed);
        if cached > 0 && cached > most.saturating_sub(live) {
            self.reclaim(cached - most.saturating_sub(live));
        }
    }

    /// Counts bytes that are kept for later, or no longer.
    pub fn cache(&self, more: usize, less: usize) {
        self.inner.cached.fetch_add(more, Ordering::Relaxed);
        self.inner.cached.fetch_sub(less, Ordering::Relaxed);
        if let Some(parent) = &self.inner.parent {
            parent.cache(more, less);
        }
    }

    /// How many bytes may be kept for later besides what is in use.
    pub fn room_bytes(&self) -> usize {
        let limit = self.inner.limit.load(Ordering::Relaxed);
        let kept = self.inner.cached.load(Ordering::Relaxed);
        let room = limit.saturating_sub(self.live_bytes()).saturating_sub(kept);
        self.inner.parent.as_ref().map_or(room, |parent| room.min(parent.room_bytes()))
    }

    /// Has `cache` asked, here and in what is above, when there is no room for what it keeps.
    pub fn add_cache(&self, cache: Weak<dyn Reclaim>) {
        let mut caches = self.inner.caches.lock().unwrap_or_else(PoisonError::into_inner);
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(cache.clone());
        drop(caches);
        if let Some(parent) = &self.inner.parent {
            parent.add_cache(cache);
        }
    }

    fn reclaim(&self, bytes: usize) {
        // Asked without the lock: who gives something up may make or drop other caches.
        let caches: Vec<_> = {
            let caches = self.inner.caches.lock().unwrap_or_else(PoisonError::into_inner);
            caches.iter().filter_map(Weak::upgrade).collect()
        };
        let before = self.inner.cached.load(Ordering::Relaxed);
        for cache in caches {
            let given = before.saturating_sub(self.inner.cached.load(Ordering::Relaxed));
            if given >= bytes {
                return;
            }
            cache.reclaim(bytes - given);
        }
    }

    /// The bytes in use.
    pub fn live_bytes(&self) -> usize {
        self.inner.live.load(Ordering::Relaxed)
    }

    /// The most bytes that were in use at once since the last [`Account::reset_peak`].
    pub fn peak_bytes(&self) -> usize {
        self.inner.peak.load(Ordering::Relaxed)
    }

    /// Makes what is in use now the peak.
    pub fn reset_peak(&self) {
        self.inner.peak.store(self.live_bytes(), Ordering::Relaxed);
    }

    /// The bytes that are kept for later.
    pub fn cached_bytes(&self) -> usize {
        self.inner.cached.load(Ordering::Relaxed)
    }

    /// The bytes that may be in use: the least limit here and above.
    pub fn limit_bytes(&self) -> usize {
        let limit = self.inner.limit.load(Ordering::Relaxed);
        self.inner.parent.as_ref().map_or(limit, |parent| limit.min(parent.limit_bytes()))
    }

    /// The bytes that may yet be used: the least that the limits here and above leave.
    pub fn free_bytes(&self) -> usize {
        let limit = self.inner.limit.load(Ordering::Relaxed);
        let free = limit.saturating_sub(self.live_bytes());
        self.inner.parent.as_ref().map_or(free, |parent| free.min(parent.free_bytes()))
    }

    /// Sets the limit of this account.
    pub fn set_limit_bytes(&self, bytes: usize) {
        self.inner.limit.store(bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("live", &self.live_bytes())
            .field("peak", &self.peak_bytes())
            .field("cached", &self.cached_bytes())
            .field("limit", &self.limit_bytes())
            .finish()
    }
}

/// While it lives, an account is that of its thread.
#[derive(Debug)]
#[must_use = "the account is left when this is dropped"]
pub struct Entered {
    not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.with_borrow_mut(Vec::pop);
    }
}

/// Bytes that an account counts while this lives.
#[derive(Debug)]
#[must_use = "the bytes are counted until this is dropped"]
pub struct Reservation {
    account: Account,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}

/// Values that an account counts while they live.
#[derive(Debug)]
pub struct Counted<T> {
    values: Vec<T>,
    _reservation: Reservation,
}

impl<T> Counted<T> {
    /// At most `count` values, counted in the account of this thread before they are made. Errors: as
    /// for [`Account::charge`].
    pub fn of(count: usize, values: impl FnOnce() -> Vec<T>) -> Result<Self, OutOfMemory> {
        let _reservation = Account::current().reserve(count.saturating_mul(size_of::<T>()))?;
        Ok(Counted { values: values(), _reservation })
    }
}

impl<T> std::ops::Deref for Counted<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> std::ops::DerefMut for Counted<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_the_largest_unit_that_fits() {
        let sizes = [0, 1023, 1024, 3 << 19, 4 << 30, usize::MAX];
        let written = sizes.map(|bytes| Bytes(bytes).to_string());
        let expected = ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 MiB", "4.0 GiB", "16777216.0 TiB"];
        assert_eq!(written, expected);
    }

    #[test]
    fn what_is_above_counts_too_and_either_limit_holds() {
        let above = Account::alone(100);
        let [a, b] = [80, 1000].map(|limit| Account::new(limit, Some(above.clone())));
        a.charge(60).unwrap();
        assert_eq!(
            a.charge(30),
            Err(OutOfMemory { needed: 30, live: 60, limit: Some(80) }),
            "its own limit"
        );
        assert_eq!(
            b.charge(50),
            Err(OutOfMemory { needed: 50, live: 60, limit: Some(100) }),
            "the limit above"
        );
        assert_eq!([a.live_bytes(), b.live_bytes(), above.live_bytes()], [60, 0, 60]);
        assert_eq!([a.limit_bytes(), b.limit_bytes()], [80, 100]);
        assert_eq!([a.free_bytes(), b.free_bytes()], [20, 40]);
        let reserved = b.reserve(40).unwrap();
        assert!(a.ensure_available(1).is_err());
        drop(reserved);
        a.release(60);
        assert_eq!([above.live_bytes(), above.peak_bytes()], [0, 100]);
    }

    /// Keeps bytes of an account.
    struct Kept(Account, AtomicUsize);

    impl Reclaim for Kept {
        fn reclaim(&self, bytes: usize) {
            let given = bytes.min(self.1.load(Ordering::Relaxed));
            self.1.fetch_sub(given, Ordering::Relaxed);
            self.0.cache(0, given);
        }
    }

    #[test]
    fn what_is_cached_makes_room() {
        let above = Account::alone(100);
        let [a, b] = [(); 2].map(|()| Account::new(usize::MAX, Some(above.clone())));
        let kept = Arc::new(Kept(a.clone(), AtomicUsize::new(70)));
        let weak: Weak<Kept> = Arc::downgrade(&kept);
        a.add_cache(weak);
        a.cache(70, 0);
        assert_eq!(b.room_bytes(), 30);
        b.charge(50).unwrap();
        assert_eq!([a.cached_bytes(), above.cached_bytes()], [50, 50]);
        b.charge(50).unwrap();
        assert_eq!(above.cached_bytes(), 0);
    }

    #[test]
    fn the_account_entered_last_is_current() {
        let account = Account::alone(7);
        let inner = account.enter();
        assert_eq!(Account::current().limit_bytes(), 7);
        drop(inner);
        assert!(Arc::ptr_eq(&Account::current().inner, &PROCESS.inner));
    }
}
