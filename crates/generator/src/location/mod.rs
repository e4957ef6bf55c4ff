// SPDX-License-Identifier: BSD-3-Clause
//! Where an OTG port is: a network interface, the socket of a link to another program, a device
//! inside this program, or a PCI address.
//!
//! [`Location::read`] parses the text of OTG's `location`, [`Location::probe`] checks whether it
//! can be opened now, and [`Location::device_arguments`] returns the arguments for DPDK.

mod directories;
mod interfaces;
mod policy;
mod probe;
mod read;
#[cfg(test)]
mod tests;
mod vdev;

use std::fmt;

pub use directories::{Directories, DirectoryError};
pub use interfaces::{Interfaces, Pattern, PatternError};
pub use policy::{Policy, Sockets, Vdevs};
pub use probe::Unavailable;
pub use read::LocationError;

/// The side of a link's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Listens on the socket.
    Server,
    /// Connects to it.
    Client,
}

/// How frames get to an interface of the kernel and from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Packet sockets: any interface; the kernel's stack receives the frames too.
    AfPacket,
    /// AF_XDP sockets, which take every received frame away from the stack.
    AfXdp(Copying),
}

/// How AF_XDP moves frames between the driver's memory and ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// Zero-copy if the interface's driver supports it, otherwise copy mode.
    #[default]
    Either,
    /// Copy mode.
    Copy,
    /// Zero-copy only.
    ZeroCopy,
}

/// Which end of a vhost-user link this is. Either may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VhostEnd {
    /// The host's: `net_vhost`.
    Vhost,
    /// The guest's: `net_virtio_user`.
    VirtioUser,
}

impl VhostEnd {
    /// The prefix of such a location.
    fn kind(self) -> &'static str {
        match self {
            VhostEnd::Vhost => "vhost",
            VhostEnd::VirtioUser => "virtio_user",
        }
    }

    /// The role when none is given: hosts listen.
    fn usual_role(self) -> Role {
        match self {
            VhostEnd::Vhost => Role::Server,
            VhostEnd::VirtioUser => Role::Client,
        }
    }
}

/// The name of a device of this driver, which DPDK finds by the name's beginning.
fn named(driver: &str, what: &str, number: u32) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let what: String = what.chars().take(MAX_NAMED).map(kept).collect();
    let dash = if what.is_empty() { "" } else { "_" };
    match number {
        0 => format!("{driver}{dash}{what}"),
        _ => format!("{driver}{dash}{what}_{number}"),
    }
}

/// Most characters of what a location names in the name of its device: `dpdk` takes 40 in all.
const MAX_NAMED: usize = 18;

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A port's location, written as in OTG's `location`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// `IFACE`, `af_packet:IFACE[,queues=N]` or `af_xdp:IFACE[,queues=N][,mode=copy|zero-copy]`.
    Interface {
        /// The interface's name, in the network namespace of this process.
        name: String,
        /// How frames get there.
        driver: Driver,
        /// Number of the device's queues.
        queues: u16,
    },
    /// `memif:SOCKET[,role=client|server][,id=N]`.
    Memif {
        /// Path of the socket.
        socket: String,
        /// Our role.
        role: Role,
        /// Number of the interface on the socket.
        id: u32,
    },
    /// `vhost:SOCKET[,role=server|client][,queues=N]` or
    /// `virtio_user:SOCKET[,role=client|server][,queues=N]`.
    VhostUser {
        /// Which end this is.
        end: VhostEnd,
        /// Path of the socket.
        socket: String,
        /// Our role on the socket.
        role: Role,
        /// Number of queue pairs.
        queues: u16,
    },
    /// `tap:NAME`: an interface that is created, and removed with the port.
    Tap(String),
    /// `ring:NAME`: sent frames are received again.
    Ring(String),
    /// `null[:NAME][,size=N][,no-rx=0|1]`: sent frames are discarded; received ones contain nothing
    /// meaningful.
    Null {
        /// Distinguishes several of them.
        name: String,
        /// Length of received frames in bytes without the FCS; DPDK's choice if not given.
        size: Option<u16>,
        /// Nothing is received.
        no_rx: bool,
    },
    /// `vdev:ARGUMENTS`, passed to DPDK unchanged; see [`Vdevs`].
    Vdev {
        /// The device's name and arguments.
        arguments: String,
        /// The rule by which they were checked: an API client may name certain devices, and may not
        /// have them created.
        allowed: Vdevs,
    },
    /// `pci:ADDRESS`.
    Pci(String),
}

