// SPDX-License-Identifier: BSD-3-Clause
//! Lines for whoever watches. A terminal or a pipe that is gone is no reason to stop forwarding: what
//! cannot be written is lost, where `println!` would panic.

/// As `println!`; what cannot be written is lost.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// As `print!`, and seen at once; what cannot be written is lost.
#[macro_export]
macro_rules! say_on {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let mut out = std::io::stdout();
        let _ = write!(out, $($text)*).and_then(|()| out.flush());
    }};
}

/// As `eprintln!`; what cannot be written is lost.
#[macro_export]
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
