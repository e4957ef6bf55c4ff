// SPDX-License-Identifier: BSD-3-Clause
//! Network interfaces, queried from the kernel over rtnetlink. Unlike `/sys`, its answers are those
//! of the process's network namespace, and name the far end of a veth in another one.
//!
//! The numbers and layouts are those of `linux/rtnetlink.h` and `linux/if_link.h`.

use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::netdev;
use crate::netlink::{self, Attributes, i32_at, put, u32_at};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
/// Length of `struct ifinfomsg`.
const INFO: usize = 16;
const IFF_UP: u32 = 1;
const IFF_PROMISC: u32 = 0x100;
/// The most bytes in an interface's name (`IFNAMSIZ` without the NUL).
const LONGEST_NAME: usize = 15;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_CARRIER: u16 = 33;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_XDP: u16 = 43;
const IFLA_TARGET_NETNSID: u16 = 46;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP_ATTACHED: u16 = 2;
/// `XDP_ATTACHED_DRV` and `XDP_ATTACHED_MULTI`: a program runs in the driver.
const XDP_IN_DRIVER: [u8; 2] = [1, 4];

/// What the kernel reports of a network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// It is set up (`ip link set NAME up`).
    pub is_up: bool,
    /// Its promiscuous flag is set (`ip link set NAME promisc on`). Programs that request
    /// promiscuous mode through sockets do not show here.
    pub is_promiscuous: bool,
    /// There is a link. A veth has one when both of its ends are up.
    pub has_carrier: bool,
    /// Its MAC address; none for interfaces without one.
    pub mac: Option<[u8; 6]>,
    /// MTU: the largest packet in bytes, without its Ethernet header.
    pub mtu: u32,
    /// Its driver type, such as `veth` or `bridge`; none for hardware.
    pub kind: Option<String>,
    /// It has an XDP program, native (in the driver) or generic.
    pub has_xdp: bool,
    /// It has a native XDP program.
    pub has_xdp_in_driver: bool,
    /// Index of the bridge or bond that it belongs to.
    pub master: Option<u32>,
    /// Index of the linked interface: the far end of a veth.
    pub link: Option<u32>,
    /// The ID in this namespace of the namespace of `link`; none if it is this one.
    pub link_namespace: Option<i32>,
}

/// The interface of that name in this namespace; none if there is none.
///
/// # Errors
/// The kernel cannot be queried.
pub fn interface(name: &str) -> io::Result<Option<Interface>> {
    // The kernel would answer with ERANGE.
    if name.len() > LONGEST_NAME {
        return Ok(None);
    }
    let mut text = name.as_bytes().to_vec();
    text.push(0);
    ask(0, &[(IFLA_IFNAME, &text)])
}

/// The interface with that index in a namespace, given by its ID in this one; none: in this one.
///
/// # Errors
/// The kernel cannot be queried, or not by this process.
pub fn interface_by_number(index: u32, namespace: Option<i32>) -> io::Result<Option<Interface>> {
    match namespace.map(i32::to_ne_bytes) {
        Some(namespace) => ask(index, &[(IFLA_TARGET_NETNSID, &namespace)]),
        None => ask(index, &[]),
    }
}

impl Interface {
    /// The other end of a veth, in whichever namespace; none for other kinds.
    ///
    /// # Errors
    /// The kernel cannot be queried, or not by this process: it needs rights over the other
    /// namespace.
    pub fn veth_peer(&self) -> io::Result<Option<Interface>> {
        match (self.kind.as_deref(), self.link) {
            (Some("veth"), Some(index)) => interface_by_number(index, self.link_namespace),
            _ => Ok(None),
        }
    }

    /// Returns true if its driver supports zero-copy AF_XDP; none if the kernel is too old to
    /// report it.
    ///
    /// # Errors
    /// The kernel cannot be queried.
    pub fn has_zero_copy(&self) -> io::Result<Option<bool>> {
        netdev::has_zero_copy(self.index)
    }

    /// Returns true if its driver supports native XDP; none if the kernel is too old to report it.
    ///
    /// # Errors
    /// The kernel cannot be queried.
    pub fn has_native_xdp(&self) -> io::Result<Option<bool>> {
        netdev::has_native_xdp(self.index)
    }
}

/// Sets or clears the promiscuous flag of an interface of this namespace.
///
/// # Errors
/// The kernel's: it needs CAP_NET_ADMIN.
pub fn set_promiscuous(index: u32, on: bool) -> io::Result<()> {
    let mut info = [0; INFO];
    put(&mut info, 4, &index.to_ne_bytes());
    put(&mut info, 8, &if on { IFF_PROMISC } else { 0 }.to_ne_bytes());
    // The mask of flags to change.
    put(&mut info, 12, &IFF_PROMISC.to_ne_bytes());
    netlink::tell(RTM_NEWLINK, &info)
}

/// The number of receive queues of an interface of this namespace; none if `/sys` is another
/// namespace's.
#[must_use]
pub fn receive_queues(name: &str) -> Option<usize> {
    let queues = Path::new("/sys/class/net").join(name).join("queues");
    let names = fs::read_dir(queues).ok()?.flatten().map(|entry| entry.file_name());
    Some(names.filter(|name| name.as_encoded_bytes().starts_with(b"rx-")).count())
}

