// SPDX-License-Identifier: BSD-3-Clause
//! Where an OTG port is: an interface, a memif socket, any virtual device, or a PCI address.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Longest path that a Unix socket can have, without its NUL.
const MAX_SOCKET_PATH: usize = 107;

/// Drivers that `vdev:` may name. Others take a file to overwrite, a program to run or a pointer.
const VDEV_DRIVERS: [&str; 9] = [
    "net_null",
    "net_ring",
    "net_memif",
    "net_tap",
    "net_af_packet",
    "net_af_xdp",
    "net_virtio_user",
    "net_vhost",
    "eth_vhost",
];

/// Which drivers `vdev:` may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vdevs {
    /// Those that are known to do no harm.
    #[default]
    Known,
    /// Any: who calls the API is trusted.
    Any,
}

/// The side of a memif link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Listens on the socket.
    Server,
    /// Connects to it.
    Client,
}

/// A port's location, written as in OTG's `location`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A network interface of the kernel, by the af_packet driver.
    Interface(String),
    /// `memif:SOCKET[,role=client|server][,id=N]`.
    Memif {
        /// Path of the socket.
        socket: String,
        /// Our side.
        role: Role,
        /// Number of the link on the socket.
        id: u32,
    },
    /// `vdev:ARGUMENTS`, given to DPDK as they are; see [`Vdevs`].
    Vdev(String),
    /// `pci:ADDRESS`.
    Pci(String),
}

/// Why a location is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Nothing is there.
    #[error("is empty; give an interface, memif:SOCKET, vdev:ARGUMENTS or pci:ADDRESS")]
    Empty,
    /// The prefix before the colon is unknown.
    #[error(
        "{0:?} is no kind of location; the kinds are an interface's name, memif:, vdev: and pci:"
    )]
    Kind(String),
    /// An interface's name is too long or holds characters that none can have.
    #[error("{0:?} cannot be an interface's name")]
    Interface(String),
    /// The memif socket's path cannot be used.
    #[error(
        "memif socket {0:?}: give an absolute path of at most {MAX_SOCKET_PATH} bytes without commas or control characters"
    )]
    Socket(String),
    /// A memif option is unknown or has a bad value.
    #[error("memif option {0:?}: the options are role=server, role=client and id=N")]
    Option(String),
    /// A PCI address is malformed.
    #[error("{0:?} is not a PCI address such as 0000:01:00.0")]
    Pci(String),
    /// Device arguments hold characters that DPDK cannot take.
    #[error("device arguments {0:?} are empty or hold control characters")]
    Vdev(String),
    /// The driver is not one of those that are known to do no harm.
    #[error(
        "device {0:?} is not allowed; a name begins with one of {drivers}; `generator --allow-any-vdev` permits net_pcap too, and EAL's own --vdev takes any",
        drivers = VDEV_DRIVERS.join(", ")
    )]
    Driver(String),
    /// The device arguments hold a pointer.
    #[error("device arguments {0:?}: `internal=` is a pointer in memory and never allowed")]
    Internal(String),
}

/// Why a location cannot be opened now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// There is no such interface.
    #[error("there is no network interface {0:?} (see `ip link`)")]
    NoInterface(String),
    /// Something is at the socket's path.
    #[error(
        "memif socket {0:?} exists: end the program that serves it, remove the file, or choose another path"
    )]
    SocketTaken(String),
    /// The directory of the socket is missing.
    #[error("memif socket {0:?}: its directory does not exist")]
    NoDirectory(String),
    /// There is no such device on the bus.
    #[error("there is no PCI device {0:?} (see `lspci -D`)")]
    NoPciDevice(String),
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Location::read(text, Vdevs::Known)
    }
}

