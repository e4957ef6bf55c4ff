// SPDX-License-Identifier: BSD-3-Clause
//! The path to a file that is written: links of other users are not followed.
//!
//! Each step starts from the directory before it, by its descriptor, so that an entry that is
//! replaced meanwhile does not lead elsewhere. The lab does the same in
//! `lab/linerate/records/output_paths.py`.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat, readlinkat};
use rustix::io::Errno;

use super::is_trusted;
use crate::user;

/// The kernel's own limit of links in a path.
pub(super) const MOST_LINKS: usize = 40;

/// How the parts of a path are opened: not to read them.
const HOW: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A file's name in a directory that was reached; whether the file exists, and what it is, was not
/// checked.
#[derive(Debug)]
pub struct Way {
    /// A path to the file that is valid as long as this lives.
    pub path: PathBuf,
    /// The directory that `path` refers to.
    directory: OwnedFd,
}

impl Way {
    /// Goes to the directory that contains a file. Links owned by root or the user are followed.
    ///
    /// # Errors
    /// The kernel's; that a link belongs to another user, with its name; or that the path ends in a
    /// directory.
    pub fn to(path: &Path) -> io::Result<Self> {
        Self::from(open(".", HOW | OFlags::DIRECTORY, Mode::empty())?, path)
    }

    /// Goes on from the directory that the file is in, to where a link in its place leads.
    ///
    /// # Errors
    /// As [`Self::to`].
    pub fn follow(self, target: &Path) -> io::Result<Self> {
        Self::from(self.directory, target)
    }

    fn from(start: OwnedFd, path: &Path) -> io::Result<Self> {
        let root = || open("/", HOW | OFlags::DIRECTORY, Mode::empty());
        let mut steps = steps(path);
        let mut directory = if path.is_absolute() { root()? } else { start };
        let mut links = 0;
        while let Some(step) = steps.pop() {
            if steps.is_empty() && step != ".." {
                let directory_path = format!("/proc/self/fd/{}", directory.as_raw_fd());
                let path = Path::new(&directory_path).join(step);
                return Ok(Self { path, directory });
            }
            let found = openat(&directory, &step, HOW | OFlags::NOFOLLOW, Mode::empty())?;
            let kind = fstat(&found)?;
            match FileType::from_raw_mode(kind.st_mode) {
                FileType::Directory => directory = found,
                FileType::Symlink => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    if !is_trusted(kind.st_uid, user()) {
                        let step = Path::new(&step).display();
                        return Err(io::Error::new(
                            ErrorKind::PermissionDenied,
                            format!("{step}: a link of user {}'s is not followed", kind.st_uid),
                        ));
                    }
                    let target = readlinkat(&found, "", Vec::new())?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        directory = root()?;
                    }
                    steps.extend(self::steps(&target));
                }
                _ => return Err(ErrorKind::NotADirectory.into()),
            }
        }
        Err(ErrorKind::IsADirectory.into())
    }
}

/// The names in the path, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/').rev();
    let names = names.filter(|name| !name.is_empty() && *name != b".");
    names.map(|name| OsString::from_vec(name.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    #[test]
    fn ways_are_those_of_the_kernel() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        symlink("a/b", at("down")).unwrap();
        symlink(directory.path(), at("a/up")).unwrap();
        symlink("loop", at("loop")).unwrap();
        fs::write(at("file"), "").unwrap();
        for (number, name) in
            ["x", "./x", "a/../x", "down/x", "down/../x", "a/up/down//x"].iter().enumerate()
        {
            fs::write(Way::to(&at(name)).unwrap().path, number.to_string()).unwrap();
            assert_eq!(fs::read_to_string(at(name)).unwrap(), number.to_string(), "{name}");
        }
        for (name, kind) in [
            ("no/x", ErrorKind::NotFound),
            ("file/x", ErrorKind::NotADirectory),
            ("a/..", ErrorKind::IsADirectory),
        ] {
            assert_eq!(Way::to(&at(name)).unwrap_err().kind(), kind, "{name}");
        }
        let endless = Way::to(&at("loop/x")).unwrap_err();
        assert_eq!(endless.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert_eq!(Way::to(Path::new("/")).unwrap_err().kind(), ErrorKind::IsADirectory);
        // A link at the end is not followed.
        assert!(Way::to(&at("loop")).unwrap().path.is_symlink());
        assert!(Way::to(Path::new("Cargo.toml")).unwrap().path.is_file());
    }

    #[test]
    fn links_of_others_in_the_middle_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (precious, link) = (directory.path().join("precious"), directory.path().join("link"));
        fs::create_dir(&precious).unwrap();
        symlink("precious", &link).unwrap();
        let own = directory.path().join("own");
        symlink("link", &own).unwrap();
        crate::files::write(&own.join("x"), "one's own").unwrap();
        assert_eq!(fs::read_to_string(precious.join("x")).unwrap(), "one's own");
        if lchown(&link, Some(65534), None).is_err() {
            // Only root can give links to other users.
            return;
        }
        for way in [&link, &own] {
            let path = way.join("x");
            for refused in [
                crate::files::check(&path),
                crate::files::write(&path, "another's"),
                crate::files::create(&path).map(drop),
                crate::files::Temporary::create(&path).map(drop),
            ] {
                assert_eq!(
                    refused.unwrap_err().to_string(),
                    "link: a link of user 65534's is not followed"
                );
            }
            crate::files::remove(&path);
        }
        assert_eq!(fs::read_to_string(precious.join("x")).unwrap(), "one's own");
        assert_eq!(fs::read_dir(&precious).unwrap().count(), 1);
    }
}
