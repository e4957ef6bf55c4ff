// SPDX-License-Identifier: BSD-3-Clause
//! Files that a program reads or writes at paths that its user gives. Only regular files are read.
//! A file is written as a whole or not at all, and never through another user's link.
//!
//! A file is written in the same directory as `.NAME.PID.tmp`, and then renamed. Neither step
//! follows a link, so a user who may write to the directory, as everybody may to `/tmp`, cannot
//! cause another file to be overwritten. If the process is killed in between, its temporary file is
//! left; the next process that writes the same file removes it. Devices, and pipes and links owned by
//! root or the user, such as `/dev/stdout`, stay what they are and are written into. Links in a path,
//! and those that a link at its end leads to, are followed if root or the user owns them (`way`). A
//! pipe of another user is refused: its reader could block the program, and read what is written.
//!
//! Nothing is synced to the disk: readers see whole files, but a file may not survive a power
//! failure.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, fstatfs, readlinkat};
use rustix::io::Errno;

use self::way::{MOST_LINKS, Way};
use crate::{is_gone, user};

mod way;

/// Opens a regular file to read. It does not wait for a pipe and does nothing to a device: both may
/// have no end. So may files of the kernel, such as `/proc/kmsg`, which loses what is read from it. A
/// link to a file is followed.
///
/// # Errors
/// The kernel's, or an error that names what it is instead of a file.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    refuse_others_than_files(&fs::metadata(path)?)?;
    // It may have been replaced since the check.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    refuse_others_than_files(&file.metadata()?)?;
    if is_of_the_kernel(&file)? {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "a file of the kernel, not a regular file",
        ));
    }
    Ok(file)
}

/// File systems whose files are functions of the kernel: proc, sysfs, debugfs, tracefs, and both versions of cgroup
/// (`linux/magic.h`). They claim to be regular.
const KERNEL: [u64; 6] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x27_e0eb, 0x6367_7270];

fn is_of_the_kernel(file: &File) -> io::Result<bool> {
    let kind = rustix::fs::fstatfs(file)?.f_type;
    // Signed on some machines; the numbers have 32 bits.
    Ok(KERNEL.contains(&(kind as u64 & 0xffff_ffff)))
}

/// What is in a regular file of at most `most` bytes.
///
/// # Errors
/// As for [`open_to_read`]; also if it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open_to_read(path)?.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let most = match most >> 20 {
            0 => format!("{most} bytes"),
            mib => format!("{mib} MiB"),
        };
        return Err(io::Error::new(ErrorKind::InvalidData, format!("larger than {most}")));
    }
    Ok(content)
}

fn refuse_others_than_files(found: &fs::Metadata) -> io::Result<()> {
    let kind = found.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::new(ErrorKind::InvalidInput, format!("{what}, not a regular file")))
}

/// Describes what other users may do with this file, which holds a secret such as a password; none
/// if nothing.
#[must_use]
pub fn exposure(file: &File, path: &Path) -> Option<String> {
    let mode = file.metadata().ok()?.mode();
    let what = match (mode & 0o004 != 0, mode & 0o002 != 0) {
        (_, true) => "change",
        (true, false) => "read",
        (false, false) => return None,
    };
    let path = path.display();
    Some(format!("all users may {what} it (mode {:o}): chmod 600 {path}", mode & 0o777))
}

/// What is at a path that is to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Nothing, or a file that may be replaced.
    File,
    /// A device, a pipe or a socket.
    Special,
    /// A link of root's or of the user's own.
    Link,
}

impl Place {
    fn of(path: &Path) -> io::Result<Self> {
        let way = Way::to(path)?;
        let path = &way.path;
        let found = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::File),
            found => found?,
        };
        if path.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        Self::of_what(&found)
    }

    /// What it is, if it is to be trusted.
    fn of_what(found: &fs::Metadata) -> io::Result<Self> {
        let kind = found.file_type();
        let refused = |what| {
            let text = format!("{what}; remove it or name another file");
            Err(io::Error::new(ErrorKind::PermissionDenied, text))
        };
        let owner = found.uid();
        match is_trusted(owner, user()) {
            _ if kind.is_file() => Ok(Self::File),
            _ if kind.is_dir() => Err(ErrorKind::IsADirectory.into()),
            true if kind.is_symlink() => Ok(Self::Link),
            false if kind.is_symlink() => {
                refused(format!("a link of user {owner}'s is not followed"))
            }
            // Only root makes devices.
            false if kind.is_fifo() => refused(format!("a pipe of user {owner}'s")),
            _ => Ok(Self::Special),
        }
    }
}