impl Location {
    /// DPDK's device arguments. The device's name says what the location names, for whoever reads DPDK's own telemetry;
    /// a `number` other than 0 distinguishes it from a device that has this name.
    pub fn device_arguments(&self, number: u32) -> String {
        let named = |driver: &str, what: &str| named(driver, what, number);
        match self {
            Location::Interface { name, driver: Driver::AfPacket, queues } => {
                let queues = unless(1, *queues, |queues| format!(",qpairs={queues}"));
                format!("{},iface={name}{queues}", named("net_af_packet", name))
            }
            Location::Interface { name, driver: Driver::AfXdp(copying), queues } => {
                let queues = unless(1, *queues, |queues| format!(",queue_count={queues}"));
                let copy = if *copying == Copying::Copy { ",force_copy=1" } else { "" };
                format!("{},iface={name}{queues}{copy}", named("net_af_xdp", name))
            }
            Location::Memif { socket, role, id } => {
                let device = named("net_memif", &format!("{}_{id}", file_name(socket)));
                let role = role_name(*role);
                format!("{device},role={role},id={id},socket={socket},socket-abstract=no")
            }
            Location::VhostUser { end: VhostEnd::Vhost, socket, role, queues } => {
                let device = named("net_vhost", file_name(socket));
                let client = u8::from(*role == Role::Client);
                format!("{device},iface={socket},queues={queues},client={client}")
            }
            Location::VhostUser { end: VhostEnd::VirtioUser, socket, role, queues } => {
                let device = named("net_virtio_user", file_name(socket));
                let server = u8::from(*role == Role::Server);
                format!("{device},path={socket},queues={queues},server={server}")
            }
            Location::Tap(name) => format!("{},iface={name}", named("net_tap", name)),
            Location::Ring(name) => format!("net_ring_{name}"),
            Location::Null { name, size, no_rx } => {
                let size = size.map_or_else(String::new, |size| format!(",size={size}"));
                let no_rx = if *no_rx { ",no-rx=1" } else { "" };
                format!("{}{size}{no_rx}", named("net_null", name))
            }
            Location::Vdev { arguments, .. } => arguments.clone(),
            Location::Pci(address) => address.clone(),
        }
    }

    /// Returns true if the device's name takes a number, so that the location cannot name an
    /// existing device.
    pub fn is_numbered(&self) -> bool {
        self.device_arguments(0) != self.device_arguments(1)
    }

    /// Returns true if this is a `vdev:` of an API client.
    pub fn is_clients_device(&self) -> bool {
        matches!(self, Location::Vdev { allowed: Vdevs::Pathless, .. })
    }

    /// DPDK's name for the device with these arguments.
    pub fn device_name(&self, arguments: &str) -> String {
        match self {
            Location::Pci(address) => full_address(address),
            _ => arguments.split(',').next().unwrap_or_default().to_owned(),
        }
    }

    /// The socket on which we would listen.
    pub fn listens_on(&self) -> Option<&str> {
        match self {
            Location::Memif { socket, role: Role::Server, .. }
            | Location::VhostUser { socket, role: Role::Server, .. } => Some(socket),
            Location::Vdev { arguments, .. } => vdev::listens_on(arguments),
            _ => None,
        }
    }

