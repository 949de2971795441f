//! Bodies are in `helio_testkit::hostile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    helio_testkit::hostile::literal_text(bytes);
});
