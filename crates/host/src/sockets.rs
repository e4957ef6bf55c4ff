// SPDX-License-Identifier: BSD-3-Clause
//! The sockets of this process.

use std::fs;
use std::io;

/// The sockets among this process's descriptors: descriptor and inode of each. Other threads may
/// close and open sockets meanwhile.
///
/// # Errors
/// The kernel's: there is no `/proc`.
pub fn own_sockets() -> io::Result<Vec<(i32, u64)>> {
    let socket = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, inode))
    };
    Ok(fs::read_dir("/proc/self/fd")?.flatten().filter_map(socket).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test may.

    use std::fs::File;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn sockets_are_found_and_files_are_not() {
        let (socket, file) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), File::open("/proc/self/stat").unwrap());
        let inode = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let found = own_sockets().unwrap();
        let number =
            |fd: i32| found.iter().find(|(found, _)| *found == fd).map(|(_, inode)| *inode);
        let known = number(socket.as_raw_fd()).unwrap();
        assert_eq!(inode.to_str().unwrap(), format!("socket:[{known}]"));
        assert_eq!(number(file.as_raw_fd()), None);
    }
}
