// SPDX-License-Identifier: BSD-3-Clause
//! The directories in which API clients may have sockets. A user who can write to one could put a
//! socket where the generator expects a link's, and a memif or vhost peer can read this program's
//! memory.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

/// Bits of a mode: what the group and others may write, and that only owners remove what is there.
const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Directories, each with all the names that a location may use for it.
#[derive(Clone, Debug)]
pub struct Directories(Arc<[Names]>);

#[derive(Debug)]
struct Names {
    /// As it was given, made absolute.
    given: PathBuf,
    /// Without symbolic links.
    canonical: PathBuf,
}

/// Why sockets cannot be in a directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// EAL has not made the program's run-time directory.
    #[error("the run-time directory {0:?}: {1}; EAL says above why it is not there")]
    Own(PathBuf, io::Error),
    /// It cannot be accessed.
    #[error("--socket-directory {0}: {1}; give a directory that exists")]
    Unusable(PathBuf, io::Error),
    /// Others can make sockets there.
    #[error(
        "--socket-directory {directory}: its mode is {mode:04o}, so that other users can put their sockets there and read the memory of this program; give one that only you can write to: mkdir -m 700 DIRECTORY"
    )]
    Writable {
        /// As it was given.
        directory: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Others can put another directory in its place.
    #[error(
        "--socket-directory {directory}: other users can rename it, because the mode of {above} is {mode:04o}; give one in a directory that only you can write to, or that has the sticky bit, as /tmp: mkdir -m 700 DIRECTORY"
    )]
    Movable {
        /// As it was given.
        directory: PathBuf,
        /// The directory above it that others can write to.
        above: PathBuf,
        /// The mode of that directory.
        mode: u32,
    },
    /// Another user owns a directory above it, and may rename its contents even with a sticky bit.
    #[error(
        "--socket-directory {directory}: user {owner} can rename it, because {above} belongs to that user, and could put sockets of theirs in its place; give one in a directory of yours or root's: mkdir -m 700 DIRECTORY"
    )]
    Below {
        /// As it was given.
        directory: PathBuf,
        /// The directory above it.
        above: PathBuf,
        /// The owner of that.
        owner: u32,
    },
    /// Another user owns it.
    #[error(
        "--socket-directory {directory}: it belongs to user {owner}, who can put sockets there and read the memory of this program, which user {user} runs; give one of your own: mkdir -m 700 DIRECTORY"
    )]
    Foreign {
        /// As it was given.
        directory: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user that runs this program.
        user: u32,
    },
}

impl Directories {
    /// The program's run-time directory, which EAL has made, and those given on the command line.
    ///
    /// # Errors
    /// The first path that is not a directory. For those of the command line also the first in
    /// which a user other than root and the program's own can put a socket.
    pub fn new(
        own: Option<PathBuf>,
        chosen: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, DirectoryError> {
        let mut names = Vec::new();
        if let Some(own) = own {
            names.push(look(&own).map_err(|error| DirectoryError::Own(own, error))?);
        }
        for directory in chosen {
            let unusable = |error| DirectoryError::Unusable(directory.clone(), error);
            let found = look(&directory).map_err(unusable)?;
            check(&directory, &found.canonical)?;
            names.push(found);
        }
        Ok(Directories(names.into()))
    }

    /// Returns the socket's path in a unique form if it is directly in one of the directories: two
    /// locations are the same link if these paths are equal. The directory is compared as text,
    /// because a symbolic link in it could point elsewhere by the time the socket is made.
    pub(super) fn resolve(&self, path: &str) -> Option<PathBuf> {
        let (parent, name) = path.rsplit_once('/')?;
        if ["", ".", ".."].contains(&name) {
            return None;
        }
        let parent = Path::new(parent);
        let same = |names: &&Names| parent == names.given || parent == names.canonical;
        self.0.iter().find(same).map(|names| names.canonical.join(name))
    }
}

/// As a message lists them.
impl std::fmt::Display for Directories {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, names) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { ", " };
            write!(f, "{between}{}", names.given.display())?;
        }
        Ok(())
    }
}

