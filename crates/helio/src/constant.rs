//! Constants of programs, each in memory once however many programs have it.
//!
//! A model that is compiled for six batch sizes has one copy of its weights: programs read the memory
//! of the literal itself, or share a copy that lies better.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use helio_ir::{Array, Literal, WeakArray};
use helio_runtime::kernels::gemm::RightLayout;
use helio_runtime::program::LENT_ALIGN;
use helio_runtime::{Block, Memory, OutOfMemory, View};

use crate::packed::PackedConstant;

/// The bytes from which on a literal's own memory is read. Less fits into a core's caches, from which
/// vectors are read the faster for being aligned.
const IN_PLACE_BYTES: usize = 4 << 20;

/// The bytes from which on copies are shared; finding out costs more than to copy less.
const SHARED_BYTES: usize = 1 << 10;

/// What programs of a client have as constants.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// By the address of a literal's elements, which are kept as long as the constant is: so no two
    /// constants that are in use have one address.
    by_address: HashMap<usize, Weak<Constant>>,
    /// At how many entries those no longer in use are removed.
    full: usize,
    /// What is packed of constants, by their address and how products see them.
    packed: HashMap<(usize, RightLayout), Weak<PackedConstant>>,
    /// What was computed of constants.
    computed: Vec<Computed>,
}

/// What a program has given.
#[derive(Debug)]
struct Computed {
    /// The program's text, and what else its results depend on.
    program: String,
    args: Vec<WeakArray>,
    results: Vec<WeakArray>,
}

impl Computed {
    /// The results, as long as programs have them all.
    fn results(&self) -> Option<Vec<Literal>> {
        self.results.iter().map(|result| result.upgrade().map(Literal::Array)).collect()
    }

    /// Whether it is this program, run for these arrays.
    fn is(&self, program: &str, args: &[Literal]) -> bool {
        let is_arg =
            |(kept, arg): (&WeakArray, &Literal)| arg.as_array().is_some_and(|a| kept.is(a));
        self.program == program
            && self.args.len() == args.len()
            && self.args.iter().zip(args).all(is_arg)
    }
}

/// The elements of a literal, and perhaps a copy of them as bytes.
#[derive(Debug)]
struct Constant {
    array: Array,
    copy: Option<Block>,
}

impl AsRef<[u8]> for Constant {
    fn as_ref(&self) -> &[u8] {
        let copy = self.copy.as_ref().map(Block::as_slice);
        copy.or_else(|| self.array.as_bytes()).unwrap_or_default()
    }
}

impl Constants {
    /// The bytes of an array, in memory that a program can read.
    pub(crate) fn view(&self, array: &Array, memory: &Memory) -> Result<View, OutOfMemory> {
        let bytes = array.data().len() * array.element().size_bytes();
        if bytes < SHARED_BYTES {
            return Ok(memory.copy_of(&array.to_bytes())?.into());
        }
        let address = std::ptr::from_ref(array.data()).addr();
        if let Some(constant) = self.lock().by_address.get(&address).and_then(Weak::upgrade) {
            return Ok(View::of_host(constant));
        }
        // Others go on meanwhile; if two copy the same, the later one is found from then on.
        let in_place = array.as_bytes().is_some_and(|bytes| {
            bytes.len() >= IN_PLACE_BYTES && bytes.as_ptr().align_offset(LENT_ALIGN) == 0
        });
        let copy = match in_place {
            true => None,
            false => Some(memory.copy_of(&array.to_bytes())?),
        };
        let constant = Arc::new(Constant { array: array.clone(), copy });
        let mut shared = self.lock();
        if shared.by_address.len() >= shared.full {
            shared.by_address.retain(|_, constant| constant.strong_count() > 0);
            shared.full = 2 * shared.by_address.len() + 64;
        }
        shared.by_address.insert(address, Arc::downgrade(&constant));
        Ok(View::of_host(constant))
    }