    /// The network interface that frames go through; none if the port creates it.
    pub fn interface(&self) -> Option<&str> {
        match self {
            Location::Interface { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The network interfaces that the port would use or create.
    pub fn interfaces(&self) -> Vec<&str> {
        match self {
            Location::Interface { name, .. } | Location::Tap(name) => vec![name],
            Location::Vdev { arguments, .. } => vdev::interfaces(arguments),
            _ => Vec::new(),
        }
    }

    /// Number of queues per direction, as far as the location specifies it.
    pub fn queues(&self) -> u16 {
        match self {
            Location::Interface { queues, .. } | Location::VhostUser { queues, .. } => *queues,
            _ => 1,
        }
    }

    /// Returns true if only the first queue in each direction may be used, however many the driver
    /// has: memif's ends agree on a number of rings when they connect, and the driver treats the
    /// memory of a queue above it as a ring all the same.
    pub fn has_one_queue(&self) -> bool {
        match self {
            Location::Memif { .. } => true,
            Location::Vdev { arguments, .. } => vdev::is_memif(arguments),
            _ => false,
        }
    }

    /// Returns true if the driver is net_af_xdp: it releases neither buffers nor ports that it
    /// could not set up.
    pub fn is_af_xdp(&self) -> bool {
        match self {
            Location::Interface { driver, .. } => matches!(driver, Driver::AfXdp(_)),
            Location::Vdev { arguments, .. } => vdev::is_af_xdp(arguments),
            _ => false,
        }
    }

    /// Returns true if two locations are the same link, so that only one port can be there.
    pub fn collides_with(&self, other: &Location) -> bool {
        match (self, other) {
            (
                Location::Memif { socket: a, id: m, role: r },
                Location::Memif { socket: b, id: n, role: s },
            ) => a == b && (m == n || r != s),
            (
                Location::Tap(a) | Location::Interface { name: a, .. },
                Location::Tap(b) | Location::Interface { name: b, .. },
            )
            | (Location::Null { name: a, .. }, Location::Null { name: b, .. }) => a == b,
            // Both ends of a link in one process would wait for each other.
            (
                Location::VhostUser { socket: a, .. },
                Location::VhostUser { socket: b, .. } | Location::Memif { socket: b, .. },
            )
            | (Location::Memif { socket: a, .. }, Location::VhostUser { socket: b, .. }) => a == b,
            _ => self == other,
        }
    }
}

/// A PCI address with its domain, as the kernel and DPDK write it.
fn full_address(address: &str) -> String {
    let domain = if address.matches(':').count() == 1 { "0000:" } else { "" };
    format!("{domain}{address}").to_lowercase()
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Server => "server",
        Role::Client => "client",
    }
}

/// An empty string for the default value, otherwise `text` of the value.
fn unless<T: PartialEq>(usual: T, value: T, text: impl FnOnce(T) -> String) -> String {
    if value == usual { String::new() } else { text(value) }
}

/// The shortest text that reads back the same.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Interface { name, driver, queues } => {
                let queues = unless(1, *queues, |queues| format!(",queues={queues}"));
                match driver {
                    // A name alone would be parsed as another kind of location.
                    Driver::AfPacket if queues.is_empty() && name != "null" => f.write_str(name),
                    Driver::AfPacket => write!(f, "af_packet:{name}{queues}"),
                    Driver::AfXdp(copying) => {
                        let mode = match copying {
                            Copying::Either => "",
                            Copying::Copy => ",mode=copy",
                            Copying::ZeroCopy => ",mode=zero-copy",
                        };
                        write!(f, "af_xdp:{name}{queues}{mode}")
                    }
                }
            }
            Location::Memif { socket, role, id } => {
                let role = unless(Role::Server, *role, |role| format!(",role={}", role_name(role)));
                let id = unless(0, *id, |id| format!(",id={id}"));
                write!(f, "memif:{socket}{role}{id}")
            }
            Location::VhostUser { end, socket, role, queues } => {
                let role = unless(end.usual_role(), *role, |r| format!(",role={}", role_name(r)));
                let queues = unless(1, *queues, |queues| format!(",queues={queues}"));
                write!(f, "{}:{socket}{role}{queues}", end.kind())
            }
            Location::Tap(name) => write!(f, "tap:{name}"),
            Location::Ring(name) => write!(f, "ring:{name}"),
            Location::Null { name, size, no_rx } => {
                let mut parts: Vec<String> = Vec::new();
                parts.extend((!name.is_empty()).then(|| name.clone()));
                parts.extend(size.map(|size| format!("size={size}")));
                parts.extend(no_rx.then(|| "no-rx=1".to_owned()));
                match parts.is_empty() {
                    true => f.write_str("null"),
                    false => write!(f, "null:{}", parts.join(",")),
                }
            }
            Location::Vdev { arguments, .. } => write!(f, "vdev:{arguments}"),
            Location::Pci(address) => write!(f, "pci:{address}"),
        }
    }
}