fn look(directory: &Path) -> io::Result<Names> {
    let canonical = fs::canonicalize(directory)?;
    match canonical.is_dir() {
        true => Ok(Names { given: std::path::absolute(directory)?, canonical }),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// Checks that only root and the program's user can put sockets into a directory, or replace it.
fn check(given: &Path, canonical: &Path) -> Result<(), DirectoryError> {
    let look = |place: &Path| {
        fs::metadata(place).map_err(|error| DirectoryError::Unusable(place.to_owned(), error))
    };
    let user = host::user();
    // In a user namespace, root may be unmapped: its directories then seem to belong to 65534.
    let trusted = [0, user, look(Path::new("/"))?.uid()];
    for (above, place) in canonical.ancestors().enumerate() {
        let found = look(place)?;
        match above {
            0 => is_private(given, found.uid(), found.mode(), user)?,
            _ => is_fixed(given, place, found.uid(), found.mode(), &trusted)?,
        }
    }
    Ok(())
}

/// Access control lists show up in the group's bits. The sticky bit does not help: it prevents
/// other users from removing a socket, not from making one.
fn is_private(directory: &Path, owner: u32, mode: u32, user: u32) -> Result<(), DirectoryError> {
    let directory = directory.to_owned();
    match mode & WRITABLE {
        _ if owner != 0 && owner != user => Err(DirectoryError::Foreign { directory, owner, user }),
        0 => Ok(()),
        _ => Err(DirectoryError::Writable { directory, mode: mode & 0o7777 }),
    }
}

/// The sticky bit prevents all other users from renaming what is in a directory, but not its owner.
fn is_fixed(
    directory: &Path,
    above: &Path,
    owner: u32,
    mode: u32,
    trusted: &[u32],
) -> Result<(), DirectoryError> {
    let (directory, above) = (directory.to_owned(), above.to_owned());
    match mode & WRITABLE == 0 || mode & STICKY != 0 {
        _ if !trusted.contains(&owner) => Err(DirectoryError::Below { directory, above, owner }),
        true => Ok(()),
        false => Err(DirectoryError::Movable { directory, above, mode: mode & 0o7777 }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn chosen(directory: &Path) -> Result<Directories, DirectoryError> {
        Directories::new(None, [directory.to_owned()])
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_has_its_given_and_its_canonical_name() {
        let scratch = tempfile::tempdir().unwrap();
        let inside = scratch.path().join("in");
        fs::create_dir(&inside).unwrap();
        set_mode(&inside, 0o755);
        let alias = scratch.path().join("alias");
        symlink(&inside, &alias).unwrap();
        let directories = chosen(&alias).unwrap();
        let other = scratch.path().join("other");
        symlink(&inside, &other).unwrap();
        let canonical = fs::canonicalize(&inside).unwrap();
        let resolve = |path: PathBuf| directories.resolve(path.to_str().unwrap());
        // By either name it is the same socket.
        for name in ["s", "./s", "/s", ".//./s"] {
            let path = format!("{}/{name}", alias.display());
            assert_eq!(directories.resolve(&path), Some(canonical.join("s")), "{path}");
        }
        assert_eq!(resolve(canonical.join("s")), Some(canonical.join("s")));
        // Another link to it may lead elsewhere tomorrow.
        assert_eq!(resolve(other.join("s")), None);
        fs::write(scratch.path().join("file"), "").unwrap();
        for bad in ["file", "nothing"] {
            let bad = scratch.path().join(bad);
            let error = Directories::new(Some(inside.clone()), [bad.clone()]).unwrap_err();
            assert!(matches!(error, DirectoryError::Unusable(path, _) if path == bad));
        }
    }

    #[test]
    fn only_the_starter_can_write_to_it() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("d");
        fs::create_dir(&directory).unwrap();
        for mode in [0o700, 0o755, 0o1700] {
            set_mode(&directory, mode);
            assert!(chosen(&directory).is_ok(), "{mode:o}");
        }
        let alias = scratch.path().join("alias");
        symlink(&directory, &alias).unwrap();
        for mode in [0o770, 0o702, 0o777, 0o1777, 0o2775] {
            set_mode(&directory, mode);
            for name in [&directory, &alias] {
                let error = chosen(name).unwrap_err();
                assert!(matches!(error, DirectoryError::Writable { .. }), "{mode:o}: {error}");
                let error = error.to_string();
                assert!(error.contains(&format!("{mode:04o}")) && error.contains("mkdir -m 700"));
            }
            // EAL's own is not chosen.
            assert!(Directories::new(Some(directory.clone()), []).is_ok());
        }
    }

    #[test]
    fn it_belongs_to_root_or_the_starter() {
        let directory = Path::new("/d");
        for (owner, user) in [(0, 0), (0, 1000), (1000, 1000)] {
            assert!(is_private(directory, owner, 0o40755, user).is_ok());
        }
        for (owner, user) in [(1000, 0), (1000, 1001)] {
            let error = is_private(directory, owner, 0o40700, user).unwrap_err().to_string();
            assert!(error.contains(&format!("belongs to user {owner}")), "{error}");
        }
    }

    #[test]
    fn nobody_else_can_put_another_into_its_place() {
        let scratch = tempfile::tempdir().unwrap();
        let above = scratch.path().join("above");
        let directory = above.join("d");
        fs::create_dir_all(&directory).unwrap();
        set_mode(&directory, 0o700);
        for (mode, good) in [(0o755, true), (0o1777, true), (0o777, false), (0o775, false)] {
            set_mode(&above, mode);
            let found = chosen(&directory);
            assert_eq!(found.is_ok(), good, "{mode:o}");
            if let Err(error) = found {
                assert!(matches!(error, DirectoryError::Movable { .. }), "{error}");
            }
        }
    }

    #[test]
    fn directories_above_it_belong_to_root_or_the_starter() {
        let (directory, above) = (Path::new("/a/d"), Path::new("/a"));
        for (owner, trusted) in [(0, [0, 0, 0]), (1000, [0, 1000, 0]), (65534, [0, 1000, 65534])] {
            assert!(is_fixed(directory, above, owner, 0o40755, &trusted).is_ok(), "{owner}");
        }
        for mode in [0o40700, 0o40755, 0o41777, 0o40777] {
            let error = is_fixed(directory, above, 1001, mode, &[0, 1000, 0]).unwrap_err();
            assert!(matches!(error, DirectoryError::Below { owner: 1001, .. }), "{error}");
        }
    }

    /// The owner of a directory can do that with any directory below, even one of another user.
    #[test]
    fn another_user_above_it_is_seen_at_any_height() {
        const OTHER: u32 = 65534;
        let scratch = tempfile::tempdir().unwrap();
        let above = scratch.path().join("above");
        let directory = above.join("between/d");
        fs::create_dir_all(&directory).unwrap();
        for place in [&above, &above.join("between"), &directory] {
            set_mode(place, 0o700);
        }
        assert!(chosen(&directory).is_ok());
        if fs::metadata("/").unwrap().uid() == OTHER || chown(&above, Some(OTHER), None).is_err() {
            println!("skipped: only root gives directories away, outside of user namespaces");
            return;
        }
        let alias = scratch.path().join("alias");
        symlink(&directory, &alias).unwrap();
        for mode in [0o700, 0o755, 0o1777] {
            set_mode(&above, mode);
            for name in [&directory, &alias] {
                let error = chosen(name).unwrap_err();
                assert!(matches!(error, DirectoryError::Below { .. }), "{mode:o}: {error}");
                let canonical = fs::canonicalize(&above).unwrap();
                let why = format!("user {OTHER} can rename it, because {}", canonical.display());
                assert!(error.to_string().contains(&why), "{error}");
            }
        }
    }
}
