// SPDX-License-Identifier: BSD-3-Clause
//! What a location may name. The command line may name any path. An API client may be another user,
//! while the program may run as root: the client's sockets must be in allowed directories, and its
//! virtual devices cannot have paths.

use std::fs;
use std::path::PathBuf;

use super::directories::Directories;
use super::interfaces::Interfaces;
use super::read::LocationError;

/// Prefixes of the names of EAL's and the API's own sockets in the run-time directory.
const OF_EAL: [&str; 3] = ["dpdk_telemetry", "mp_socket", "otg"];

/// What the locations from one source may name.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Which virtual devices.
    pub vdevs: Vdevs,
    /// Where sockets may be.
    pub sockets: Sockets,
    /// Which interfaces of the kernel.
    pub interfaces: Interfaces,
}

impl Policy {
    /// For the command line, without an option that allows more.
    pub const COMMAND_LINE: Policy =
        Policy { vdevs: Vdevs::Known, sockets: Sockets::Anywhere, interfaces: Interfaces::Any };
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

/// Where the sockets of memif, vhost and virtio_user locations may be.
#[derive(Clone, Debug)]
pub enum Sockets {
    /// Anywhere.
    Anywhere,
    /// Directly in one of these directories.
    In(Directories),
}

impl Sockets {
    /// Returns the path of the socket for a location of this kind, in a unique form, if it is
    /// allowed.
    pub(super) fn resolve(&self, kind: &'static str, path: &str) -> Result<String, LocationError> {
        let Sockets::In(directories) = self else { return Ok(without_repeats(path)) };
        let found = directories.resolve(path).map(PathBuf::into_os_string);
        let Some(Ok(found)) = found.map(|found| found.into_string()) else {
            let (path, directories) = (path.to_owned(), directories.to_string());
            return Err(LocationError::Elsewhere { kind, path, directories });
        };
        let name = found.rsplit('/').next().unwrap_or_default();
        if OF_EAL.iter().any(|eal| name.starts_with(eal)) {
            return Err(LocationError::OfEal { kind, path: path.to_owned() });
        }
        // Otherwise a client would connect to a socket elsewhere.
        match fs::symlink_metadata(&found).is_ok_and(|found| found.is_symlink()) {
            true => Err(LocationError::SymbolicLink { kind, path: path.to_owned() }),
            false => Ok(found),
        }
    }
}

/// The path without repeated slashes and `/./`. Symbolic links stay, and so do `..` and the last
/// component, whose meaning may depend on the file system.
fn without_repeats(path: &str) -> String {
    let Some((parent, name)) = path.rsplit_once('/') else { return path.to_owned() };
    let parts = parent.split('/').filter(|part| !["", "."].contains(part));
    let mut short = String::new();
    for part in parts.chain([name]) {
        short.push('/');
        short.push_str(part);
    }
    short
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;
    use crate::location::Location;

    /// A directory with the sockets' directory `in` and a directory `out` beside it.
    fn scratch() -> (tempfile::TempDir, PathBuf, Policy) {
        let scratch = tempfile::tempdir().unwrap();
        let inside = fs::canonicalize(scratch.path()).unwrap().join("in");
        fs::create_dir(&inside).unwrap();
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(scratch.path().join("out")).unwrap();
        let directories = Directories::new(None, [inside.clone()]).unwrap();
        let sockets = Sockets::In(directories);
        let policy = Policy { vdevs: Vdevs::Pathless, sockets, ..Policy::COMMAND_LINE };
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
    fn a_socket_has_one_path() {
        let (scratch, inside, policy) = scratch();
        let canonical = fs::canonicalize(&inside).unwrap();
        let at = inside.display();
        let alias = scratch.path().join("alias");
        symlink(&inside, &alias).unwrap();
        let aliased = Directories::new(None, [alias.clone()]).unwrap();
        let aliased = Policy { sockets: Sockets::In(aliased), ..policy.clone() };
        for policy in [policy, Policy::COMMAND_LINE] {
            let plain = Location::read(&format!("memif:{at}/s"), &policy).unwrap();
            assert_eq!(plain.listens_on(), canonical.join("s").to_str());
            for same in ["/s", "./s", "./././/s"] {
                let location = Location::read(&format!("memif:{at}/{same}"), &policy).unwrap();
                assert_eq!(location, plain, "{same}");
                assert!(location.collides_with(&plain));
            }
        }
        let by_alias = read("memif", &alias.join("s"), &aliased).unwrap();
        assert_eq!(by_alias, read("memif", &canonical.join("s"), &aliased).unwrap());
        for kept in ["/", "/a/", "/a/.", "/a/..", "/a/../b"] {
            assert_eq!(without_repeats(kept), kept);
        }
        assert_eq!(without_repeats("//a/././b///c"), "/a/b/c");
    }

    #[test]
    fn sockets_of_eal_are_no_links() {
        let (_scratch, inside, policy) = scratch();
        for name in
            ["dpdk_telemetry.v2", "dpdk_telemetry.v2:1", "mp_socket", "mp_socket_7_1", "otg.sock"]
        {
            for role in ["", ",role=client", ",role=server"] {
                let path = inside.join(format!("{name}{role}"));
                for kind in ["memif", "vhost", "virtio_user"] {
                    let error = read(kind, &path, &policy).unwrap_err();
                    assert!(matches!(error, LocationError::OfEal { .. }), "{error:?}");
                }
            }
        }
    }

    /// DPDK parses text between brackets as one value: the path would continue after the comma.
    #[test]
    fn a_socket_has_no_brackets() {
        let (_scratch, inside, policy) = scratch();
        for name in ["[s", "s]", "[s]"] {
            for policy in [&policy, &Policy::COMMAND_LINE] {
                let error = read("memif", &inside.join(name), policy).unwrap_err();
                assert!(matches!(error, LocationError::Socket { .. }), "{error:?}");
            }
        }
    }
}
