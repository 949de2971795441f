//! How large the processor's caches are.

use std::sync::OnceLock;

/// Bytes of the second-level cache where the processor does not say: what most have at least.
const USUAL_SECOND_LEVEL: usize = 1 << 20;

/// Bytes of the second-level cache, which each core has for itself.
pub(super) fn second_level_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| found(2).unwrap_or(USUAL_SECOND_LEVEL))
}

/// Bytes of the third-level cache, which cores share; none where the processor does not say.
fn third_level_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| found(3).unwrap_or(0))
}

/// Bytes of the largest third-level cache that is near: what a core reads from it comes soon enough for tiles of a
/// product not to wait.
const NEAR_BYTES: usize = 128 << 20;

/// Whether the third-level cache is far from each core, as one that is spread over a large processor is.
pub(super) fn is_third_level_far() -> bool {
    third_level_bytes() > NEAR_BYTES
}

/// Bytes of the cache of data of this level, if the processor says. (Miri has no instruction that asks it.)
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn found(level: u32) -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // Intel's list of caches and AMD's, of the same form: an entry without a kind ends it, and so does
    // one that is not there.
    const LISTS: [u32; 2] = [0x4, 0x8000_001d];
    const MOST: u32 = 16;
    LISTS.into_iter().filter(|list| __cpuid(list & 0x8000_0000).eax >= *list).find_map(|list| {
        let caches = (0..MOST).map(|index| __cpuid_count(list, index));
        let mut caches = caches.take_while(|cache| cache.eax & 0x1f != 0);
        let is_wanted = |kind: u32, at: u32| (kind == 1 || kind == 3) && at == level;
        let cache = caches.find(|cache| is_wanted(cache.eax & 0x1f, cache.eax >> 5 & 7))?;
        let more = [cache.ebx >> 22, cache.ebx >> 12 & 0x3ff, cache.ebx & 0xfff, cache.ecx];
        more.iter().try_fold(1_usize, |bytes, &n| bytes.checked_mul(n as usize + 1))
    })
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn found(_: u32) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_have_sizes_that_caches_have() {
        let bytes = second_level_bytes();
        assert!((64 << 10..=256 << 20).contains(&bytes), "{bytes} bytes");
        let bytes = third_level_bytes();
        assert!(bytes == 0 || (256 << 10..=64 << 30).contains(&bytes), "{bytes} bytes");
    }
}
