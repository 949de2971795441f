//! Bodies are in `helio_testkit::hostile`.
#![no_main]

use helio::data::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    helio_testkit::hostile::data_file(Format::Safetensors, bytes);
});
