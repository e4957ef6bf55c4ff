// SPDX-License-Identifier: BSD-3-Clause
//! Parses the text of a location. Every option may be given once; the error names the wrong one.

use std::str::FromStr;

use super::policy::{Policy, Sockets};
use super::{Copying, Driver, Location, Role, VhostEnd, interfaces, vdev};

/// Longest path that a Unix socket can have, without its NUL.
const MAX_SOCKET_PATH: usize = 107;
/// Longest name of an interface, without its NUL.
const MAX_INTERFACE: usize = 15;
/// Longest name of a ring: DPDK derives longer names from it, which must not be truncated.
const MAX_RING: usize = 8;
/// Most queues that a location may ask for: as many as the drivers have by default.
pub(super) const MAX_QUEUES: u16 = 16;
/// Longest frame of net_null. Longer ones might not fit into their buffers: see what
/// `dpdk::Eal::attach` allows.
pub(super) const MAX_NULL_SIZE: u16 = 64;

/// Why a text is not a location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// The text is empty.
    #[error(
        "is empty; give an interface's name, or af_packet:IFACE, af_xdp:IFACE, memif:SOCKET, vhost:SOCKET, virtio_user:SOCKET, tap:NAME, ring:NAME, null, vdev:ARGUMENTS or pci:ADDRESS"
    )]
    Empty,
    /// The prefix before the colon is unknown.
    #[error(
        "{0:?} is no kind of location; the kinds are an interface's name, af_packet:, af_xdp:, memif:, vhost:, virtio_user:, tap:, ring:, null, vdev: and pci:"
    )]
    Kind(String),
    /// An interface's name is too long or holds characters that none can have.
    #[error("{0:?} cannot be an interface's name")]
    Interface(String),
    /// The interface is not among the allowed ones.
    #[error(
        "interface {0:?} is not allowed: allow it for configurations by starting the generator with the option `{option}`",
        option = interfaces::option_for(.0)
    )]
    NotAllowed(String),
    /// The path of a socket cannot be used.
    #[error(
        "{kind} socket {path:?}: give an absolute path of at most {MAX_SOCKET_PATH} bytes without commas, brackets or control characters"
    )]
    Socket {
        /// The kind of location.
        kind: &'static str,
        /// What was given.
        path: String,
    },
    /// The socket is not in a directory that is allowed for configurations.
    #[error(
        "{kind} socket {path:?} is not directly in an allowed directory ({directories}); to allow another, start `generator --socket-directory DIRECTORY`"
    )]
    Elsewhere {
        /// The kind of location.
        kind: &'static str,
        /// What was given.
        path: String,
        /// Where sockets may be.
        directories: String,
    },
    /// The socket is one of EAL's own.
    #[error(
        "{kind} socket {path:?}: its name is that of a socket of DPDK's or the API's own; choose another"
    )]
    OfEal {
        /// The kind of location.
        kind: &'static str,
        /// What was given.
        path: String,
    },
    /// A symbolic link is in the socket's place.
    #[error("{kind} socket {path:?} is a symbolic link: give the path of the socket itself")]
    SymbolicLink {
        /// The kind of location.
        kind: &'static str,
        /// What was given.
        path: String,
    },
    /// An option is unknown, is given twice or has a bad value.
    #[error("{kind} option {option:?}: the options are {known}, each once")]
    Option {
        /// The kind of location.
        kind: &'static str,
        /// What was given.
        option: String,
        /// What can be given.
        known: &'static str,
    },
    /// The name of a ring or null device.
    #[error(
        "{kind}:{name}: {name:?} is no name; give letters, digits and underscores, at most {MAX_RING}"
    )]
    Name {
        /// The kind of location.
        kind: &'static str,
        /// What was given.
        name: String,
    },
    /// A PCI address is malformed.
    #[error("{0:?} is not a PCI address such as 0000:01:00.0")]
    Pci(String),
    /// Device arguments hold characters that DPDK cannot take.
    #[error(
        "device arguments {0:?} are empty, hold control characters, or name a socket with a bracket"
    )]
    Vdev(String),
    /// The driver is not among the known safe ones.
    #[error(
        "device {0:?} is not allowed; a name begins with one of {drivers}; `generator --allow-any-vdev` permits net_pcap too, and EAL's own --vdev takes any",
        drivers = vdev::driver_names()
    )]
    Driver(String),
    /// The device arguments hold a pointer.
    #[error("device arguments {0:?}: `internal=` is a pointer in memory and never allowed")]
    Internal(String),
    /// The argument may come only from the command line: it may be a path, a program or a large
    /// size.
    #[error(
        "argument {key:?} of {driver} is not allowed in a configuration (allowed: {known}; others may name files, programs or more interfaces, or reserve any amount of memory); `generator --allow-any-vdev` permits it"
    )]
    Key {
        /// The device's driver.
        driver: &'static str,
        /// What was given.
        key: String,
        /// What may be given.
        known: String,
    },
    /// The driver takes the path of a socket.
    #[error(
        "argument {key:?} of {driver} is not allowed in a configuration, because this driver opens, and may remove, what is at its socket's path: use {location} instead; `generator --allow-any-vdev` permits it"
    )]
    SocketKey {
        /// The device's driver.
        driver: &'static str,
        /// What was given.
        key: String,
        /// The location to use.
        location: &'static str,
    },
    /// The value of an argument is of the wrong type, or out of bounds.
    #[error("argument {argument:?} of {driver}: {key} has to be {wanted}")]
    Value {
        /// The device's driver.
        driver: &'static str,
        /// What was given.
        argument: String,
        /// Its key.
        key: &'static str,
        /// What may be given.
        wanted: String,
    },
}