/// Returns true if `user` may follow a link or write into a pipe: its owner could have written the
/// target's content as well.
fn is_trusted(owner: u32, user: u32) -> bool {
    owner == 0 || owner == user
}

/// Checks that a file can be written there, as far as that is possible without writing.
///
/// # Errors
/// The kernel's, or that another user's link is there.
pub fn check(path: &Path) -> io::Result<()> {
    // A pipe is not opened: its reader would see it closed again.
    if Place::of(path)? == Place::File {
        remove_stale(path);
        drop(Temporary::create(path)?);
    }
    Ok(())
}

/// Writes a file as a whole or not at all; a device, a pipe or the target of a link is written
/// into.
///
/// # Errors
/// As for [`check`].
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    match open_other(path)? {
        Some(mut other) => other.write_all(content.as_ref()),
        None => {
            remove_stale(path);
            let mut temporary = Temporary::create(path)?;
            temporary.file.write_all(content.as_ref())?;
            temporary.rename().map(drop)
        }
    }
}

/// Creates an empty file to write into, which replaces an existing one; opens a device, a pipe or
/// the target of a link instead.
///
/// # Errors
/// As for [`check`].
pub fn create(path: &Path) -> io::Result<File> {
    match open_other(path)? {
        Some(other) => Ok(other),
        None => {
            remove_stale(path);
            Temporary::create(path)?.rename()
        }
    }
}

/// Removes a file made by [`write`] or [`create`], and nothing else.
pub fn remove(path: &Path) {
    let Ok(way) = Way::to(path) else { return };
    if Place::of(path).is_ok_and(|place| place == Place::File) {
        let _ = fs::remove_file(&way.path);
    }
}

/// Opens what is at a path to write, if it is not a file that may be replaced.
fn open_other(path: &Path) -> io::Result<Option<File>> {
    let mut way = Way::to(path)?;
    if matches!(Place::of(path)?, Place::File) {
        return Ok(None);
    }
    for links in 0..MOST_LINKS {
        let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = match rustix::fs::open(&way.path, how, Mode::empty()) {
            Ok(found) => File::from(found),
            Err(Errno::NOENT) => return create_new(&way.path).map(Some),
            Err(errno) => return Err(errno.into()),
        };
        let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()));
        let mut to_write = OpenOptions::new();
        to_write.write(true);
        way = match Place::of_what(&found.metadata()?)? {
            // Another one since the look.
            Place::File if links == 0 => return Err(ErrorKind::AlreadyExists.into()),
            // From here on it is this one that is opened, whatever is put in its place.
            Place::File => return to_write.truncate(true).open(&by_descriptor).map(Some),
            Place::Special => return to_write.open(&by_descriptor).map(Some),
            // The kernel's own links, as those of /dev/stdout, have no path that could be followed.
            Place::Link if fstatfs(&found)?.f_type == PROC_SUPER_MAGIC => {
                return to_write.truncate(true).open(&way.path).map(Some);
            }
            Place::Link => {
                let target = readlinkat(&found, "", Vec::new())?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                way.follow(&target)?
            }
        };
    }
    Err(Errno::LOOP.into())
}

/// An empty file where there is nothing, not by way of a link.
fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// A temporary file, which will replace the real one. Removed on drop.
#[derive(Debug)]
pub struct Temporary {
    /// The open temporary file.
    pub file: File,
    beside: PathBuf,
    way: Way,
    renamed: bool,
}

impl Temporary {
    /// Creates an empty one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn create(path: &Path) -> io::Result<Self> {
        let way = Way::to(path)?;
        let (directory, name) = parts(&way.path).ok_or(ErrorKind::InvalidInput)?;
        let beside = directory.join(temporary_name(name, std::process::id()));
        // It may be left from an earlier process with this ID.
        let _ = fs::remove_file(&beside);
        let file = create_new(&beside)?;
        Ok(Self { file, beside, way, renamed: false })
    }

    /// Renames it to its real name.
    ///
    /// # Errors
    /// The kernel's. The existing file is then unchanged.
    pub fn rename(mut self) -> io::Result<File> {
        let file = self.file.try_clone()?;
        fs::rename(&self.beside, &self.way.path)?;
        self.renamed = true;
        Ok(file)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.beside);
        }
    }
}

