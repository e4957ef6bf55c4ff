// SPDX-License-Identifier: BSD-3-Clause
//! Which of a directory's sockets belong to this process: only those may it remove.
//!
//! Another process with the same file prefix puts its telemetry socket into the same directory, under
//! another name when the first is taken.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The socket files in `dir` that this process has bound and holds open.
pub(crate) fn own(dir: &Path) -> Vec<PathBuf> {
    let held = held_inodes();
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    table
        .lines()
        .filter_map(bound)
        .filter(|(inode, path)| held.contains(inode) && path.parent() == Some(dir))
        .map(|(_, path)| path)
        .collect()
}

/// Inode and path of a line `Num RefCount Protocol Flags Type St Inode Path`; a path may hold spaces.
fn bound(line: &str) -> Option<(u64, PathBuf)> {
    let mut rest = line;
    let mut word = "";
    for _ in 0..7 {
        (word, rest) = rest.trim_start().split_once(' ')?;
    }
    Some((word.parse().ok()?, PathBuf::from(rest)))
}

/// Inodes of the sockets among this process's descriptors.
fn held_inodes() -> HashSet<u64> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn lines_are_read_with_spaces_in_paths_and_before_inodes() {
        let line = "00000000c31cd69a: 00000002 00000000 00010000 0005 01   145 /run/a b/s";
        assert_eq!(bound(line), Some((145, PathBuf::from("/run/a b/s"))));
        assert_eq!(bound("00000000c31cd69a: 00000003 00000000 00000000 0001 03 709145"), None);
        assert_eq!(bound("Num       RefCount Protocol Flags    Type St Inode Path"), None);
        assert_eq!(bound(""), None);
    }

    #[test]
    fn only_a_socket_that_this_process_holds_is_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let held = dir.path().join("held");
        let listener = UnixListener::bind(&held).unwrap();
        drop(UnixListener::bind(dir.path().join("left behind")).unwrap());
        assert_eq!(own(dir.path()), [held]);
        assert_eq!(own(dir.path().parent().unwrap()), Vec::<PathBuf>::new());
        drop(listener);
        assert_eq!(own(dir.path()), Vec::<PathBuf>::new());
    }
}
