// SPDX-License-Identifier: BSD-3-Clause
//! The BPF file system in which libxdp pins what it attaches, and which of these belong to this
//! project's programs.
//!
//! If none is mounted, the first of these programs mounts one, and the last one that ends unmounts
//! it. In its directory `linerate` each program on an interface has a directory, on which its
//! process holds a lock: so later programs see which are left over from processes that were killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statfs};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Where libxdp looks for it, and the environment variable that changes that.
const PLACE: &str = "/sys/fs/bpf";
const VARIABLE: &str = "LIBXDP_BPFFS";
// linux/magic.h.
const BPF_FS_MAGIC: u32 = 0xcafe_4a11;
/// What the kernel itself creates in a new one.
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
    _lock: File,
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

    /// Waits until no other program of this project uses it. The lock is on the directory that it
    /// is mounted on.
    pub(super) fn lock(&self) -> io::Result<Locked<'_>> {
        let lock = File::open(self.path.parent().unwrap_or(&self.path))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Locked { bpffs: self, _lock: lock })
    }
}

impl Locked<'_> {
    /// Mounts it, if it is not mounted.
    pub(super) fn enter(&self) -> io::Result<()> {
        let bpffs = self.bpffs;
        if !bpffs.is_mounted()? {
            mount("bpf", &bpffs.path, "bpf", MountFlags::empty(), None)?;
            fs::create_dir(bpffs.own()).and_then(|()| fs::create_dir(bpffs.mark()))?;
        } else if !bpffs.own().is_dir() {
            fs::create_dir(bpffs.own())?;
        }
        Ok(())
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
        fs::create_dir(&path)?;
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
    fn claims_are_told_by_their_names() {
        let claimed = |name: &str| claimed(&Path::new("/sys/fs/bpf/linerate").join(name));
        assert_eq!(claimed("4026531840-3-52"), Some((4_026_531_840, 3, 52)));
        for name in ["mounted", "1-2", "1-2-3-4", "1--3", "1-2-4294967296"] {
            assert_eq!(claimed(name), None, "{name}");
        }
    }
}
