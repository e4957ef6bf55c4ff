// SPDX-License-Identifier: BSD-3-Clause
//! The path of the socket: `RUNTIME_DIR/dpdk/PREFIX/dpdk_telemetry.v2`, as in EAL.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

const SOCKET: &str = "dpdk_telemetry.v2";
/// Longest path of a socket: `sun_path` without the NUL.
const LONGEST_PATH: usize = 107;

/// Why there is no path for a socket.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The path would be in another directory.
    #[error("--file-prefix {0:?}: must be a word without slashes")]
    Prefix(String),
    /// Another process uses the path.
    #[error("--file-prefix {prefix}: a running program answers on {}; give each program its own", .socket.display())]
    Taken {
        /// The prefix.
        prefix: String,
        /// Its socket.
        socket: PathBuf,
    },
    /// The path is too long for the kernel.
    #[error("{}: longer than 107 bytes, the most for a socket; shorten --file-prefix or the run-time directory", .0.display())]
    Long(PathBuf),
    /// Other users can put files there.
    #[error("{0}")]
    Shared(#[source] io::Error),
    /// The directory cannot be made.
    #[error("{}: {source}; set RUNTIME_DIRECTORY (as root) or XDG_RUNTIME_DIR to a directory of yours", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// A directory for one program. On drop it removes the socket, if this program has bound it, and
/// then the directory if it is empty.
#[derive(Debug)]
pub struct Place {
    directory: PathBuf,
    has_socket: bool,
}

impl Place {
    /// Makes the directory of a file prefix, and removes files that a killed program left in it.
    ///
    /// # Errors
    /// See [`PlaceError`].
    pub fn make(prefix: &str) -> Result<Self, PlaceError> {
        host::make_runtime_directory().map_err(PlaceError::Shared)?;
        Self::make_in(&host::runtime_directory(), prefix)
    }

    /// `runtime`: the directory in which all programs have theirs.
    pub(crate) fn make_in(runtime: &Path, prefix: &str) -> Result<Self, PlaceError> {
        if prefix.is_empty() || prefix.starts_with('.') || prefix.contains(['/', '\0']) {
            return Err(PlaceError::Prefix(prefix.to_owned()));
        }
        let directory = runtime.join(prefix);
        let socket = directory.join(SOCKET);
        if socket.as_os_str().len() > LONGEST_PATH {
            return Err(PlaceError::Long(socket));
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|source| PlaceError::Directory { path: directory.clone(), source })?;
        if host::is_stale_socket(&socket) {
            let _ = fs::remove_file(&socket);
        }
        if socket.symlink_metadata().is_ok() {
            return Err(PlaceError::Taken { prefix: prefix.to_owned(), socket });
        }
        Ok(Self { directory, has_socket: false })
    }

    /// The socket's path.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.join(SOCKET)
    }

    /// Records that the socket was bound by this program. Until then it may belong to another
    /// program, which started at the same time and was faster.
    pub(crate) fn is_ours(&mut self) {
        self.has_socket = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.has_socket {
            let _ = fs::remove_file(self.socket());
        }
        // Other processes' files stay, and then the directory stays, too.
        let _ = fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_place_is_left_as_it_was_found() {
        let runtime = tempfile::tempdir().unwrap();
        let mut place = Place::make_in(runtime.path(), "a").unwrap();
        let socket = place.socket();
        assert_eq!(socket, runtime.path().join("a/dpdk_telemetry.v2"));
        let listener = UnixListener::bind(&socket).unwrap();
        place.is_ours();
        let taken = Place::make_in(runtime.path(), "a").unwrap_err().to_string();
        assert!(taken.contains("--file-prefix a"), "{taken}");
        drop(listener);
        // As after SIGKILL: the socket exists, but no process serves it.
        std::mem::forget(place);
        assert!(socket.exists());
        drop(Place::make_in(runtime.path(), "a").unwrap());
        assert!(!runtime.path().join("a").exists());
    }

    #[test]
    fn what_is_no_prefix_is_refused_and_makes_nothing() {
        let runtime = tempfile::tempdir().unwrap();
        for prefix in ["", "..", "a/b", "/", ".x", "a\0"] {
            let error = Place::make_in(runtime.path(), prefix).unwrap_err();
            assert!(matches!(error, PlaceError::Prefix(_)), "{prefix:?}: {error}");
        }
        let long = Place::make_in(runtime.path(), &"x".repeat(100)).unwrap_err();
        assert!(matches!(long, PlaceError::Long(_)), "{long}");
        assert_eq!(fs::read_dir(runtime.path()).unwrap().count(), 0);
    }
}