/// Returns true if there is an interface of that name in this namespace, or if that cannot be found
/// out.
#[must_use]
pub fn has_interface(name: &str) -> bool {
    !matches!(interface(name), Ok(None))
}

fn ask(index: u32, attributes: &[(u16, &[u8])]) -> io::Result<Option<Interface>> {
    let mut info = [0; INFO];
    put(&mut info, 4, &index.to_ne_bytes());
    match netlink::ask(None, RTM_GETLINK, &info, attributes) {
        Ok((RTM_NEWLINK, answer)) => Ok(Some(read_link(&answer)?)),
        Ok(_) => Err(io::ErrorKind::InvalidData.into()),
        Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_link(answer: &[u8]) -> io::Result<Interface> {
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let attributes = answer.get(INFO..).ok_or_else(short)?;
    let flags = u32_at(answer, 8).ok_or_else(short)?;
    let mut found = Interface {
        index: u32_at(answer, 4).ok_or_else(short)?,
        is_up: flags & IFF_UP != 0,
        is_promiscuous: flags & IFF_PROMISC != 0,
        ..Interface::default()
    };
    for (kind, value) in Attributes(attributes) {
        match kind {
            IFLA_IFNAME => found.name = text(value),
            IFLA_ADDRESS => found.mac = value.try_into().ok(),
            IFLA_MTU => found.mtu = u32_at(value, 0).unwrap_or_default(),
            IFLA_LINK => found.link = u32_at(value, 0),
            IFLA_MASTER => found.master = u32_at(value, 0),
            IFLA_CARRIER => found.has_carrier = value.first() == Some(&1),
            IFLA_LINK_NETNSID => {
                found.link_namespace = i32_at(value, 0);
            }
            IFLA_LINKINFO => {
                let kind = Attributes(value).find(|(kind, _)| *kind == IFLA_INFO_KIND);
                found.kind = kind.map(|(_, value)| text(value));
            }
            IFLA_XDP => {
                let place = Attributes(value).find(|(kind, _)| *kind == IFLA_XDP_ATTACHED);
                let place = place.and_then(|(_, value)| value.first().copied()).unwrap_or(0);
                found.has_xdp = place != 0;
                found.has_xdp_in_driver = XDP_IN_DRIVER.contains(&place);
            }
            _ => {}
        }
    }
    Ok(found)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message;

    #[test]
    fn loopback_is_known_and_others_are_not() {
        let found = interface("lo").unwrap().unwrap();
        assert_eq!(found.name, "lo");
        assert!(found.mtu >= 1500, "{found:?}");
        assert_eq!((found.kind.clone(), found.link, found.has_xdp), (None, None, false));
        assert_eq!(found.veth_peer().unwrap(), None);
        assert_eq!(interface_by_number(found.index, None).unwrap(), Some(found));
        assert!(has_interface("lo"));
        assert_eq!(receive_queues("lo"), Some(1));
        assert_eq!(interface("no-such-if").unwrap(), None);
        // No interface can have that name, and the kernel refuses the query.
        assert_eq!(interface("a-name-that-is-too-long").unwrap(), None);
        assert!(!has_interface("no-such-if"));
        assert_eq!(receive_queues("no-such-if"), None);
    }

    #[test]
    fn loopback_runs_no_xdp_programs() {
        let loopback = interface("lo").unwrap().unwrap();
        assert_ne!(loopback.has_native_xdp().unwrap(), Some(true));
        assert_ne!(loopback.has_zero_copy().unwrap(), Some(true));
    }

    #[test]
    fn the_answer_of_a_veth_is_read() {
        let mut nested = message(&[], &[(IFLA_INFO_KIND, b"veth\0")]);
        let info = std::mem::take(&mut nested);
        let xdp = message(&[], &[(IFLA_XDP_ATTACHED, &[1])]);
        let mut head = [0; INFO];
        put(&mut head, 4, &5u32.to_ne_bytes());
        put(&mut head, 8, &0x1103u32.to_ne_bytes());
        let answer = message(
            &head,
            &[
                (IFLA_IFNAME, b"veth0\0"),
                (IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9]),
                (IFLA_MTU, &1500u32.to_ne_bytes()),
                (IFLA_CARRIER, &[1]),
                (IFLA_LINK, &7u32.to_ne_bytes()),
                (IFLA_LINK_NETNSID, &3i32.to_ne_bytes()),
                (IFLA_MASTER, &9u32.to_ne_bytes()),
                (IFLA_LINKINFO, &info),
                (IFLA_XDP | 0x8000, &xdp),
            ],
        );
        let whole = Interface {
            name: "veth0".to_owned(),
            index: 5,
            is_up: true,
            is_promiscuous: true,
            has_carrier: true,
            mac: Some([2, 0, 0, 0, 0, 9]),
            mtu: 1500,
            kind: Some("veth".to_owned()),
            has_xdp: true,
            has_xdp_in_driver: true,
            master: Some(9),
            link: Some(7),
            link_namespace: Some(3),
        };
        assert_eq!(read_link(&answer).unwrap(), whole);
        // Truncated anywhere, it is read or refused.
        for length in 0..answer.len() {
            assert_eq!(read_link(&answer[..length]).is_err(), length < INFO);
        }
    }
}