impl Location {
    /// Reads a location.
    ///
    /// # Errors
    /// [`LocationError`], with what would be right.
    pub fn read(text: &str, vdevs: Vdevs) -> Result<Self, LocationError> {
        match text.split_once(':') {
            _ if text.is_empty() => Err(LocationError::Empty),
            None => interface(text),
            Some(("memif", rest)) => memif(rest),
            Some(("vdev", rest)) => vdev(rest, vdevs),
            Some(("pci", rest)) => pci(rest),
            Some((kind, _)) => Err(LocationError::Kind(kind.to_owned())),
        }
    }
}

fn interface(name: &str) -> Result<Location, LocationError> {
    let bad = name.len() > 15
        || name == "."
        || name == ".."
        || name.contains(|c: char| c == '/' || c == ',' || c.is_whitespace() || c.is_control());
    if bad {
        Err(LocationError::Interface(name.to_owned()))
    } else {
        Ok(Location::Interface(name.to_owned()))
    }
}

fn vdev(arguments: &str, vdevs: Vdevs) -> Result<Location, LocationError> {
    if arguments.is_empty() || arguments.chars().any(char::is_control) {
        return Err(LocationError::Vdev(arguments.to_owned()));
    }
    // A driver may hand arguments on to another, in brackets.
    let mut keys = arguments.split(',').map(|part| part.split('=').next().unwrap_or(part).trim());
    if arguments.contains("internal=") || keys.any(|key| key == "internal") {
        return Err(LocationError::Internal(arguments.to_owned()));
    }
    let name = arguments.split(',').next().unwrap_or(arguments);
    // DPDK, too, takes the driver whose name the device's begins with.
    let known = VDEV_DRIVERS
        .iter()
        .filter_map(|driver| name.strip_prefix(driver))
        .any(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    match known || vdevs == Vdevs::Any {
        true => Ok(Location::Vdev(arguments.to_owned())),
        false => Err(LocationError::Driver(name.to_owned())),
    }
}

fn memif(text: &str) -> Result<Location, LocationError> {
    let mut parts = text.split(',');
    let socket = parts.next().unwrap_or_default();
    if !socket.starts_with('/')
        || socket.len() > MAX_SOCKET_PATH
        || socket.chars().any(char::is_control)
    {
        return Err(LocationError::Socket(socket.to_owned()));
    }
    let (mut role, mut id) = (None, None);
    for option in parts {
        let bad = || LocationError::Option(option.to_owned());
        match option.split_once('=') {
            Some(("role", "server")) if role.is_none() => role = Some(Role::Server),
            Some(("role", "client")) if role.is_none() => role = Some(Role::Client),
            Some(("id", number)) if id.is_none() && number.bytes().all(|b| b.is_ascii_digit()) => {
                id = Some(number.parse().map_err(|_| bad())?);
            }
            _ => return Err(bad()),
        }
    }
    Ok(Location::Memif {
        socket: socket.to_owned(),
        role: role.unwrap_or(Role::Server),
        id: id.unwrap_or(0),
    })
}

fn pci(address: &str) -> Result<Location, LocationError> {
    let hex =
        |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_hexdigit());
    let good = || {
        let (bus_device, function) = address.rsplit_once('.')?;
        let mut parts = bus_device.rsplit(':');
        let (device, bus) = (parts.next()?, parts.next()?);
        let domain = parts.next().unwrap_or("0000");
        (hex(device, 2)
            && hex(bus, 2)
            && hex(domain, 4)
            && hex(function, 1)
            && parts.next().is_none())
        .then_some(())
    };
    match good() {
        Some(()) => Ok(Location::Pci(address.to_owned())),
        None => Err(LocationError::Pci(address.to_owned())),
    }
}

impl Location {
    /// DPDK's device arguments; `number` makes the device's name unique in the process.
    pub fn device_arguments(&self, number: u32) -> String {
        match self {
            Location::Interface(name) => format!("net_af_packet{number},iface={name}"),
            Location::Memif { socket, role, id } => {
                let role = match role {
                    Role::Server => "server",
                    Role::Client => "client",
                };
                format!("net_memif{number},role={role},id={id},socket={socket},socket-abstract=no")
            }
            Location::Vdev(arguments) => arguments.clone(),
            Location::Pci(address) => address.clone(),
        }
    }

