// SPDX-License-Identifier: BSD-3-Clause
//! The files that give access to the API: a Unix socket for the same user and root, and a token for
//! TCP clients. They are in EAL's run-time directory and are removed when the program ends.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::otg::auth::Token;

/// Why one of the files could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EntranceError {
    /// The socket.
    #[error("the socket {0}: {1}; give EAL another --file-prefix")]
    Socket(PathBuf, io::Error),
    /// The token's file.
    #[error("the token {0}: {1}; give EAL another --file-prefix")]
    Token(PathBuf, io::Error),
}

/// The files. They are removed when this is dropped.
#[derive(Debug)]
pub struct Entrance {
    /// The Unix socket.
    pub socket: PathBuf,
    /// The file of the token, if clients of TCP need one.
    pub token: Option<PathBuf>,
}

impl Entrance {
    /// Makes the files in a directory to which only this user has access. Replaces those that a
    /// killed program with the same file prefix has left there.
    ///
    /// # Errors
    /// [`EntranceError`]; then no file stays.
    pub fn open(
        directory: &Path,
        token: Option<&Token>,
    ) -> Result<(Self, UnixListener), EntranceError> {
        let socket = directory.join("otg.sock");
        let listener =
            listen(&socket).map_err(|error| EntranceError::Socket(socket.clone(), error))?;
        let mut entrance = Entrance { socket, token: None };
        if let Some(token) = token {
            let file = directory.join("otg-token");
            write(&file, token).map_err(|error| EntranceError::Token(file.clone(), error))?;
            entrance.token = Some(file);
        }
        Ok((entrance, listener))
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        for file in [Some(&self.socket), self.token.as_ref()].into_iter().flatten() {
            let _ = fs::remove_file(file);
        }
    }
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    if host::is_stale_socket(socket) {
        let _ = fs::remove_file(socket);
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn write(file: &Path, token: &Token) -> io::Result<()> {
    let _ = fs::remove_file(file);
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(opened, "{}", token.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_starters_alone_and_go_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let token = Token::new().unwrap();
        for _ in 0..2 {
            let (entrance, listener) = Entrance::open(directory.path(), Some(&token)).unwrap();
            let file = entrance.token.clone().unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap().trim_end(), token.text());
            for path in [&file, &entrance.socket] {
                assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
            }
            // Another program serves it.
            let error = Entrance::open(directory.path(), None).unwrap_err();
            assert!(matches!(error, EntranceError::Socket(..)), "{error}");
            // Files of a killed program do no harm.
            drop(listener);
            std::mem::forget(entrance);
        }
        let (entrance, _listener) = Entrance::open(directory.path(), None).unwrap();
        drop(entrance);
        fs::remove_file(directory.path().join("otg-token")).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
