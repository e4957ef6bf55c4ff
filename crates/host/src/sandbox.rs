// SPDX-License-Identifier: BSD-3-Clause
//! What a program gives up before it serves others, as whichever user it runs: paths (Landlock) and
//! system calls (seccomp).
//!
//! Both hold for the calling thread and for threads that it creates later, so they are applied
//! while there is only one. Open files and sockets stay open. Neither can be undone.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// The newest Landlock ABI whose restrictions have been tested with DPDK's drivers.
const TESTED: ABI = ABI::V7;

/// The paths that a process may still open, each with everything below it. Paths that do not exist are left out.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Files and directories to read.
    pub readable: Vec<PathBuf>,
    /// Files, directories and devices to read and write; in directories also to create and remove
    /// files and sockets.
    pub writable: Vec<PathBuf>,
    /// Directories in which empty directories may be removed.
    pub prunable: Vec<PathBuf>,
}

/// Restricts the calling thread, and threads that it creates later, to these paths, as far as the
/// kernel supports it: older kernels have fewer restrictions or none. The process can then neither
/// connect to nor listen on a TCP port, nor signal other processes. Returns the Landlock ABI
/// version in force, or none if the kernel has no Landlock.
///
/// # Errors
/// The kernel's; then nothing is restricted.
pub fn confine_paths(paths: &Paths) -> io::Result<Option<i32>> {
    let failed = |error: RulesetError| io::Error::other(format!("Landlock: {error}"));
    let read = AccessFs::from_read(TESTED) & !AccessFs::Execute;
    // Device nodes would give access to all of the machine's devices.
    let write = AccessFs::from_all(TESTED)
        & !make_bitflags!(AccessFs::{Execute | MakeChar | MakeBlock | Refer});
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(TESTED))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(TESTED)))
        .and_then(|ruleset| ruleset.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .map_err(failed)?;
    let prune = BitFlags::from(AccessFs::RemoveDir);
    for (paths, access) in
        [(&paths.readable, read), (&paths.writable, write), (&paths.prunable, prune)]
    {
        let rules = paths.iter().filter_map(|path| rule(path.clone(), access));
        for rule in rules {
            ruleset = ruleset.add_rule(rule).map_err(failed)?;
        }
    }
    let status = ruleset.restrict_self().map_err(failed)?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => {
            Some((effective_abi as i32).min(TESTED as i32))
        }
        _ => None,
    })
}

/// A rule for a path, if it exists; for a file only the rights that apply to files.
fn rule(path: PathBuf, access: BitFlags<AccessFs>) -> Option<PathBeneath<PathFd>> {
    let is_dir = path.metadata().ok()?.is_dir();
    let access = if is_dir { access } else { access & AccessFs::from_file(TESTED) };
    Some(PathBeneath::new(PathFd::new(path).ok()?, access))
}

/// System calls that no port, driver or client needs: they start programs, access other processes,
/// change the kernel, its clock, its mounts or its keys, or enter other namespaces. io_uring is
/// among them because its operations bypass the filter. pidfd_getfd(2) is not, because
/// [`crate::widen_packet_sockets`] uses it to copy descriptors of this process; for other processes
/// Landlock refuses it.
const DENIED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_personality,
    libc::SYS_io_uring_setup,
];

