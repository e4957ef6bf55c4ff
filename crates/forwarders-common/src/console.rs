// SPDX-License-Identifier: BSD-3-Clause
//! Output for the user. A forwarder should not stop because its terminal or pipe is closed: output
//! that cannot be written is lost, where `println!` would panic. If a full disk has lost output,
//! [`exit_code`] reports it at the end.

use std::fmt::Display;
use std::process::ExitCode;

/// As `println!`; output that cannot be written is lost.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::console::print(format_args!("{}\n", format_args!($($text)*)))
    };
}

/// As `print!`, followed by a flush; output that cannot be written is lost.
#[macro_export]
macro_rules! say_on {
    ($($text:tt)*) => {
        $crate::console::print(format_args!($($text)*))
    };
}

/// As `eprintln!`; output that cannot be written is lost.
#[macro_export]
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub use host::console::print;

/// A program's exit code: 1 after an error, which is printed, and if lines of standard output were
/// lost.
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