/// By the rules of the command line.
impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Location::read(text, &Policy::COMMAND_LINE)
    }
}

impl Location {
    /// Reads a location.
    ///
    /// # Errors
    /// [`LocationError`], with what would be right.
    pub fn read(text: &str, policy: &Policy) -> Result<Self, LocationError> {
        let location = Location::read_any(text, policy)?;
        match location.interfaces().into_iter().find(|name| !policy.interfaces.allow(name)) {
            Some(other) => Err(LocationError::NotAllowed(other.to_owned())),
            None => Ok(location),
        }
    }

    /// Like [`Self::read`], at any interface.
    fn read_any(text: &str, policy: &Policy) -> Result<Self, LocationError> {
        match text.split_once(':') {
            _ if text.is_empty() => Err(LocationError::Empty),
            None if text == "null" => null(""),
            // Drivers accept no interface name with a comma.
            None if text.starts_with("null,") => {
                null(text.strip_prefix("null").unwrap_or_default())
            }
            None => {
                let driver = Driver::AfPacket;
                Ok(Location::Interface { name: interface_name(text)?, driver, queues: 1 })
            }
            Some(("af_packet", rest)) => af_packet(rest),
            Some(("af_xdp", rest)) => af_xdp(rest),
            Some(("memif", rest)) => memif(rest, &policy.sockets),
            Some(("vhost", rest)) => vhost_user(VhostEnd::Vhost, rest, &policy.sockets),
            Some(("virtio_user", rest)) => vhost_user(VhostEnd::VirtioUser, rest, &policy.sockets),
            Some(("tap", rest)) => Ok(Location::Tap(tap_name(rest)?)),
            Some(("ring", rest)) => Ok(Location::Ring(device_name("ring", rest)?)),
            Some(("null", rest)) => null(rest),
            Some(("vdev", rest)) => {
                let allowed = policy.vdevs;
                let arguments = rest.to_owned();
                vdev::check(rest, allowed).map(|()| Location::Vdev { arguments, allowed })
            }
            Some(("pci", rest)) => pci(rest),
            Some((kind, _)) => Err(LocationError::Kind(kind.to_owned())),
        }
    }
}

/// The options after the first comma, one at a time.
struct Options<'text> {
    kind: &'static str,
    known: &'static str,
    rest: std::str::Split<'text, char>,
    option: &'text str,
}

impl<'text> Options<'text> {
    /// Returns the text before the options, and the options.
    fn of(kind: &'static str, known: &'static str, text: &'text str) -> (&'text str, Self) {
        let mut rest = text.split(',');
        let first = rest.next().unwrap_or_default();
        (first, Options { kind, known, rest, option: first })
    }

    /// The next option as name and value.
    fn next(&mut self) -> Option<(&'text str, &'text str)> {
        self.option = self.rest.next()?;
        Some(self.option.split_once('=').unwrap_or((self.option, "")))
    }

    /// The error for the present option.
    fn bad(&self) -> LocationError {
        let option = self.option.to_owned();
        LocationError::Option { kind: self.kind, option, known: self.known }
    }

    /// Sets `place` to the present option's value, unless it was set before.
    fn set<T>(&self, place: &mut Option<T>, value: Option<T>) -> Result<(), LocationError> {
        match (place.is_none(), value) {
            (true, Some(value)) => {
                *place = Some(value);
                Ok(())
            }
            _ => Err(self.bad()),
        }
    }
}

fn role(text: &str) -> Option<Role> {
    match text {
        "server" => Some(Role::Server),
        "client" => Some(Role::Client),
        _ => None,
    }
}

/// A decimal number without a sign.
pub(super) fn number<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn queue_count(text: &str) -> Option<u16> {
    number(text).filter(|count| (1..=MAX_QUEUES).contains(count))
}

pub(super) fn interface_name(name: &str) -> Result<String, LocationError> {
    let bad = name.is_empty()
        || name.len() > MAX_INTERFACE
        || name == "."
        || name == ".."
        || name.contains(|c: char| "/,:".contains(c) || c.is_whitespace() || c.is_control());
    if bad { Err(LocationError::Interface(name.to_owned())) } else { Ok(name.to_owned()) }
}

