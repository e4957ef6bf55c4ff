// SPDX-License-Identifier: BSD-3-Clause
//! The sandbox in which the API is served: access only to the files that a generator needs, and no
//! system calls that start programs or change the machine. It is entered before EAL creates its
//! threads, because both Landlock and seccomp apply to threads created later.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use host::Paths;

use crate::cli::Options;
use crate::start;

/// What EAL, drivers and the C library read: descriptions of the machine, libraries (drivers,
/// libxdp's programs) and the list of libraries. All of /proc, because the kernel drops a rule for
/// a file there together with its own entry for the file, which comes and goes. The memory of other
/// processes stays inaccessible: Landlock forbids it like tracing them.
const READABLE: [&str; 11] = [
    "/proc",
    "/sys",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
];

/// Devices that drivers open. /dev/vfio/vfio gives access to no device by itself; EAL prints errors
/// if it may not be opened.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/net/tun", "/dev/vhost-net", "/dev/vfio/vfio"];

/// The names of all threads, which EAL writes there.
const TASKS: &str = "/proc/self/task";

/// Which restrictions are in force; shown in one line at the start.
#[derive(Debug, Default)]
pub struct Sandbox {
    paths: Confinement,
    system_calls: bool,
    /// Kept open so that the kernel does not drop its entry, and the rule with it.
    _tasks: Option<File>,
}

/// Which paths can be opened.
#[derive(Debug, Default)]
enum Confinement {
    /// All: the user switched the sandbox off.
    #[default]
    Unwanted,
    /// All: the user's EAL options may name any device, directory or plugin.
    Unknown,
    /// All: the kernel does not support Landlock.
    Unsupported,
    /// Only chosen ones, by this version of Landlock's interface.
    Landlock(i32),
}

impl Sandbox {
    /// Enters the sandbox, as far as the kernel supports it. If a part fails, a warning is logged,
    /// and the others are in force.
    #[must_use]
    pub fn enter(options: &Options, own_eal_options: bool) -> Self {
        if options.no_sandbox {
            return Sandbox::default();
        }
        let tasks = File::open(TASKS).ok();
        let paths = match own_eal_options {
            true => Confinement::Unknown,
            false => match host::confine_paths(&paths(options)) {
                Ok(Some(version)) => Confinement::Landlock(version),
                Ok(None) => Confinement::Unsupported,
                Err(error) => {
                    tracing::warn!("access to files is not restricted: {error}");
                    Confinement::Unsupported
                }
            },
        };
        let denied = host::deny_system_calls();
        if let Err(error) = &denied {
            tracing::warn!("system calls are not restricted: {error}");
        }
        Sandbox { paths, system_calls: denied.is_ok(), _tasks: tasks }
    }
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system_calls = if self.system_calls { "seccomp" } else { "none" };
        match &self.paths {
            Confinement::Landlock(version) if self.system_calls => {
                write!(f, "Landlock ABI {version}, seccomp")
            }
            Confinement::Landlock(version) => write!(f, "Landlock ABI {version}"),
            Confinement::Unwanted => f.write_str("none (--no-sandbox)"),
            Confinement::Unknown => {
                write!(
                    f,
                    "{system_calls} (no Landlock: there are EAL options, which may need any file)"
                )
            }
            Confinement::Unsupported => {
                write!(f, "{system_calls} (no Landlock: the kernel does not support it)")
            }
        }
    }
}

/// The paths that a generator with its own choice of EAL options may open.
fn paths(options: &Options) -> Paths {
    let own = start::runtime_dir();
    // As EAL does; an existing one stays. If this fails, EAL reports it.
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(&own);
    let mut readable: Vec<PathBuf> = READABLE.iter().map(PathBuf::from).collect();
    readable.extend(libraries(&fs::read_to_string("/proc/self/maps").unwrap_or_default()));
    readable.extend(std::env::var_os("LIBXDP_OBJECT_PATH").map(PathBuf::from));
    let mut writable: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
    writable.push(TASKS.into());
    writable.extend(mounts(&fs::read_to_string("/proc/self/mounts").unwrap_or_default()));
    writable.extend(options.socket_directory.iter().cloned());
    if let Some(file) = &options.port_file {
        // The file is renamed into its place, so its directory is needed; a device or a link's
        // target is written directly.
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        writable.push(directory.unwrap_or(Path::new(".")).to_owned());
        writable.push(file.clone());
    }
    let prunable = own.parent().map(PathBuf::from).into_iter().collect();
    writable.push(own);
    Paths { readable, writable, prunable }
}

/// The directories of the shared objects in the text of /proc/self/maps: DPDK's drivers are below
/// the directory of its libraries, wherever it is installed.
fn libraries(maps: &str) -> impl Iterator<Item = PathBuf> + '_ {
    let mut found: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| {
            Path::new(line.get(line.find('/')?..).filter(|path| path.contains(".so"))?).parent()
        })
        .filter(|directory| directory.parent().is_some())
        .map(Path::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found.into_iter()
}

/// The mount points of huge pages and of the BPF file system, from the text of /proc/self/mounts.
fn mounts(text: &str) -> impl Iterator<Item = PathBuf> + '_ {
    text.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind) = (fields.next()?, fields.next()?);
        matches!(kind, "hugetlbfs" | "bpf").then(|| PathBuf::from(place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_lie_beside_libraries() {
        let maps = "\
7f00-7f01 r-xp 00000000 fe:00 12  /opt/dpdk/lib/librte_eal.so.23
7f01-7f02 r--p 00000000 fe:00 12  /opt/dpdk/lib/librte_eal.so.23
7f02-7f03 rw-p 00000000 00:00 0   [heap]
7f03-7f04 rw-s 00000000 00:01 5   /memfd:pages (deleted)
7f04-7f05 r-xp 00000000 fe:00 13  /usr/lib/libc.so.6
";
        let found: Vec<_> = libraries(maps).collect();
        assert_eq!(found, [Path::new("/opt/dpdk/lib"), Path::new("/usr/lib")]);
    }

    #[test]
    fn huge_pages_and_bpf_are_found_by_kind() {
        let text = "\
hugetlbfs /dev/hugepages hugetlbfs rw,pagesize=2M 0 0
none /sys/fs/bpf bpf rw 0 0
tmpfs /tmp tmpfs rw 0 0
";
        let found: Vec<_> = mounts(text).collect();
        assert_eq!(found, [Path::new("/dev/hugepages"), Path::new("/sys/fs/bpf")]);
    }

    #[test]
    fn the_line_says_what_is_in_force() {
        let of = |paths, system_calls| Sandbox { paths, system_calls, _tasks: None }.to_string();
        assert_eq!(of(Confinement::Landlock(7), true), "Landlock ABI 7, seccomp");
        assert_eq!(Sandbox::default().to_string(), "none (--no-sandbox)");
        assert!(of(Confinement::Unknown, true).starts_with("seccomp (no Landlock: there are EAL"));
        assert!(of(Confinement::Unsupported, false).starts_with("none (no Landlock: the kernel"));
    }
}
