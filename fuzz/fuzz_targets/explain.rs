#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ghostgpu_fuzz::check_log(bytes);
});