/// The kernel would replace `%d` by a number, and the port would be elsewhere.
fn tap_name(name: &str) -> Result<String, LocationError> {
    match name.contains('%') {
        true => Err(LocationError::Interface(name.to_owned())),
        false => interface_name(name),
    }
}

fn device_name(kind: &'static str, name: &str) -> Result<String, LocationError> {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match letters && (1..=MAX_RING).contains(&name.len()) {
        true => Ok(name.to_owned()),
        false => Err(LocationError::Name { kind, name: name.to_owned() }),
    }
}

fn socket_path(kind: &'static str, path: &str, sockets: &Sockets) -> Result<String, LocationError> {
    // DPDK parses commas between brackets as part of a value.
    let good = |path: &str| {
        path.starts_with('/')
            && path.len() <= MAX_SOCKET_PATH
            && !path.chars().any(|c| ",[]".contains(c) || c.is_control())
    };
    let bad = || LocationError::Socket { kind, path: path.to_owned() };
    if !good(path) {
        return Err(bad());
    }
    // A directory's name without symbolic links may be longer.
    let found = sockets.resolve(kind, path)?;
    good(&found).then_some(found).ok_or_else(bad)
}

fn af_packet(text: &str) -> Result<Location, LocationError> {
    let (name, mut options) = Options::of("af_packet", "queues=1 to queues=16", text);
    let mut queues = None;
    while let Some((option, value)) = options.next() {
        match option {
            "queues" => options.set(&mut queues, queue_count(value))?,
            _ => return Err(options.bad()),
        }
    }
    let (name, queues) = (interface_name(name)?, queues.unwrap_or(1));
    Ok(Location::Interface { name, driver: Driver::AfPacket, queues })
}

fn af_xdp(text: &str) -> Result<Location, LocationError> {
    const KNOWN: &str = "queues=1 to queues=16, mode=copy and mode=zero-copy";
    let (name, mut options) = Options::of("af_xdp", KNOWN, text);
    let (mut queues, mut copying) = (None, None);
    while let Some((option, value)) = options.next() {
        match (option, value) {
            ("queues", value) => options.set(&mut queues, queue_count(value))?,
            ("mode", "copy") => options.set(&mut copying, Some(Copying::Copy))?,
            ("mode", "zero-copy") => options.set(&mut copying, Some(Copying::ZeroCopy))?,
            _ => return Err(options.bad()),
        }
    }
    let driver = Driver::AfXdp(copying.unwrap_or_default());
    Ok(Location::Interface { name: interface_name(name)?, driver, queues: queues.unwrap_or(1) })
}

fn memif(text: &str, sockets: &Sockets) -> Result<Location, LocationError> {
    let (socket, mut options) = Options::of("memif", "role=server, role=client and id=N", text);
    let socket = socket_path("memif", socket, sockets)?;
    let (mut side, mut id) = (None, None);
    while let Some((option, value)) = options.next() {
        match option {
            "role" => options.set(&mut side, role(value))?,
            "id" => options.set(&mut id, number(value))?,
            _ => return Err(options.bad()),
        }
    }
    Ok(Location::Memif { socket, role: side.unwrap_or(Role::Server), id: id.unwrap_or(0) })
}

fn vhost_user(end: VhostEnd, text: &str, sockets: &Sockets) -> Result<Location, LocationError> {
    const KNOWN: &str = "role=server, role=client and queues=1 to queues=16";
    let (socket, mut options) = Options::of(end.kind(), KNOWN, text);
    let socket = socket_path(end.kind(), socket, sockets)?;
    let (mut side, mut queues) = (None, None);
    while let Some((option, value)) = options.next() {
        match option {
            "role" => options.set(&mut side, role(value))?,
            "queues" => options.set(&mut queues, queue_count(value))?,
            _ => return Err(options.bad()),
        }
    }
    let (role, queues) = (side.unwrap_or(end.usual_role()), queues.unwrap_or(1));
    Ok(Location::VhostUser { end, socket, role, queues })
}

fn null(text: &str) -> Result<Location, LocationError> {
    const KNOWN: &str = "size=1 to size=64, no-rx=0 and no-rx=1";
    let first = text.split(',').next().unwrap_or_default();
    // The name may be left out.
    let named = !first.contains('=');
    let name = if named { first } else { "" };
    if !name.is_empty() {
        device_name("null", name)?;
    }
    let unnamed = format!(",{text}");
    let (_, mut options) = Options::of("null", KNOWN, if named { text } else { &unnamed });
    let (mut size, mut no_rx) = (None, None);
    while let Some((option, value)) = options.next() {
        match (option, value) {
            ("size", value) => {
                let value = number(value).filter(|size| (1..=MAX_NULL_SIZE).contains(size));
                options.set(&mut size, value)?;
            }
            ("no-rx", "0") => options.set(&mut no_rx, Some(false))?,
            ("no-rx", "1") => options.set(&mut no_rx, Some(true))?,
            _ => return Err(options.bad()),
        }
    }
    Ok(Location::Null { name: name.to_owned(), size, no_rx: no_rx.unwrap_or(false) })
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
