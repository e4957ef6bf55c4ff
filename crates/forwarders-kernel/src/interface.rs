// SPDX-License-Identifier: BSD-3-Clause
//! The network interfaces that are a program's ports.

use std::io;

use crate::af_packet::PacketSocket;
use crate::eal::Device;
use crate::frame::{self, Tag};

/// The longest IP packet. Some virtual interfaces accept any MTU.
const MOST_MTU: u32 = 65_535;

/// Why an interface cannot be a port.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// There is none of that name.
    #[error("{device}: no network interface {iface} in this network namespace; see ip -br link")]
    Missing {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
    },
    /// It carries no Ethernet frames.
    #[error(
        "{device}: {iface} has no Ethernet address, so frames have no addresses to rewrite there"
    )]
    NotEthernet {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
    },
    /// Its frames are longer than on any wire.
    #[error(
        "{device}: {iface} has an MTU of {mtu}; {MOST_MTU} at most: ip link set {iface} mtu 1500"
    )]
    LongMtu {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// Its MTU.
        mtu: u32,
    },
    /// It is another port already: frames would be received twice.
    #[error("{device}: {iface} is the interface of {other} already")]
    Twice {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// The other port's device.
        other: String,
    },
    /// The kernel could not be queried.
    #[error("{device}: {iface}: {source}")]
    Unknown {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// The reason.
        source: io::Error,
    },
}

/// A port: an interface under the number and the name that the command line gives it.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its number, from 0 in the order of the command line.
    pub id: u16,
    /// The device, such as `net_af_packet0`.
    pub device: String,
    /// The interface's name.
    pub iface: String,
    /// The interface's index in the kernel.
    pub index: u32,
    /// Its address.
    pub mac: [u8; 6],
    /// MTU: the largest packet in bytes, without its Ethernet header.
    pub mtu: u32,
    /// True if it is a virtual interface, such as a veth. Senders leave checksums to these, but
    /// they do not compute them.
    pub is_virtual: bool,
}

impl Port {
    /// The ports of all devices.
    ///
    /// # Errors
    /// See [`InterfaceError`].
    pub fn all(devices: &[Device]) -> Result<Vec<Self>, InterfaceError> {
        let mut ports: Vec<Self> = Vec::with_capacity(devices.len());
        for (id, device) in (0u16..).zip(devices) {
            let port = Self::find(id, device)?;
            if let Some(other) = ports.iter().find(|other| other.index == port.index) {
                let other = other.device.clone();
                return Err(InterfaceError::Twice {
                    device: port.device,
                    iface: port.iface,
                    other,
                });
            }
            ports.push(port);
        }
        Ok(ports)
    }

    fn find(id: u16, device: &Device) -> Result<Self, InterfaceError> {
        Self::new(id, device, host::interface(&device.iface))
    }

    fn new(
        id: u16,
        device: &Device,
        found: io::Result<Option<host::Interface>>,
    ) -> Result<Self, InterfaceError> {
        let (device, iface) = (device.name.clone(), device.iface.clone());
        match found {
            Err(source) => Err(InterfaceError::Unknown { device, iface, source }),
            Ok(None) => Err(InterfaceError::Missing { device, iface }),
            Ok(Some(found)) => match found.mac.filter(|mac| *mac != [0; 6]) {
                None => Err(InterfaceError::NotEthernet { device, iface }),
                Some(_) if found.mtu > MOST_MTU => {
                    Err(InterfaceError::LongMtu { device, iface, mtu: found.mtu })
                }
                Some(mac) => {
                    let (index, mtu, is_virtual) = (found.index, found.mtu, found.kind.is_some());
                    Ok(Self { id, device, iface, index, mac, mtu, is_virtual })
                }
            },
        }
    }

    /// The interface as it is now, whatever its name; none if it is gone.
    #[must_use]
    pub fn now(&self) -> Option<host::Interface> {
        host::interface_by_number(self.index, None).ok().flatten()
    }

    /// Returns true if it is gone for good. If it cannot be queried, it is assumed to be there.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        host::interface_by_number(self.index, None).is_ok_and(|found| found.is_none())
    }

    /// The longest frame that it sends, in bytes without the FCS: the MTU, an Ethernet header and a
    /// VLAN tag.
    #[must_use]
    pub fn longest_frame(&self) -> usize {
        self.mtu as usize + frame::HEADER + frame::TAG
    }

    /// Returns true if the interface sends a frame of this length with this tag, if it has one.
    #[must_use]
    pub(crate) fn sends(&self, length: usize, tag: Option<Tag>) -> bool {
        sends(self.mtu, length, tag)
    }
}

/// The same for an interface with that MTU.
pub(crate) fn sends(mtu: u32, length: usize, tag: Option<Tag>) -> bool {
    let tagged = tag.is_some_and(|tag| tag.starts_with(&frame::VLAN));
    length <= mtu as usize + frame::HEADER + if tagged { frame::TAG } else { 0 }
}

/// Makes an interface promiscuous as long as this lives.
pub(crate) struct Promiscuous(#[expect(dead_code, reason = "held open")] PacketSocket);

impl Promiscuous {
    /// For a port.
    pub(crate) fn on(port: &Port) -> io::Result<Self> {
        // Bound to nothing, it receives nothing.
        let socket = PacketSocket::new()?;
        socket.promiscuous(port.index)?;
        Ok(Self(socket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eal::Arguments;

    fn ports(line: &str) -> Result<Vec<Port>, InterfaceError> {
        let (read, _) = Arguments::read(line.split_whitespace(), "net_af_packet", &[0]).unwrap();
        Port::all(&read.devices)
    }

    #[test]
    fn what_is_no_ethernet_interface_is_refused_by_name() {
        let error = ports("--vdev net_af_packet0,iface=no-such-if").unwrap_err();
        assert!(matches!(&error, InterfaceError::Missing { .. }), "{error}");
        assert!(error.to_string().contains("net_af_packet0: no network interface no-such-if"));
        let error = ports("--vdev net_af_packet3,iface=lo").unwrap_err();
        assert!(matches!(&error, InterfaceError::NotEthernet { .. }), "{error}");
        assert!(error.to_string().contains("net_af_packet3: lo"), "{error}");
    }

    #[test]
    fn an_mtu_that_no_wire_has_is_refused() {
        let words = ["--vdev", "net_af_packet0,iface=d0"];
        let (read, _) = Arguments::read(words, "net_af_packet", &[0]).unwrap();
        let port = |mtu| {
            let mac = Some([2, 0, 0, 0, 0, 1]);
            let found = host::Interface { mtu, mac, ..host::Interface::default() };
            Port::new(0, &read.devices[0], Ok(Some(found)))
        };
        assert_eq!(port(65_535).unwrap().longest_frame(), 65_553);
        let error = port(65_536).unwrap_err().to_string();
        assert!(error.contains("net_af_packet0: d0 has an MTU of 65536; 65535 at most"), "{error}");
    }
}
