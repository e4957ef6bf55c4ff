// SPDX-License-Identifier: BSD-3-Clause
//! The directory `dpdk` that has the run-time directories of all programs of a user, and whether another user controls it.
//!
//! Without `XDG_RUNTIME_DIR` that is `/tmp/dpdk`, which whoever comes first can make.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::{is_root, user};

/// Returns EAL's choice of the directory in which `dpdk/PREFIX` is (`eal_create_runtime_dir` in DPDK).
#[must_use]
pub fn runtime_base() -> PathBuf {
    choose(is_root(), |name| env::var_os(name))
}

fn choose(root: bool, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    given("RUNTIME_DIRECTORY").unwrap_or_else(|| match root {
        true => PathBuf::from("/var/run"),
        false => given("XDG_RUNTIME_DIR").unwrap_or_else(|| PathBuf::from("/tmp")),
    })
}

/// Returns the directory `dpdk` below `base`, and makes it, with access for this user only, unless it is there. If that is
/// not possible, whoever uses it will find out.
///
/// # Errors
/// Another user than root controls it: could make files and sockets there, and exchange those of this program.
pub fn dpdk_directory(base: &Path) -> io::Result<PathBuf> {
    let directory = base.join("dpdk");
    let _ = fs::DirBuilder::new().mode(0o700).create(&directory);
    let looks = [fs::symlink_metadata(&directory), fs::metadata(&directory)];
    // In a user namespace root may have no number: what is root's seems to be of the user who has `/`.
    let root = fs::metadata("/").map_or(0, |found| found.uid());
    let trusted = [0, user(), root];
    for found in looks {
        let found = match found {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(directory),
            found => found?,
        };
        examine(found.uid(), found.mode(), found.is_symlink(), &trusted).map_err(|what| {
            let why = "could put files and sockets in place of this program's";
            let hint = "set XDG_RUNTIME_DIR, as root RUNTIME_DIRECTORY, to a directory of yours";
            let text = format!("{what} {why}; {hint}");
            io::Error::new(ErrorKind::PermissionDenied, text)
        })?;
    }
    Ok(directory)
}

/// Says which others control a directory, or a link in its place, if any do.
fn examine(owner: u32, mode: u32, is_link: bool, trusted: &[u32]) -> Result<(), String> {
    match trusted.contains(&owner) {
        false => Err(format!("it belongs to user {owner}, who")),
        true if !is_link && mode & 0o002 != 0 => {
            Err(format!("all users may write to it (mode {:o}) and", mode & 0o7777))
        }
        true => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

    use super::*;

    #[test]
    fn the_directory_is_eal_s() {
        let of = |root, set: &'static [(&'static str, &'static str)]| {
            choose(root, |name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
            })
        };
        assert_eq!(of(true, &[]), Path::new("/var/run"));
        assert_eq!(of(true, &[("XDG_RUNTIME_DIR", "/x")]), Path::new("/var/run"));
        assert_eq!(of(false, &[("XDG_RUNTIME_DIR", "/x")]), Path::new("/x"));
        assert_eq!(of(false, &[("XDG_RUNTIME_DIR", "")]), Path::new("/tmp"));
        for root in [true, false] {
            assert_eq!(
                of(root, &[("RUNTIME_DIRECTORY", "/r"), ("XDG_RUNTIME_DIR", "/x")]),
                Path::new("/r")
            );
        }
    }

    #[test]
    fn a_directory_that_others_control_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let (base, directory) = (scratch.path(), scratch.path().join("dpdk"));
        let mode = |mode| fs::set_permissions(&directory, fs::Permissions::from_mode(mode));
        // Made where there is none, and for this user only.
        assert_eq!(dpdk_directory(base).unwrap(), directory);
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        for (bits, good) in [(0o700, true), (0o775, true), (0o777, false), (0o1777, false)] {
            mode(bits).unwrap();
            assert_eq!(dpdk_directory(base).is_ok(), good, "{bits:o}");
        }
        let error = dpdk_directory(base).unwrap_err().to_string();
        assert!(error.starts_with("all users may write to it (mode 1777) and could"), "{error}");
        assert!(error.contains("set XDG_RUNTIME_DIR"), "{error}");
        mode(0o700).unwrap();
        // Who cannot make it is told by EAL.
        assert!(dpdk_directory(&base.join("none")).is_ok());
        let linked = base.join("linked");
        fs::create_dir(&linked).unwrap();
        symlink("../dpdk", linked.join("dpdk")).unwrap();
        assert!(dpdk_directory(&linked).is_ok());
        if lchown(linked.join("dpdk"), Some(65533), None).is_err() {
            // Only root gives links and directories away.
            return;
        }
        chown(&directory, Some(65533), None).unwrap();
        for base in [base, &linked] {
            let error = dpdk_directory(base).unwrap_err().to_string();
            assert!(error.starts_with("it belongs to user 65533, who could put"), "{error}");
        }
    }
}
