// SPDX-License-Identifier: BSD-3-Clause
//! What a location may name. Whoever starts the program may name any path. A client of the API may be
//! another user, and the program may be root's: the client's sockets lie in chosen directories, and its
//! virtual devices get no paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use super::read::LocationError;

/// What the locations of one source may name.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Which virtual devices.
    pub vdevs: Vdevs,
    /// Where sockets may lie.
    pub sockets: Sockets,
}

impl Policy {
    /// For whoever starts the program, with no option that allows more.
    pub const COMMAND_LINE: Policy = Policy { vdevs: Vdevs::Known, sockets: Sockets::Anywhere };
}

/// Which virtual devices a `vdev:` may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vdevs {
    /// Known drivers, with arguments that name no file, socket or program.
    Pathless,
    /// Known drivers, with any arguments.
    #[default]
    Known,
    /// Any driver, with any arguments.
    Any,
}

/// Where the sockets of memif, vhost and virtio_user locations may lie.
#[derive(Clone, Debug)]
pub enum Sockets {
    /// Anywhere.
    Anywhere,
    /// Directly in one of these directories.
    In(Directories),
}

/// Directories, each by all the names that a location may call it.
#[derive(Clone, Debug)]
pub struct Directories(Arc<[Names]>);

#[derive(Debug)]
struct Names {
    /// As it was given, made absolute.
    given: PathBuf,
    /// Without symbolic links.
    canonical: PathBuf,
}

impl Directories {
    /// Directories that exist.
    ///
    /// # Errors
    /// The first that is no directory, and what the kernel says of it.
    pub fn new(
        directories: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let names = |directory: PathBuf| {
            let names = || {
                let canonical = fs::canonicalize(&directory)?;
                match canonical.is_dir() {
                    true => Ok(Names { given: std::path::absolute(&directory)?, canonical }),
                    false => Err(io::ErrorKind::NotADirectory.into()),
                }
            };
            names().map_err(|error| (directory.clone(), error))
        };
        Ok(Directories(directories.into_iter().map(names).collect::<Result<_, _>>()?))
    }

    /// Whether the path is that of an entry directly in one of them. It is compared as text: what a
    /// symbolic link in it points to could be another directory by the time that the socket is made.
    fn contain(&self, path: &str) -> bool {
        let Some((parent, name)) = path.rsplit_once('/') else { return false };
        let parent = Path::new(parent);
        !["", ".", ".."].contains(&name)
            && self.0.iter().any(|names| parent == names.given || parent == names.canonical)
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

impl Sockets {
    /// Whether a location of this kind may name the socket.
    pub(super) fn check(&self, kind: &'static str, path: &str) -> Result<(), LocationError> {
        let Sockets::In(directories) = self else { return Ok(()) };
        if !directories.contain(path) {
            let (path, directories) = (path.to_owned(), directories.to_string());
            return Err(LocationError::Elsewhere { kind, path, directories });
        }
        // A client would connect to a socket elsewhere.
        match fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            true => Err(LocationError::SymbolicLink { kind, path: path.to_owned() }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::location::Location;

    /// A directory with the sockets' directory `in` and a directory `out` beside it.
    fn scratch() -> (tempfile::TempDir, PathBuf, Policy) {
        let scratch = tempfile::tempdir().unwrap();
        let inside = scratch.path().join("in");
        fs::create_dir(&inside).unwrap();
        fs::create_dir(scratch.path().join("out")).unwrap();
        let directories = Directories::new([inside.clone()]).unwrap();
        let policy = Policy { vdevs: Vdevs::Pathless, sockets: Sockets::In(directories) };
        (scratch, inside, policy)
    }

    fn read(kind: &str, path: &Path, policy: &Policy) -> Result<Location, LocationError> {
        Location::read(&format!("{kind}:{}", path.display()), policy)
    }

    #[test]
    fn sockets_lie_directly_in_a_chosen_directory() {
        let (scratch, inside, policy) = scratch();
        fs::create_dir(inside.join("below")).unwrap();
        symlink(scratch.path().join("out"), inside.join("link")).unwrap();
        for kind in ["memif", "vhost", "virtio_user"] {
            for good in ["s", ".s", "..s"] {
                assert!(read(kind, &inside.join(good), &policy).is_ok(), "{kind} {good}");
            }
            for good in [format!("{}//s", inside.display()), format!("{}/./s", inside.display())] {
                assert!(read(kind, Path::new(&good), &policy).is_ok(), "{kind} {good}");
            }
            let text = inside.display();
            for bad in [
                "/etc/cron.d/x".to_owned(),
                "/s".to_owned(),
                format!("{text}"),
                format!("{text}/"),
                format!("{text}/."),
                format!("{text}/.."),
                format!("{text}/s/"),
                format!("{text}/s/."),
                format!("{text}/../out/s"),
                format!("{text}/below/s"),
                format!("{text}/below/../s"),
                format!("{text}/../in/s"),
                format!("{text}/link/s"),
                format!("{text}x/s"),
            ] {
                for role in ["", ",role=client", ",role=server"] {
                    let error =
                        Location::read(&format!("{kind}:{bad}{role}"), &policy).unwrap_err();
                    assert!(matches!(error, LocationError::Elsewhere { .. }), "{bad}: {error:?}");
                    let error = error.to_string();
                    assert!(
                        error.contains("--socket-directory") && error.contains(&format!("{text}"))
                    );
                    assert!(error.contains(&format!("{kind} socket {bad:?}")), "{error}");
                    let trusted =
                        Location::read(&format!("{kind}:{bad}{role}"), &Policy::COMMAND_LINE);
                    assert!(trusted.is_ok(), "{bad}");
                }
            }
        }
    }

    #[test]
    fn a_socket_is_no_symbolic_link() {
        let (scratch, inside, policy) = scratch();
        let elsewhere = scratch.path().join("out/s");
        let _served = std::os::unix::net::UnixListener::bind(&elsewhere).unwrap();
        symlink(&elsewhere, inside.join("to-socket")).unwrap();
        symlink(scratch.path().join("nothing"), inside.join("dangling")).unwrap();
        for name in ["to-socket", "dangling"] {
            let error = read("memif", &inside.join(name), &policy).unwrap_err();
            assert!(matches!(error, LocationError::SymbolicLink { .. }), "{name}: {error:?}");
            assert!(read("memif", &inside.join(name), &Policy::COMMAND_LINE).is_ok());
        }
    }

    #[test]
    fn a_directory_has_its_given_and_its_canonical_name() {
        let (scratch, inside, _) = scratch();
        let alias = scratch.path().join("alias");
        symlink(&inside, &alias).unwrap();
        let directories = Directories::new([alias.clone()]).unwrap();
        let other = scratch.path().join("other");
        symlink(&inside, &other).unwrap();
        let contain = |path: PathBuf| directories.contain(path.to_str().unwrap());
        assert!(contain(alias.join("s")));
        assert!(contain(fs::canonicalize(&inside).unwrap().join("s")));
        // Another link to it may lead elsewhere tomorrow.
        assert!(!contain(other.join("s")));
        fs::write(scratch.path().join("file"), "").unwrap();
        for bad in ["file", "nothing"] {
            let (path, _) =
                Directories::new([inside.clone(), scratch.path().join(bad)]).unwrap_err();
            assert_eq!(path, scratch.path().join(bad));
        }
    }
}