/// Flags of clone(2) that create namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Refuses (`EPERM`) system calls that a packet generator never needs, for the calling thread and
/// for threads that it creates later.
///
/// # Errors
/// The kernel has no seccomp, or refuses the filter.
pub fn deny_system_calls() -> io::Result<()> {
    let mut rules = BTreeMap::new();
    for call in DENIED {
        deny(&mut rules, *call, Vec::new());
    }
    let namespaces = NAMESPACES
        .iter()
        .map(|flag| {
            let flag = *flag as u64;
            let set = SeccompCmpOp::MaskedEq(flag);
            SeccompCondition::new(0, SeccompCmpArgLen::Qword, set, flag)
                .and_then(|condition| SeccompRule::new(vec![condition]))
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    deny(&mut rules, libc::SYS_clone, namespaces);
    apply(rules, libc::EPERM)?;
    // Its flags are in memory, where a filter cannot read them. The C library falls back to clone
    // to create threads.
    apply(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

/// Adds a rule for a system call, by both of its numbers: a 64-bit program on x86 can use those of x32 as well.
fn deny(rules: &mut BTreeMap<i64, Vec<SeccompRule>>, call: libc::c_long, when: Vec<SeccompRule>) {
    #[cfg(target_arch = "x86_64")]
    {
        /// Added to system call numbers in the x32 ABI, and those that differ there.
        const X32: i64 = 0x4000_0000;
        let number = match call {
            libc::SYS_execve => 520,
            libc::SYS_ptrace => 521,
            libc::SYS_kexec_load => 528,
            libc::SYS_process_vm_readv => 539,
            libc::SYS_process_vm_writev => 540,
            libc::SYS_execveat => 545,
            same => same,
        };
        rules.insert(X32 | number, when.clone());
    }
    rules.insert(call, when);
}

fn apply(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: libc::c_int) -> io::Result<()> {
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let refuse = SeccompAction::Errno(errno as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)
        .map_err(io::Error::other)?;
    let program = BpfProgram::try_from(filter).map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpStream;
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::thread;

    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

    use super::*;

    /// On a separate thread, because it cannot undo the restrictions.
    #[test]
    fn other_paths_cannot_be_opened() {
        let [read, written, other] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        for directory in [&read, &written, &other] {
            fs::write(directory.path().join("f"), "x").unwrap();
        }
        let paths = Paths {
            readable: vec![read.path().to_owned(), "/no/such/path".into()],
            writable: vec![written.path().to_owned(), other.path().join("f")],
            prunable: vec![],
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (read, written, other) = (read.path(), written.path(), other.path());
        thread::scope(|scope| {
            scope.spawn(|| {
                let Some(abi) = confine_paths(&paths).unwrap() else {
                    println!("skipped: the kernel has no Landlock");
                    return;
                };
                // Its threads have it as well.
                let inner = || {
                    assert!(fs::read(read.join("f")).is_ok());
                    assert!(fs::write(read.join("f"), "y").is_err());
                    assert!(fs::write(written.join("g"), "y").is_ok());
                    assert!(fs::remove_file(written.join("g")).is_ok());
                    assert!(UnixListener::bind(written.join("s")).is_ok());
                    assert!(fs::remove_file(written.join("s")).is_ok());
                    assert!(fs::write(other.join("f"), "y").is_ok());
                    let outside = [other.join("g"), "/etc/passwd".into(), "/".into()];
                    for path in outside {
                        assert!(fs::File::open(&path).is_err(), "{path:?}");
                        assert!(fs::write(&path, "").is_err(), "{path:?}");
                    }
                    assert!(fs::read_dir("/etc").is_err());
                    assert!(UnixListener::bind(other.join("s")).is_err());
                    if abi >= 4 {
                        assert!(TcpStream::connect(listener.local_addr().unwrap()).is_err());
                    }
                };
                inner();
                thread::scope(|scope| scope.spawn(inner).join().unwrap());
            });
        });
        // This thread has not.
        assert!(fs::read("/etc/passwd").is_ok());
    }

    #[test]
    fn no_program_is_started_and_no_namespace_made() {
        let before = Command::new("true").status();
        thread::spawn(move || {
            deny_system_calls().unwrap();
            // As for packet sockets.
            let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
            assert!(pidfd_getfd(&own, 0, PidfdGetfdFlags::empty()).is_ok());
            let error = Command::new("true").status().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{before:?}");
            let error = crate::enter_network_namespace("/proc/self/ns/net").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EPERM));
            // Threads are made as before.
            thread::spawn(|| Command::new("true").status().unwrap_err()).join().unwrap();
        })
        .join()
        .unwrap();
    }
}
