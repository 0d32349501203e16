#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cold_fuzz::run("windows_text", bytes));
