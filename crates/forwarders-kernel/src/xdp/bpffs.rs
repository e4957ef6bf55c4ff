// SPDX-License-Identifier: BSD-3-Clause
//! The BPF file system in which libxdp pins what it attaches, and which of these belong to this
//! project's programs.
//!
//! If none is mounted, the first of these programs mounts one, and the last one that ends unmounts
//! it. In its directory `linerate` each program on an interface has a directory, on which its
//! process holds a lock: so later programs see which are left over from processes that were killed.
//!
//! Other users can neither hold these locks nor make such directories: what could be locked by everybody who may read it
//! would let them keep a program from starting and from ending, and a claim of theirs would have another's program removed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock, statfs};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Where libxdp looks for it, and the environment variable that changes that.
const PLACE: &str = "/sys/fs/bpf";
const VARIABLE: &str = "LIBXDP_BPFFS";
// linux/magic.h.
const BPF_FS_MAGIC: u32 = 0xcafe_4a11;
/// What is locked while one of our programs changes anything, in a directory that only root may write to. It is there
/// only as long as it is locked.
const LOCK: &str = "/run/linerate-bpffs.lock";
/// What the kernel itself puts into new ones.
const KERNELS: [&str; 2] = ["maps.debug", "progs.debug"];

/// A BPF file system.
#[derive(Clone, Debug)]
pub(super) struct Bpffs {
    path: PathBuf,
    /// The network namespace, by its inode: interfaces in other namespaces have the same numbers.
    namespace: u64,
}

/// Keeps other programs of this project from changing anything meanwhile.
pub(super) struct Locked<'b> {
    bpffs: &'b Bpffs,
    _lock: Lock,
}

/// A lock on a file that exists as long as it is held, or on a directory.
struct Lock {
    /// Of the file.
    path: Option<PathBuf>,
    _file: File,
}

