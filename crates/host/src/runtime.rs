// SPDX-License-Identifier: BSD-3-Clause
//! The directory in which EAL has a run-time directory for each program: `dpdk` below `RUNTIME_DIRECTORY`, or below
//! `/var/run` (root), `XDG_RUNTIME_DIR` or `/tmp` (others).
//!
//! Files there are opened by name, written to and removed. A user who may write to the directory could
//! replace them by links to files of the user who runs the program.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::{is_root, user};

/// Bit of a mode: everybody may write.
const WRITABLE: u32 = 0o002;

/// The directory of this process's environment, as `eal_create_runtime_dir` in DPDK finds it.
#[must_use]
pub fn runtime_directory() -> PathBuf {
    choose(is_root(), |name| env::var_os(name)).join("dpdk")
}

fn choose(root: bool, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    given("RUNTIME_DIRECTORY").unwrap_or_else(|| match root {
        true => PathBuf::from("/var/run"),
        false => given("XDG_RUNTIME_DIR").unwrap_or_else(|| PathBuf::from("/tmp")),
    })
}

/// Makes that directory if it is not there, so that nobody else makes it meanwhile.
///
/// # Errors
/// Other users can put files there: it is another user's, or everybody may write to it. That it cannot be made is no error
/// here.
pub fn make_runtime_directory() -> io::Result<()> {
    own(&runtime_directory())
}

fn own(directory: &Path) -> io::Result<()> {
    // If it cannot be made, EAL reports why.
    let _ = fs::DirBuilder::new().mode(0o700).create(directory);
    let link = match directory.symlink_metadata() {
        Ok(link) => link,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    refuse_others(directory, &link)?;
    if link.is_symlink() {
        refuse_others(directory, &directory.metadata()?)?;
    }
    Ok(())
}

fn refuse_others(directory: &Path, found: &fs::Metadata) -> io::Result<()> {
    // In a user namespace root may have no number there: its files seem to belong to the owner of `/`.
    let root = fs::metadata("/").map_or(0, |found| found.uid());
    let why = match (found.uid(), found.mode()) {
        (owner, _) if ![0, user(), root].contains(&owner) => {
            format!("it belongs to user {owner}, who")
        }
        (_, mode) if mode & WRITABLE != 0 && !found.is_symlink() => {
            format!("its mode is {:o}, and other users", mode & 0o7777)
        }
        _ => return Ok(()),
    };
    Err(io::Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "{}: {why} can have this program write to other files; set {} to a directory that only you can write to",
            directory.display(),
            if is_root() { "RUNTIME_DIRECTORY" } else { "XDG_RUNTIME_DIR" }
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

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
    fn nobody_else_has_files_there() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("dpdk");
        own(&directory).unwrap();
        assert_eq!(directory.metadata().unwrap().mode() & 0o7777, 0o700);
        own(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o1777)).unwrap();
        let told = own(&directory).unwrap_err().to_string();
        assert!(told.contains("/dpdk: its mode is 1777, and other users can have"), "{told}");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let link = base.path().join("link");
        symlink("dpdk", &link).unwrap();
        own(&link).unwrap();
        // It cannot be made: EAL will say so.
        own(&base.path().join("none/dpdk")).unwrap();
        if is_root() {
            chown(&directory, Some(1), Some(1)).unwrap();
            for each in [&directory, &link] {
                let told = own(each).unwrap_err().to_string();
                assert!(told.contains(": it belongs to user 1, who can have this"), "{told}");
            }
            chown(&directory, Some(0), Some(0)).unwrap();
            rustix::fs::chownat(
                rustix::fs::CWD,
                &link,
                Some(rustix::process::Uid::from_raw(1)),
                None,
                rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
            )
            .unwrap();
            assert!(own(&link).is_err());
        }
    }
}
