// SPDX-License-Identifier: BSD-3-Clause
//! Standard output of a program that goes on when a line cannot be written: a forwarder should not
//! stop because its terminal or pipe is closed. Output lost for another reason, such as a full
//! disk, is recorded, and the program reports it when it ends.

use std::fmt;
use std::io::{self, ErrorKind, Write as _};
use std::sync::{Mutex, MutexGuard};

use rustix::io::Errno;

/// The first error that lost output.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// As `print!`, followed by a flush. Errors are recorded for [`check`].
pub fn print(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    note(&mut lost(), out.write_fmt(text).and_then(|()| out.flush()));
}

/// Checks, when the program ends, that all output was written.
///
/// # Errors
/// The first error of standard output, unless its reader or terminal is gone.
pub fn check() -> io::Result<()> {
    lost().take().map_or(Ok(()), Err)
}

fn lost() -> MutexGuard<'static, Option<io::Error>> {
    LOST.lock().unwrap_or_else(|poison| poison.into_inner())
}

fn note(lost: &mut Option<io::Error>, written: io::Result<()>) {
    let Err(error) = written else { return };
    // A reader that has ended, or a terminal that was closed.
    let gone = error.kind() == ErrorKind::BrokenPipe
        || error.raw_os_error() == Some(Errno::IO.raw_os_error());
    if !gone && lost.is_none() {
        *lost = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_somebody_could_have_read_is_lost() {
        let mut lost = None;
        note(&mut lost, Ok(()));
        note(&mut lost, Err(ErrorKind::BrokenPipe.into()));
        note(&mut lost, Err(Errno::IO.into()));
        assert!(lost.is_none());
        note(&mut lost, Err(Errno::NOSPC.into()));
        note(&mut lost, Err(Errno::FBIG.into()));
        assert_eq!(lost.unwrap().kind(), ErrorKind::StorageFull);
    }
}
