// SPDX-License-Identifier: BSD-3-Clause
//! Lines for whoever watches. A terminal or a pipe that is gone is no reason to stop forwarding: what
//! cannot be written is lost, where `println!` would panic. What a full disk has lost is said at the end, by
//! [`exit_code`].

use std::fmt::Display;
use std::process::ExitCode;

/// As `println!`; what cannot be written is lost.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::console::print(format_args!("{}\n", format_args!($($text)*)))
    };
}

/// As `print!`, and seen at once; what cannot be written is lost.
#[macro_export]
macro_rules! say_on {
    ($($text:tt)*) => {
        $crate::console::print(format_args!($($text)*))
    };
}

/// As `eprintln!`; what cannot be written is lost.
#[macro_export]
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub use host::console::print;

/// How a program ends: 1 after an error, which is said, and where lines of standard output were lost.
#[must_use]
pub fn exit_code<E: Display>(program: &str, outcome: Result<(), E>) -> ExitCode {
    let written = host::console::check();
    match (outcome, written) {
        (Ok(()), Ok(())) => ExitCode::SUCCESS,
        (Err(error), _) => {
            complain!("{program}: {error}");
            ExitCode::FAILURE
        }
        (Ok(()), Err(error)) => {
            complain!("{program}: standard output: {error}; what it printed is not complete");
            ExitCode::FAILURE
        }
    }
}
