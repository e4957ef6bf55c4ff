// SPDX-License-Identifier: BSD-3-Clause
//! Removes what killed processes leave behind: sockets and run-time directories.

use std::fs;
use std::path::Path;

/// Name of a run-time directory without the process's number.
pub const PREFIX: &str = "generator-";

/// Removes the directories `generator-PID` next to `own` whose process is gone.
pub fn remove_runtime_dirs(own: &Path) {
    for entry in own.parent().and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten()
    {
        let dir = entry.path();
        let dead = entry.file_name().to_str().and_then(pid).is_some_and(host::is_gone)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && !is_served(&dir);
        if dead && dir != own {
            remove_runtime_dir(&dir);
        }
    }
}

/// Removes EAL's files and the directory, which belongs to one process.
fn remove_runtime_dir(dir: &Path) {
    for file in fs::read_dir(dir).into_iter().flatten().flatten() {
        let _ = fs::remove_file(file.path());
    }
    let _ = fs::remove_dir(dir);
}

fn pid(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Returns true if a process answers telemetry there: one in another PID namespace is not visible
/// here.
fn is_served(dir: &Path) -> bool {
    host::is_served(&dir.join("dpdk_telemetry.v2"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    /// A process number above the kernel's limit, which no process has.
    const NOBODY: u32 = 1 << 23;

    /// A directory of the test's own.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("stale-{name}-{}", std::process::id()));
            fs::create_dir(&dir).unwrap();
            Scratch(dir)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_directories_of_dead_generators_are_removed() {
        let scratch = Scratch::new("dirs");
        let dir = |name: String| {
            let dir = scratch.0.join(name);
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("config"), "").unwrap();
            dir
        };
        let own = dir(format!("generator-{}", NOBODY + 1));
        let dead = dir(format!("generator-{NOBODY}"));
        drop(UnixListener::bind(dead.join("dpdk_telemetry.v2")).unwrap());
        let elsewhere = dir(format!("generator-{}", NOBODY + 2));
        let _served = UnixListener::bind(elsewhere.join("dpdk_telemetry.v2")).unwrap();
        let kept = [
            dir(format!("generator-{}", std::process::id())),
            dir(format!("l2fwd-{NOBODY}")),
            dir(format!("generator-{NOBODY}x")),
            dir("generator-".to_owned()),
            own.clone(),
            elsewhere,
        ];
        remove_runtime_dirs(&own);
        assert!(!dead.exists());
        for dir in kept {
            assert!(dir.join("config").exists(), "{dir:?}");
        }
    }
}
