// SPDX-License-Identifier: BSD-3-Clause
//! The sockets in a directory that belong to this process: it may remove only those.
//!
//! Another process with the same file prefix puts its telemetry socket into the same directory, under
//! another name when the first is taken.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The socket files in `dir` that this process has bound and holds open.
///
/// The kernel writes the table page by page. While other programs open and close sockets, a line
/// may appear twice or be missing: so the table is read twice, and each path is returned once.
pub(crate) fn own(dir: &Path) -> Vec<PathBuf> {
    let held = host::own_sockets().unwrap_or_default();
    let held = held.into_iter().map(|(_, inode)| inode).collect();
    // Bytes: paths, and names of other programs' sockets, need not be UTF-8.
    let read = || fs::read("/proc/net/unix").unwrap_or_default();
    within(dir, &held, &[read(), read()])
}

fn within(dir: &Path, held: &HashSet<u64>, tables: &[Vec<u8>]) -> Vec<PathBuf> {
    let lines = tables.iter().flat_map(|table| table.split(|byte| *byte == b'\n'));
    let own: BTreeSet<PathBuf> = lines
        .filter_map(bound)
        .filter(|(inode, path)| held.contains(inode) && path.parent() == Some(dir))
        .map(|(_, path)| path)
        .collect();
    own.into_iter().collect()
}

/// Inode and path of a line `Num RefCount Protocol Flags Type St Inode Path`; a path may hold spaces.
fn bound(line: &[u8]) -> Option<(u64, PathBuf)> {
    let mut rest = line;
    let mut word: &[u8] = &[];
    for _ in 0..7 {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| *byte == b' ')?;
        (word, rest) = (&rest[..end], &rest[end + 1..]);
    }
    let inode = std::str::from_utf8(word).ok()?.parse().ok()?;
    Some((inode, PathBuf::from(OsStr::from_bytes(rest))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn lines_are_read_with_spaces_in_paths_and_before_inodes() {
        let line = b"00000000c31cd69a: 00000002 00000000 00010000 0005 01   145 /run/a b/s";
        assert_eq!(bound(line), Some((145, PathBuf::from("/run/a b/s"))));
        assert_eq!(bound(b"00000000c31cd69a: 00000003 00000000 00000000 0001 03 709145"), None);
        assert_eq!(bound(b"Num       RefCount Protocol Flags    Type St Inode Path"), None);
        assert_eq!(bound(b""), None);
    }

    #[test]
    fn a_line_may_be_there_twice_or_in_one_table_only() {
        let line = |inode: u64, name: &str| {
            format!("0: 00000002 00000000 00010000 0005 01 {inode} /run/{name}\n")
        };
        let tables = [
            format!("{0}{1}{0}", line(7, "a"), line(8, "other's")).into_bytes(),
            format!("{}{}", line(9, "b"), line(7, "a")).into_bytes(),
        ];
        let found = within(Path::new("/run"), &HashSet::from([7, 9]), &tables);
        assert_eq!(found, [Path::new("/run/a"), Path::new("/run/b")]);
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

    #[test]
    fn names_of_sockets_need_be_no_utf8() {
        let dir = tempfile::tempdir().unwrap();
        let other = UnixListener::bind(dir.path().join(OsStr::from_bytes(b"\xff"))).unwrap();
        let held = dir.path().join("held");
        let listener = UnixListener::bind(&held).unwrap();
        let mut all = own(dir.path());
        all.sort();
        assert_eq!(all, [held, dir.path().join(OsStr::from_bytes(b"\xff"))]);
        drop((other, listener));
    }
}
