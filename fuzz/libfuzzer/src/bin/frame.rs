// SPDX-License-Identifier: BSD-3-Clause
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::frame(bytes));
