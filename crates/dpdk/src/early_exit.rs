// SPDX-License-Identifier: BSD-3-Clause
//! EAL may end the process instead of returning: from 25.11 on it does so for an unknown option,
//! for example. It then prints what was wrong, but neither which program's options they were nor
//! all of them.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io::Write as _;
use std::marker::PhantomData;
use std::sync::OnceLock;

thread_local! {
    /// True while this thread is starting EAL. Without a destructor: exit handlers may still read
    /// it.
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// The message to print if the process ends.
static LAST_WORDS: OnceLock<String> = OnceLock::new();

/// While it lives, a call of `exit` with a failure on this thread first writes the last words to
/// standard error.
pub(crate) struct Starting(PhantomData<*mut ()>);

impl Starting {
    /// Takes effect once in a process; later calls change nothing.
    pub(crate) fn with(last_words: String) -> Self {
        if LAST_WORDS.set(last_words).is_ok() {
            on_failed_exit(speak);
        }
        STARTING.set(true);
        Self(PhantomData)
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        STARTING.set(false);
    }
}

extern "C" fn speak(status: c_int, _: *mut c_void) {
    // After `--help` EAL ends the process, too.
    if status != 0 && STARTING.get() {
        if let Some(words) = LAST_WORDS.get() {
            let _ = writeln!(std::io::stderr(), "{words}");
        }
    }
}

type Handler = extern "C" fn(c_int, *mut c_void);

/// glibc's `on_exit(3)`: handlers of `atexit` do not get the status.
#[cfg(target_env = "gnu")]
fn on_failed_exit(handler: Handler) {
    unsafe extern "C" {
        fn on_exit(handler: Handler, argument: *mut c_void) -> c_int;
    }
    // SAFETY: the prototype is that of stdlib.h; the handler is a function of this program, and uses no argument.
    // Without memory for it, the last words are not said.
    unsafe { on_exit(handler, std::ptr::null_mut()) };
}

#[cfg(not(target_env = "gnu"))]
fn on_failed_exit(_: Handler) {}

#[cfg(all(test, target_env = "gnu"))]
#[allow(clippy::unwrap_used)] // A test may.
mod tests {
    use super::*;
    use std::process::{Command, Output};

    const INSIDE: &str = "LINERATE_TEST_EXIT";

    /// This test again, in a process that ends as it is told.
    fn ended(how: &str) -> Output {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "early_exit::tests::last_words_are_those_of_a_failed_start"])
            .arg("--nocapture")
            .env(INSIDE, how)
            .output()
            .unwrap()
    }

    #[test]
    fn last_words_are_those_of_a_failed_start() {
        if let Some(how) = std::env::var_os(INSIDE) {
            let starting = Starting::with("the last words".to_owned());
            match how.to_str().unwrap() {
                "failed" => std::process::exit(234),
                "helped" => std::process::exit(0),
                "elsewhere" => {
                    let _ = std::thread::spawn(|| std::process::exit(3)).join();
                }
                _ => {
                    drop(starting);
                    std::process::exit(4)
                }
            }
        }
        for (how, code, said) in
            [("failed", 234, 1), ("helped", 0, 0), ("elsewhere", 3, 0), ("later", 4, 0)]
        {
            let output = ended(how);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{how}");
            assert_eq!(errors.matches("the last words\n").count(), said, "{how}: {errors}");
        }
    }
}