    /// What products that see a constant in this way have packed of it, or will.
    pub(crate) fn packed(
        &self,
        constant: &View,
        layout: RightLayout,
        bytes: usize,
        memory: &Memory,
    ) -> Arc<PackedConstant> {
        let mut shared = self.lock();
        let key = (constant.as_slice().as_ptr().addr(), layout);
        if let Some(packed) = shared.packed.get(&key).and_then(Weak::upgrade) {
            return packed;
        }
        shared.packed.retain(|_, packed| packed.strong_count() > 0);
        let packed = Arc::new(PackedConstant::new(constant.clone(), bytes, memory.clone()));
        shared.packed.insert(key, Arc::downgrade(&packed));
        packed
    }

    /// What a program gives for constants, if it was run for them and other programs have that still. `program` is its text,
    /// and what else its results depend on.
    pub(crate) fn computed(&self, program: &str, args: &[Literal]) -> Option<Vec<Literal>> {
        self.lock()
            .computed
            .iter()
            .filter(|kept| kept.is(program, args))
            .find_map(Computed::results)
    }

    /// Remembers what a program gave.
    pub(crate) fn remember(&self, program: String, args: &[Literal], results: &[Literal]) {
        let weak = |all: &[Literal]| -> Option<Vec<WeakArray>> {
            all.iter().map(|literal| Some(literal.as_array()?.downgrade())).collect()
        };
        let (Some(args), Some(results)) = (weak(args), weak(results)) else { return };
        let mut shared = self.lock();
        shared.computed.retain(|kept| kept.results().is_some());
        shared.computed.push(Computed { program, args, results });
    }

    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeros(bytes: usize) -> Array {
        Array::new([bytes], vec![0u8; bytes]).expect("an array")
    }

    #[test]
    fn a_constant_lies_in_memory_once() {
        let (constants, memory) = (Constants::default(), Memory::new());
        let view = |array: &Array| constants.view(array, &memory).expect("memory");
        let small = zeros(SHARED_BYTES);
        let (first, again) = (view(&small), view(&small.clone()));
        assert_eq!(first.as_slice().as_ptr(), again.as_slice().as_ptr());
        assert_eq!(memory.live_bytes(), SHARED_BYTES);
        // Equal elements elsewhere are another constant.
        let other = view(&zeros(SHARED_BYTES));
        assert_eq!(memory.live_bytes(), 2 * SHARED_BYTES);
        drop((first, again, other));
        assert_eq!(memory.live_bytes(), 0);
        let large = zeros(IN_PLACE_BYTES);
        let elements = large.as_bytes().expect("bytes").as_ptr();
        if elements.align_offset(LENT_ALIGN) == 0 {
            assert_eq!(view(&large).as_slice().as_ptr(), elements);
            assert_eq!(memory.live_bytes(), 0);
        }
    }

    #[test]
    fn what_was_computed_is_known_while_it_is_in_use() {
        let constants = Constants::default();
        let literal = |byte: u8| Literal::from(Array::new([64], vec![byte; 64]).expect("an array"));
        let (args, others, results) = ([literal(1)], [literal(1)], [literal(2)]);
        constants.remember("negate".into(), &args, &results);
        let found = constants.computed("negate", &args).expect("it is known");
        assert_eq!(found, results);
        // Equal elements elsewhere are another constant.
        assert!(constants.computed("negate", &others).is_none());
        assert!(constants.computed("abs", &args).is_none());
        drop((found, results));
        assert!(constants.computed("negate", &args).is_none(), "nobody has it");
        constants.remember("abs".into(), &args, &[literal(3)]);
        assert_eq!(constants.lock().computed.len(), 1, "what nobody has is forgotten");
    }

    #[test]
    fn constants_no_longer_in_use_are_forgotten() {
        let (constants, memory) = (Constants::default(), Memory::new());
        for _ in 0..1000 {
            constants.view(&zeros(SHARED_BYTES), &memory).expect("memory");
        }
        assert!(constants.lock().by_address.len() <= 64);
        assert_eq!(memory.live_bytes(), 0);
    }
}