    /// The socket that we would listen on.
    pub fn listens_on(&self) -> Option<&str> {
        match self {
            Location::Memif { socket, role: Role::Server, .. } => Some(socket),
            _ => None,
        }
    }

    /// Whether two locations are the same link, so that only one port can be there.
    pub fn collides_with(&self, other: &Location) -> bool {
        match (self, other) {
            (
                Location::Memif { socket: a, id: m, role: r },
                Location::Memif { socket: b, id: n, role: s },
            ) => a == b && (m == n || r != s),
            _ => self == other,
        }
    }

    /// Looks whether the location can be opened; `ours` are the sockets that we listen on already.
    /// A socket that no process has open any more is removed from where we want to listen.
    ///
    /// # Errors
    /// [`Unavailable`], with what to do.
    pub fn probe(&self, ours: &[&str]) -> Result<(), Unavailable> {
        match self {
            Location::Interface(name) if !Path::new("/sys/class/net").join(name).exists() => {
                Err(Unavailable::NoInterface(name.clone()))
            }
            Location::Memif { socket, role: Role::Server, .. }
                if !ours.contains(&socket.as_str()) =>
            {
                let path = Path::new(socket);
                if host::is_stale_socket(path) {
                    // If it stays, the next line tells.
                    let _ = std::fs::remove_file(path);
                }
                if path.symlink_metadata().is_ok() {
                    Err(Unavailable::SocketTaken(socket.clone()))
                } else if !path.parent().is_some_and(Path::is_dir) {
                    Err(Unavailable::NoDirectory(socket.clone()))
                } else {
                    Ok(())
                }
            }
            Location::Pci(address) => {
                let full = if address.matches(':').count() == 1 {
                    format!("0000:{address}")
                } else {
                    address.clone()
                };
                match Path::new("/sys/bus/pci/devices").join(full.to_lowercase()).exists() {
                    true => Ok(()),
                    false => Err(Unavailable::NoPciDevice(address.clone())),
                }
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Interface(name) => f.write_str(name),
            Location::Memif { socket, role, id } => {
                write!(f, "memif:{socket}")?;
                if *role == Role::Client {
                    f.write_str(",role=client")?;
                }
                if *id != 0 {
                    write!(f, ",id={id}")?;
                }
                Ok(())
            }
            Location::Vdev(arguments) => write!(f, "vdev:{arguments}"),
            Location::Pci(address) => write!(f, "pci:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_locations_read_and_print() {
        for (text, arguments) in [
            ("veth0", "net_af_packet7,iface=veth0"),
            (
                "memif:/run/a.sock",
                "net_memif7,role=server,id=0,socket=/run/a.sock,socket-abstract=no",
            ),
            (
                "memif:/run/a.sock,role=client,id=3",
                "net_memif7,role=client,id=3,socket=/run/a.sock,socket-abstract=no",
            ),
            ("vdev:net_null0,size=64", "net_null0,size=64"),
            ("pci:0000:01:00.0", "0000:01:00.0"),
            ("pci:01:00.1", "01:00.1"),
        ] {
            let location: Location = text.parse().unwrap();
            assert_eq!(location.to_string(), text);
            assert_eq!(location.device_arguments(7), arguments);
        }
        assert_eq!(
            "memif:/a,id=0,role=server".parse::<Location>().unwrap().to_string(),
            "memif:/a"
        );
    }

    #[test]
    fn bad_locations_are_named() {
        for bad in [
            "",
            "a/b",
            "sixteen-letters-x",
            "memif:",
            "memif:relative",
            "memif:/a,role=master",
            "memif:/a,id=-1",
            "memif:/a,id=1,id=2",
            "memif:/a,mac=x",
            "vdev:",
            "pci:",
            "pci:01:00",
            "pci:1:00.0",
            "pci:0000:00:01:00.0",
            "tcp:1.2.3.4",
            "memif:/a\n",
        ] {
            assert!(bad.parse::<Location>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_harmless_virtual_devices_are_allowed() {
        for good in [
            "net_null",
            "net_null0,size=64",
            "net_ring_a1",
            "net_memif0,role=client",
            "net_tap0,iface=internal0",
            "net_af_packet0,iface=lo",
            "net_af_xdp0,iface=lo",
            "net_virtio_user0,path=/tmp/s",
            "net_vhost0,iface=/tmp/s",
            "eth_vhost0,iface=/tmp/s",
        ] {
            let text = format!("vdev:{good}");
            assert_eq!(text.parse(), Ok(Location::Vdev(good.to_owned())), "{good}");
        }
        for bad in [
            "net_pcap0,tx_pcap=/tmp/f",
            "net_bonding0,member=0000:01:00.0",
            "net_failsafe0,exec(reboot)",
            "crypto_null",
            "net_rin",
            "net_ring-0",
            "net_ring:0",
            "net_ring0/driver=net_pcap",
            " net_ring0",
            "bus=vdev,name=net_pcap0",
            "vdev:net_pcap0",
            ",net_ring0",
        ] {
            let text = format!("vdev:{bad}");
            let error = text.parse::<Location>().unwrap_err();
            assert!(matches!(error, LocationError::Driver(_)), "{bad}: {error:?}");
            assert!(error.to_string().contains("--allow-any-vdev"), "{error}");
            assert_eq!(Location::read(&text, Vdevs::Any), Ok(Location::Vdev(bad.to_owned())));
        }
        for bad in [
            "net_ring0,internal=0x10",
            "net_ring0,a=1,internal=0x10",
            "net_ring0, internal =0x10",
            "net_ring0,internal",
            "net_failsafe0,dev(net_ring0,internal=0x10)",
        ] {
            for vdevs in [Vdevs::Known, Vdevs::Any] {
                let read = Location::read(&format!("vdev:{bad}"), vdevs);
                assert_eq!(read, Err(LocationError::Internal(bad.to_owned())));
            }
        }
    }

    #[test]
    fn a_socket_left_behind_is_removed_and_a_live_one_kept() {
        let path = std::env::temp_dir().join(format!("location-{}", std::process::id()));
        let location: Location = format!("memif:{}", path.display()).parse().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(matches!(location.probe(&[]), Err(Unavailable::SocketTaken(_))));
        assert!(path.exists());
        drop(listener);
        assert_eq!(location.probe(&[]), Ok(()));
        assert!(!path.exists());
    }

    #[test]
    fn links_collide_where_only_one_can_be() {
        let at = |text: &str| text.parse::<Location>().unwrap();
        assert!(at("memif:/a").collides_with(&at("memif:/a,id=0")));
        assert!(!at("memif:/a").collides_with(&at("memif:/a,id=1")));
        assert!(at("memif:/a").collides_with(&at("memif:/a,id=1,role=client")));
        assert!(at("lo").collides_with(&at("lo")));
    }

    #[test]
    fn what_is_not_there_cannot_be_opened() {
        let at = |text: &str| text.parse::<Location>().unwrap().probe(&[]);
        assert!(matches!(at("no-such-if"), Err(Unavailable::NoInterface(_))));
        assert!(matches!(at("memif:/dev/null"), Err(Unavailable::SocketTaken(_))));
        assert!(matches!(at("memif:/no/such/dir/a"), Err(Unavailable::NoDirectory(_))));
        assert!(matches!(at("pci:ffff:ff:1f.7"), Err(Unavailable::NoPciDevice(_))));
        assert_eq!(at("lo"), Ok(()));
        assert_eq!("memif:/dev/null".parse::<Location>().unwrap().probe(&["/dev/null"]), Ok(()));
    }
}