fn temporary_name(name: &OsStr, pid: u32) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{pid}.tmp"));
    temporary
}

/// The directory that a file is in, and its name.
fn parts(path: &Path) -> Option<(&Path, &OsStr)> {
    let directory = path.parent().filter(|directory| *directory != Path::new(""));
    Some((directory.unwrap_or(Path::new(".")), path.file_name()?))
}

/// Removes temporary files of processes that have ended.
pub fn remove_stale(path: &Path) {
    let Ok(way) = Way::to(path) else { return };
    let Some((directory, name)) = parts(&way.path) else { return };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if writer(&entry.file_name(), name).is_some_and(is_gone) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The process that writes `name` through the file `temporary`, if that is such a file.
fn writer(temporary: &OsStr, name: &OsStr) -> Option<u32> {
    let rest = temporary.as_bytes().strip_prefix(b".")?.strip_prefix(name.as_bytes())?;
    let pid = rest.strip_prefix(b".")?.strip_suffix(b".tmp")?;
    std::str::from_utf8(pid).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    /// A process ID that no process has: it is larger than the kernel's limit.
    const NOBODY: u32 = 1 << 23;

    fn make_pipe(path: &Path) {
        use rustix::fs::{CWD, FileType, mknodat};

        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_replaced_and_leave_nothing_beside_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("figures.json");
        let other = format!(".other.json.{NOBODY}.tmp");
        fs::write(directory.path().join(format!(".figures.json.{NOBODY}.tmp")), "half").unwrap();
        fs::write(directory.path().join(&other), "another's").unwrap();
        for text in ["first", "second"] {
            check(&path).unwrap();
            write(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        create(&path).unwrap().write_all(b"third").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third");
        assert_eq!(names(directory.path()), [other.as_str(), "figures.json"]);
        remove(&path);
        assert!(!path.exists());
        let nowhere = directory.path().join("nowhere/figures.json");
        assert!(check(&nowhere).is_err() && write(&nowhere, "").is_err());
        assert!(check(directory.path()).is_err() && write(directory.path(), "").is_err());
        assert!(create(directory.path()).is_err());
    }

    #[test]
    fn devices_and_links_of_one_s_own_stay_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "something longer").unwrap();
        symlink(&file, &link).unwrap();
        check(&link).unwrap();
        write(&link, "figures").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "figures");
        create(&link).unwrap().write_all(b"frames").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "frames");
        remove(&link);
        assert!(link.is_symlink());
        assert_eq!(write(Path::new("/dev/full"), "x").unwrap_err().kind(), ErrorKind::StorageFull);
        assert!(!Path::new("/dev/full").is_file());
        write(Path::new("/dev/null"), "x").unwrap();
        check(Path::new("/dev/stdout")).unwrap();
    }

    #[test]
    fn a_link_of_another_user_s_is_not_followed() {
        assert!(is_trusted(0, 1000) && is_trusted(1000, 1000) && !is_trusted(1000, 0));
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("precious"), directory.path().join("link"));
        fs::write(&file, "precious").unwrap();
        symlink(&file, &link).unwrap();
        if lchown(&link, Some(65534), None).is_err() {
            // Only root can give links to other users; `is_trusted` was tested.
            return;
        }
        for refused in [check(&link), write(&link, "x"), create(&link).map(drop)] {
            let error = refused.unwrap_err().to_string();
            assert_eq!(
                error,
                "a link of user 65534's is not followed; remove it or name another file"
            );
        }
        remove(&link);
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
        // A link at the temporary file's name is not followed either.
        let path = directory.path().join("new");
        let beside = directory.path().join(temporary_name(OsStr::new("new"), std::process::id()));
        symlink(&file, &beside).unwrap();
        write(&path, "figures").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&path).unwrap(), "figures");
    }

    #[test]
    fn a_link_leads_no_further_than_to_links_of_one_s_own() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("shared")).unwrap();
        fs::write(at("precious"), "precious").unwrap();
        symlink("shared/out", at("own")).unwrap();
        // There is nothing yet.
        write(&at("own"), "figures").unwrap();
        assert_eq!(fs::read_to_string(at("shared/out")).unwrap(), "figures");
        symlink("own", at("chain")).unwrap();
        write(&at("chain"), "more").unwrap();
        assert_eq!(fs::read_to_string(at("shared/out")).unwrap(), "more");
        symlink("endless", at("endless")).unwrap();
        assert!(write(&at("endless"), "x").is_err());
        fs::remove_file(at("shared/out")).unwrap();
        symlink("../precious", at("shared/out")).unwrap();
        if lchown(at("shared/out"), Some(65534), None).is_err() {
            // Only root gives links away.
            return;
        }
        for name in ["own", "chain"] {
            for refused in [write(&at(name), "x"), create(&at(name)).map(drop)] {
                let error = refused.unwrap_err().to_string();
                assert!(error.starts_with("a link of user 65534's is not followed"), "{error}");
            }
        }
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "precious");
    }

    #[test]
    fn a_pipe_of_another_user_s_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, link) = (directory.path().join("pipe"), directory.path().join("link"));
        make_pipe(&pipe);
        symlink("pipe", &link).unwrap();
        let reader = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&pipe)
            .unwrap();
        for own in [&pipe, &link] {
            check(own).unwrap();
            write(own, "figures").unwrap();
            let mut text = [0; 7];
            (&reader).read_exact(&mut text).unwrap();
            assert_eq!(&text, b"figures");
        }
        drop(reader);
        if std::os::unix::fs::chown(&pipe, Some(65534), None).is_err() {
            // Only root gives pipes away.
            return;
        }
        for path in [&pipe, &link] {
            for refused in [write(path, "x"), create(path).map(drop)] {
                let error = refused.unwrap_err().to_string();
                assert_eq!(error, "a pipe of user 65534's; remove it or name another file");
            }
        }
        assert!(check(&pipe).is_err());
    }

    #[test]
    fn what_others_may_do_with_a_secret_is_said() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        let file = File::create(&path).unwrap();
        let said = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            exposure(&file, &path)
        };
        assert_eq!(said(0o600), None);
        assert_eq!(said(0o640), None);
        let hint = format!(": chmod 600 {}", path.display());
        assert_eq!(said(0o644), Some(format!("all users may read it (mode 644){hint}")));
        assert_eq!(said(0o666), Some(format!("all users may change it (mode 666){hint}")));
    }

    #[test]
    fn only_files_with_an_end_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let (file, pipe) = (directory.path().join("file"), directory.path().join("pipe"));
        fs::write(&file, "content").unwrap();
        symlink("file", directory.path().join("link")).unwrap();
        make_pipe(&pipe);
        symlink("pipe", directory.path().join("to-pipe")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(directory.path().join("s")).unwrap();
        assert_eq!(read(&file, 7).unwrap(), b"content");
        assert_eq!(read(&directory.path().join("link"), 7).unwrap(), b"content");
        // Opening a pipe without a writer would block.
        for (name, most, why) in [
            ("file", 6, "larger than 6 bytes"),
            ("pipe", 6, "a pipe, not a regular file"),
            ("to-pipe", 6, "a pipe, not a regular file"),
            ("s", 6, "a socket, not a regular file"),
            ("/dev/zero", 2 << 20, "a device, not a regular file"),
            ("/proc/version", 2 << 20, "a file of the kernel, not a regular file"),
            (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                6,
                "a file of the kernel, not a regular file",
            ),
            (".", 6, "is a directory"),
        ] {
            let error = read(&directory.path().join(name), most).unwrap_err().to_string();
            assert_eq!(error, why, "{name}");
        }
        assert_eq!(read(&directory.path().join("no"), 6).unwrap_err().kind(), ErrorKind::NotFound);
        let large = directory.path().join("large");
        File::create(&large).unwrap().set_len((2 << 20) + 1).unwrap();
        assert_eq!(read(&large, 2 << 20).unwrap_err().to_string(), "larger than 2 MiB");
    }

    #[test]
    fn a_hard_link_is_replaced_and_its_file_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("precious"), directory.path().join("link"));
        fs::write(&file, "precious").unwrap();
        fs::hard_link(&file, &link).unwrap();
        create(&link).unwrap().write_all(b"frames").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&link).unwrap(), "frames");
    }
}
