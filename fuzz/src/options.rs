// SPDX-License-Identifier: BSD-3-Clause
//! Command lines.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use forwarders_common::l2fwd::Options;
use forwarders_common::options::{CommandLine, in_brackets, strtol, strtoul};

/// Reads the bytes, a word a line, as l2fwd's command line, and as numbers and pairs.
pub fn options(bytes: &[u8]) {
    let words = bytes.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    match Options::parse(words) {
        Ok(options) => {
            assert!(options.ports_per_lcore > 0 && options.period < 86_400);
            assert!(options.pairs.iter().flatten().flatten().all(|port| *port < 32));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let text = String::from_utf8_lossy(bytes);
    for radix in [0, 10, 16] {
        let rest = strtoul(&text, radix).map(|(_, rest)| rest);
        assert_eq!(rest, strtol(&text, radix).map(|(_, rest)| rest));
        assert!(rest.is_none_or(|rest| text.ends_with(rest) && rest.len() < text.len()));
    }
    assert!(in_brackets(&text, 9).into_iter().flatten().all(|pair| pair.len() < 9));
}
