//! Functions of the process that loads the plugin, as custom calls: Python's, above all.
//!
//! A function registered with [`helio_register_callback`] serves all calls of its target. Which function
//! of its own each call means, it knows by the call's attribute `key`.

use std::collections::HashSet;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use helio::ir::{BackendConfig, Op};
use helio::{Call, Code, CustomCallRegistry, Error, Module, Result};

use crate::error;
use crate::raw::In;

/// How many bytes of a message a callback may write.
const MESSAGE_BYTES: usize = 1 << 16;

/// A callback: the call's key; the addresses of the operands, then of the results, a pointer for each
/// array or token (tokens have no bytes) at an address divisible by 16; where a message may be written,
/// and its most bytes. It returns 0, or the number of an error's code with a message that ends with a
/// zero byte.
pub type HelioCallback = unsafe extern "C" fn(
    key: u64,
    operands: *const *const c_void,
    results: *const *mut c_void,
    message: *mut c_char,
    capacity: usize,
) -> u32;

/// What is told of the key of a call: whether a program that has the call begins to live, or has ended and
/// so have its executions.
pub type HelioHold = unsafe extern "C" fn(key: u64, lives: bool);

/// What is registered besides the functions.
#[derive(Default)]
struct Registered {
    targets: HashSet<String>,
    hold: Option<HelioHold>,
}

fn registered() -> MutexGuard<'static, Registered> {
    static REGISTERED: LazyLock<Mutex<Registered>> = LazyLock::new(Mutex::default);
    // It is whole whenever the lock is free.
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The functions that all clients of the plugin have.
pub(crate) fn functions() -> &'static Arc<CustomCallRegistry> {
    static FUNCTIONS: LazyLock<Arc<CustomCallRegistry>> = LazyLock::new(Arc::default);
    &FUNCTIONS
}

/// Registers the function for custom calls of a target; gives 0, or the number of an error's code if the
/// name is null or not UTF-8, or there is no function.
///
/// # Safety
/// The name has `size` bytes. The function does what [`HelioCallback`] says, may be called from any
/// thread and several at once, and is there as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn helio_register_callback(
    target: *const u8,
    size: usize,
    function: Option<HelioCallback>,
) -> u32 {
    // SAFETY: the promise of the caller.
    let target = unsafe { In::new(target) };
    // SAFETY: as for the name itself.
    match (unsafe { target.text(size, "a target") }, function) {
        (Ok(target), Some(function)) if !target.is_empty() => {
            functions().register(target, move |call| call_back(function, call));
            registered().targets.insert(target.to_owned());
            0
        }
        _ => Code::InvalidArgument as u32,
    }
}

/// Registers whom to tell which functions are in use; none: nobody is told any more.
///
/// # Safety
/// The function may be called from any thread and several at once, and is there until another one is
/// registered and the calls of it that have begun are over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn helio_register_hold(function: Option<HelioHold>) {
    registered().hold = function;
}

/// The keys of a program's calls, which are in use as long as this lives.
pub(crate) struct Held {
    keys: Vec<u64>,
}

impl Held {
    /// The keys of a module; `None` if it calls no registered functions.
    pub(crate) fn of(module: &Module) -> Option<Arc<Held>> {
        let targets = registered().targets.clone();
        let instrs = module.computations().iter().flat_map(|computation| computation.instrs());
        let calls = instrs.filter(
            |instr| matches!(&instr.op, Op::CustomCall(call) if targets.contains(&call.target)),
        );
        let key = calls.filter_map(|call| {
            let config = call.extra.as_deref().and_then(|extra| extra.backend_config.as_ref());
            config.and_then(BackendConfig::attributes)?.integer("key").ok()
        });
        let keys: Vec<u64> = key.map(|key| key as u64).collect();
        (!keys.is_empty()).then(|| {
            let held = Held { keys };
            held.tell(true);
            Arc::new(held)
        })
    }

    fn tell(&self, lives: bool) {
        let Some(hold) = registered().hold else { return };
        for &key in &self.keys {
            // SAFETY: whoever registered the function promises that it may be called.
            unsafe { hold(key, lives) };
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.tell(false);
    }
}

fn call_back(function: HelioCallback, call: &mut Call<'_>) -> Result<()> {
    let key = call.info().attributes()?.integer("key")? as u64;
    let (operands, results) = call.addresses();
    let mut message = vec![0u8; MESSAGE_BYTES];
    // SAFETY: whoever registered the function promises what it does; the lists have a pointer for each
    // part, the operands are read and the results written only during the call, and the message has so
    // many bytes.
    let code = unsafe {
        function(
            key,
            operands.as_ptr().cast(),
            results.as_ptr().cast(),
            message.as_mut_ptr().cast(),
            message.len(),
        )
    };
    if code == 0 {
        return Ok(());
    }
    let len = message.iter().position(|&byte| byte == 0).unwrap_or(message.len());
    Err(Error::new(error::code(code), String::from_utf8_lossy(&message[..len])))
}
