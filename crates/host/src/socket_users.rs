// SPDX-License-Identifier: BSD-3-Clause
//! Which user of this machine is at the other end of a TCP connection, asked over the netlink family of socket
//! diagnostics. The layouts are those of `linux/inet_diag.h`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::netlink::SOCK_DIAG;

use crate::netlink::{self, put, u32_at};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// Lengths of `struct inet_diag_req_v2` and of a port.
const REQUEST: usize = 56;
const PORT: usize = 2;
/// Offsets in the answer, `struct inet_diag_msg`.
const USER: usize = 64;
const INODE: usize = 68;

/// Asks the kernel for users. It belongs to the network namespace in which it was opened.
#[derive(Debug)]
pub struct SocketUsers(OwnedFd);

impl SocketUsers {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's own.
    pub fn open() -> io::Result<Self> {
        netlink::open(Some(SOCK_DIAG)).map(Self)
    }

    /// The user who has the socket that is bound to `local` and connected to `remote`; none if there is no such socket in
    /// this namespace, if no process has it open any more, or if the kernel does not say.
    #[must_use]
    pub fn user(&self, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
        let request = request(local, remote)?;
        let (_, answer) = netlink::ask_on(&self.0, SOCK_DIAG_BY_FAMILY, &request).ok()?;
        // An answer that was read too late would be another connection's.
        let ports = |bytes: &[u8], at: usize| bytes.get(at..at + 2 * PORT).map(<[u8]>::to_vec);
        let same = ports(&answer, 4) == ports(&request, 8);
        // Sockets that were closed seem to be root's.
        let is_open = u32_at(&answer, INODE)? != 0;
        (same && is_open).then(|| u32_at(&answer, USER))?
    }
}

fn request(local: SocketAddr, remote: SocketAddr) -> Option<Vec<u8>> {
    let mut request = vec![0; REQUEST];
    put(&mut request, 1, &[IPPROTO_TCP]);
    // All states.
    put(&mut request, 4, &u32::MAX.to_ne_bytes());
    put(&mut request, 8, &local.port().to_be_bytes());
    put(&mut request, 10, &remote.port().to_be_bytes());
    match (local.ip().to_canonical(), remote.ip().to_canonical()) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            put(&mut request, 0, &[AF_INET]);
            put(&mut request, 12, &local.octets());
            put(&mut request, 28, &remote.octets());
        }
        (IpAddr::V6(local), IpAddr::V6(remote)) => {
            put(&mut request, 0, &[AF_INET6]);
            put(&mut request, 12, &local.octets());
            put(&mut request, 28, &remote.octets());
        }
        _ => return None,
    }
    // No cookie: the addresses say which.
    put(&mut request, 48, &[u8::MAX; 8]);
    Some(request)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_user_at_the_other_end_is_known() {
        let users = SocketUsers::open().unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                println!("skipped: no {address}");
                continue;
            };
            let to = listener.local_addr().unwrap();
            let client = TcpStream::connect(to).unwrap();
            let (served, from) = listener.accept().unwrap();
            if users.user(from, to).is_none() {
                println!("skipped: the kernel has no socket diagnostics for TCP");
                return;
            }
            assert_eq!(users.user(from, to), Some(crate::user()));
            // No other connection.
            let nobody = SocketAddr::new(from.ip(), 1);
            assert_eq!(users.user(nobody, to), None);
            // One whose socket was closed is nobody's, root's neither. A process that another test starts has a copy of
            // it until it runs its program.
            drop(client);
            let end = Instant::now() + Duration::from_secs(10);
            while users.user(from, to).is_some() {
                assert!(Instant::now() < end, "a closed socket has a user");
                std::thread::yield_now();
            }
            drop(served);
        }
        let (four, six) = ("127.0.0.1:1".parse().unwrap(), "[::1]:1".parse().unwrap());
        assert_eq!(users.user(four, six), None);
    }
}
