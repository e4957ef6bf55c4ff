// SPDX-License-Identifier: BSD-3-Clause
//! The packet sockets (`AF_PACKET`) of this process.

use std::io;

use rustix::fd::OwnedFd;
use rustix::net::AddressFamily;
use rustix::net::sockopt::{
    set_socket_send_buffer_size, set_socket_send_buffer_size_force, socket_domain,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::sockets::own_sockets;

/// More than all slots of a driver's largest ring hold. It is a limit: the kernel allocates nothing
/// for it.
const ROOM: usize = 1 << 28;

/// Raises the limit on frames that the interface has not taken yet (`SO_SNDBUF`) for each packet
/// socket of this process, so that no sender reaches it; returns the number of sockets. Without
/// CAP_NET_ADMIN it is raised to the system's maximum.
///
/// DPDK's net_af_packet sleeps in `poll` when frames reach that limit, by default 212,992 bytes or
/// some 250 frames. A sender that must keep its schedule must not wait for the interface's other
/// end, which drops frames that it has no room for.
///
/// # Errors
/// The kernel's.
pub fn widen_packet_sockets() -> io::Result<usize> {
    let mut found = 0;
    for socket in packet_sockets()? {
        set_socket_send_buffer_size_force(&socket, ROOM)
            .or_else(|_| set_socket_send_buffer_size(&socket, ROOM))?;
        found += 1;
    }
    Ok(found)
}

/// Copies of their descriptors: the code that opened the originals may close them at any time.
fn packet_sockets() -> io::Result<Vec<OwnedFd>> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let mut found = Vec::new();
    for (number, _) in own_sockets()? {
        // Another thread may have closed it.
        let Ok(socket) = pidfd_getfd(&own, number, PidfdGetfdFlags::empty()) else { continue };
        if socket_domain(&socket).is_ok_and(|domain| domain == AddressFamily::PACKET) {
            found.push(socket);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test may.

    use rustix::net::sockopt::socket_send_buffer_size;
    use rustix::net::{SocketFlags, SocketType, socket_with};

    use super::*;

    #[test]
    fn packet_sockets_get_room_and_others_stay() {
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let before = socket_send_buffer_size(&other).unwrap();
        let flags = SocketFlags::CLOEXEC;
        // Only root may have one.
        let packet = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None);
        let Ok(packet) = packet else {
            assert_eq!(widen_packet_sockets().unwrap(), 0);
            return;
        };
        assert!(widen_packet_sockets().unwrap() >= 1);
        assert!(socket_send_buffer_size(&packet).unwrap() >= ROOM);
        assert_eq!(socket_send_buffer_size(&other).unwrap(), before);
    }
}
