// SPDX-License-Identifier: BSD-3-Clause
//! Files that others read: written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Whether something is there that a file must not be put in the place of: a device, a pipe or a link,
/// such as `/dev/stdout`.
fn is_special(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| !found.is_file())
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    PathBuf::from(name)
}

/// Whether a file can be written there, as far as can be said without doing it.
///
/// # Errors
/// The kernel's.
pub fn check(path: &Path) -> io::Result<()> {
    if is_special(path) {
        // A pipe would be opened, and its reader see it closed again.
        return match path.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok(()),
        };
    }
    let temporary = temporary(path);
    create(&temporary).and_then(|_| fs::remove_file(&temporary))
}

/// Writes a file whole or not at all; into a device, a pipe or what a link points to, as it comes.
///
/// # Errors
/// The kernel's.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    if is_special(path) {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        return file.write_all(content.as_ref());
    }
    let temporary = temporary(path);
    let written = create(&temporary).and_then(|mut file| file.write_all(content.as_ref()));
    written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

fn create(temporary: &Path) -> io::Result<File> {
    // Never follows a link that somebody put there.
    let _ = fs::remove_file(temporary);
    OpenOptions::new().write(true).create_new(true).open(temporary)
}

/// Removes what [`write`] has made, and nothing else.
pub fn remove(path: &Path) {
    if !is_special(path) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_and_leave_nothing_beside_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("figures.json");
        for text in ["first", "second"] {
            check(&path).unwrap();
            write(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        remove(&path);
        assert!(!path.exists());
        let nowhere = directory.path().join("nowhere/figures.json");
        assert!(check(&nowhere).is_err() && write(&nowhere, "").is_err());
        assert!(check(directory.path()).is_err() && write(directory.path(), "").is_err());
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "something longer").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        check(&link).unwrap();
        write(&link, "figures").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "figures");
        remove(&link);
        assert!(link.is_symlink());
        // A link of our own, so that a mistake here harms no device.
        let full = directory.path().join("full");
        std::os::unix::fs::symlink("/dev/full", &full).unwrap();
        assert_eq!(write(&full, "x").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(full.is_symlink());
    }
}