impl Lock {
    /// Waits until no other process holds it.
    fn hold(path: &Path) -> io::Result<Self> {
        loop {
            // A user who may not open it cannot lock it.
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // The one before may have removed it since it was opened.
            let inode = file.metadata()?.ino();
            if fs::symlink_metadata(path).is_ok_and(|found| found.ino() == inode) {
                return Ok(Self { path: Some(path.to_owned()), _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Before it is released.
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Claims, as long as it lives or until it is given up, that this process owns a program on an
/// interface.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    _lock: File,
}

impl Bpffs {
    /// Finds where libxdp will look.
    pub(super) fn find() -> io::Result<Self> {
        let path = std::env::var_os(VARIABLE).map_or_else(|| PLACE.into(), PathBuf::from);
        let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
        Ok(Self { path, namespace })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn own(&self) -> PathBuf {
        self.path.join("linerate")
    }

    fn mark(&self) -> PathBuf {
        self.own().join("mounted")
    }

    fn is_mounted(&self) -> io::Result<bool> {
        Ok(statfs(&self.path)?.f_type as u32 == BPF_FS_MAGIC)
    }

    /// Waits until no other program of this project uses it.
    pub(super) fn lock(&self) -> io::Result<Locked<'_>> {
        let lock = match host::is_root() {
            true => {
                let named =
                    |error: io::Error| io::Error::new(error.kind(), format!("{LOCK}: {error}"));
                Lock::hold(Path::new(LOCK)).map_err(named)?
            }
            // A user with capabilities, who may make no file there.
            false => {
                let directory = File::open(self.path.parent().unwrap_or(&self.path))?;
                flock(&directory, FlockOperation::LockExclusive)?;
                Lock { path: None, _file: directory }
            }
        };
        Ok(Locked { bpffs: self, _lock: lock })
    }
}

impl Locked<'_> {
    /// Mounts it, if it is not mounted.
    pub(super) fn enter(&self) -> io::Result<()> {
        let bpffs = self.bpffs;
        if !bpffs.is_mounted()? {
            // Otherwise every user could make directories there.
            mount("bpf", &bpffs.path, "bpf", MountFlags::empty(), Some(c"mode=0700"))?;
            make(&bpffs.own()).and_then(|()| make(&bpffs.mark()))?;
        } else if bpffs.own().symlink_metadata().is_err() {
            make(&bpffs.own())?;
        }
        // Somebody else may have mounted it, for all users. `xdp` is libxdp's.
        refuse_others(&bpffs.own())?;
        refuse_others(&bpffs.path.join("xdp"))
    }

    /// Removes the claims in this network namespace of processes that have ended: returns
    /// interfaces and programs.
    pub(super) fn orphans(&self) -> io::Result<Vec<(u32, u32)>> {
        let mut found = Vec::new();
        for path in entries(&self.bpffs.own()) {
            let Some((namespace, interface, id)) = claimed(&path) else { continue };
            let is_free =
                |lock: &File| flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok();
            if namespace == self.bpffs.namespace
                && File::open(&path).is_ok_and(|lock| is_free(&lock))
            {
                fs::remove_dir(&path)?;
                found.push((interface, id));
            }
        }
        Ok(found)
    }

    /// Removes what libxdp pins for a dispatcher whose interface is gone. Several namespaces may
    /// use the interface's number: it is the dispatcher that has a certain program.
    pub(super) fn forget(&self, interface: u32, has_it: impl Fn(&Path) -> bool) -> io::Result<()> {
        let start = format!("dispatch-{interface}-");
        for directory in entries(&self.bpffs.path.join("xdp")) {
            let is_of = |name: &OsStr| name.to_string_lossy().starts_with(&start);
            let pins: Vec<PathBuf> = entries(&directory).collect();
            if directory.file_name().is_some_and(is_of) && pins.iter().any(|pin| has_it(pin)) {
                pins.iter().try_for_each(fs::remove_file)?;
                fs::remove_dir(&directory)?;
            }
        }
        Ok(())
    }

    fn claim_path(&self, interface: u32, id: u32) -> PathBuf {
        self.bpffs.own().join(format!("{}-{interface}-{id}", self.bpffs.namespace))
    }

    /// Claims a program on an interface for this process.
    pub(super) fn claim(&self, interface: u32, id: u32) -> io::Result<Claim> {
        let path = self.claim_path(interface, id);
        make(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Claim { path, _lock: lock })
    }

    /// Returns true if a process claims it, after [`Locked::orphans`].
    pub(super) fn is_claimed(&self, interface: u32, id: u32) -> bool {
        self.claim_path(interface, id).is_dir()
    }

    /// Gives up a claim.
    pub(super) fn give_up(&self, claim: &Claim) -> io::Result<()> {
        fs::remove_dir(&claim.path)
    }

    /// Removes what this and other programs of this project made, if this was the last one: the
    /// directory, and the mount unless it is used otherwise.
    pub(super) fn leave(&self) -> io::Result<()> {
        let bpffs = self.bpffs;
        let has_claims = entries(&bpffs.own()).any(|path| path != bpffs.mark());
        if has_claims || !bpffs.own().is_dir() {
            return Ok(());
        }
        if !bpffs.mark().is_dir() {
            return fs::remove_dir(bpffs.own());
        }
        let xdp = bpffs.path.join("xdp");
        let is_empty = |path: &Path| entries(path).next().is_none();
        let is_other = |path: &PathBuf| {
            let is_known = *path == bpffs.own() || (*path == xdp && is_empty(path));
            !is_known && !KERNELS.iter().any(|name| path.ends_with(name))
        };
        if !entries(&bpffs.path).any(|path| is_other(&path)) {
            unmount(&bpffs.path, UnmountFlags::empty())?;
        }
        Ok(())
    }
}

/// Makes a directory that other users cannot open, and so not lock.
fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(directory)
}

/// Refuses a directory that other users can change, if it is there.
fn refuse_others(directory: &Path) -> io::Result<()> {
    let Ok(found) = directory.symlink_metadata() else { return Ok(()) };
    let is_own = [0, host::user()].contains(&found.uid());
    if found.is_dir() && is_own && found.mode() & 0o002 == 0 {
        return Ok(());
    }
    let (path, owner, mode) = (directory.display(), found.uid(), found.mode() & 0o7777);
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{path}: other users can change it (user {owner}, mode {mode:o}); remove it"),
    ))
}

/// The network namespace, the interface and the program of a claim.
fn claimed(path: &Path) -> Option<(u64, u32, u32)> {
    let mut parts = path.file_name()?.to_str()?.split('-');
    let claim =
        (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(claim)
}

/// The entries of a directory; none if it does not exist.
fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_can_hold_the_lock_and_nothing_stays_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lock = Lock::hold(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let second = path.clone();
        let waiting = std::thread::spawn(move || drop(Lock::hold(&second).unwrap()));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!waiting.is_finished());
        drop(lock);
        waiting.join().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        // As after SIGKILL.
        fs::write(&path, "").unwrap();
        drop(Lock::hold(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn directories_of_other_users_are_refused() {
        use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("linerate");
        assert!(refuse_others(&own).is_ok(), "there is none");
        make(&own).unwrap();
        assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o700);
        assert!(refuse_others(&own).is_ok());
        fs::set_permissions(&own, fs::Permissions::from_mode(0o1777)).unwrap();
        let error = refuse_others(&own).unwrap_err().to_string();
        assert!(error.contains("other users can change it") && error.contains("1777"), "{error}");
        let link = directory.path().join("link");
        symlink("linerate", &link).unwrap();
        assert!(refuse_others(&link).is_err());
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        if chown(&own, Some(65534), None).is_err() {
            // Only root gives directories away.
            return;
        }
        assert!(refuse_others(&own).unwrap_err().to_string().contains("user 65534"));
    }

    #[test]
    fn claims_are_told_by_their_names() {
        let claimed = |name: &str| claimed(&Path::new("/sys/fs/bpf/linerate").join(name));
        assert_eq!(claimed("4026531840-3-52"), Some((4_026_531_840, 3, 52)));
        for name in ["mounted", "1-2", "1-2-3-4", "1--3", "1-2-4294967296"] {
            assert_eq!(claimed(name), None, "{name}");
        }
    }
}
