// SPDX-License-Identifier: BSD-3-Clause
//! The arguments of `vdev:` locations: which drivers and arguments an API client may name, which
//! devices it may create, and on which socket a device would listen.

use std::fmt;
use std::ops::RangeInclusive;

use super::policy::Vdevs;
use super::probe::{Unavailable, can_run_xdp};
use super::read::{self, LocationError};

/// A driver that a `vdev:` may name. Other drivers run a program or take a pointer.
struct Driver {
    name: &'static str,
    /// All its arguments in DPDK 22.11 to 25.11, each with its type. Others are left to DPDK.
    arguments: &'static [(&'static str, Value, Giver)],
    socket: Option<Socket>,
}

/// Who may give an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Giver {
    /// API clients too: it names no path and no program, and reserves no more memory than
    /// [`Location::Interface`](super::Location::Interface) can with its queues.
    Client,
    /// Only the command line, or clients that it trusts.
    Starter,
}

use Giver::{Client, Starter};

/// The type of an argument's value.
enum Value {
    /// A decimal number. Drivers parse numbers in different ways: an octal or negative one could
    /// become a large one.
    Number(RangeInclusive<u32>),
    /// The name of a network interface.
    Interface,
    /// The name of a network interface that the device creates.
    NewInterface,
    /// `fixed`, or an Ethernet address.
    Mac,
    /// An Ethernet address.
    Address,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The path of a file or a socket, or the name of an abstract socket.
    Path,
    /// At most so many printable characters.
    Text(usize),
}

/// A driver's argument that is the path of a socket.
struct Socket {
    key: &'static str,
    /// The location to use instead.
    location: &'static str,
}

const FLAG: Value = Value::Number(0..=1);
const YES_OR_NO: Value = Value::Word(&["yes", "no"]);
const QUEUES: Value = Value::Number(1..=read::MAX_QUEUES as u32);
const ANY_NUMBER: Value = Value::Number(0..=u32::MAX);
/// Longest path of the kernel's (PATH_MAX), without its NUL.
const MAX_PATH: usize = 4095;

const VHOST: Option<Socket> = Some(Socket { key: "iface", location: "vhost:SOCKET" });
const VHOST_ARGUMENTS: &[(&str, Value, Giver)] = &[
    ("iface", Value::Path, Starter),
    ("queues", QUEUES, Starter),
    ("client", FLAG, Starter),
    ("iommu-support", FLAG, Starter),
    ("postcopy-support", FLAG, Starter),
    ("tso", FLAG, Starter),
    ("linear-buffer", FLAG, Starter),
    ("ext-buffer", FLAG, Starter),
    ("legacy-ol-flags", FLAG, Starter),
];

const DRIVERS: [Driver; 9] = [
    Driver {
        name: "net_null",
        arguments: &[
            ("size", Value::Number(1..=read::MAX_NULL_SIZE as u32), Client),
            ("copy", FLAG, Client),
            ("no-rx", FLAG, Client),
        ],
        socket: None,
    },
    Driver {
        name: "net_ring",
        arguments: &[("nodeaction", Value::Text(64), Starter)],
        socket: None,
    },
    Driver {
        name: "net_memif",
        arguments: &[
            ("role", Value::Word(&["server", "client", "master", "slave"]), Starter),
            ("id", ANY_NUMBER, Starter),
            ("bsize", Value::Number(1..=u16::MAX as u32), Starter),
            ("rsize", Value::Number(1..=14), Starter),
            ("socket", Value::Path, Starter),
            ("socket-abstract", YES_OR_NO, Starter),
            ("owner-uid", ANY_NUMBER, Starter),
            ("owner-gid", ANY_NUMBER, Starter),
            ("mac", Value::Address, Starter),
            ("zero-copy", YES_OR_NO, Starter),
            ("secret", Value::Text(24), Starter),
        ],
        socket: Some(Socket { key: "socket", location: "memif:SOCKET" }),
    },
    // `remote` takes the frames of another interface.
    Driver {
        name: "net_tap",
        arguments: &[
            ("iface", Value::NewInterface, Client),
            ("mac", Value::Mac, Client),
            ("remote", Value::Interface, Starter),
        ],
        socket: None,
    },
    // blocksz, framesz and framecnt are the sizes of its rings: kernel memory, which cannot be
    // swapped. A queue pair has 2 MiB by default, and 512 MiB with the largest values.
    Driver {
        name: "net_af_packet",
        arguments: &[
            ("iface", Value::Interface, Client),
            ("qpairs", QUEUES, Client),
            ("qdisc_bypass", FLAG, Client),
            ("fanout_mode", Value::Word(&["hash", "lb", "cpu", "rollover", "rnd", "qm"]), Client),
            ("blocksz", Value::Number(4096..=1 << 20), Starter),
            ("framesz", Value::Number(128..=1 << 14), Starter),
            ("framecnt", Value::Number(1..=1 << 14), Starter),
        ],
        socket: None,
    },
    // xdp_prog is a program; use_cni, use_pinned_map and dp_path lead to sockets and maps.
    Driver {
        name: "net_af_xdp",
        arguments: &[
            ("iface", Value::Interface, Client),
            ("start_queue", Value::Number(0..=1023), Client),
            ("queue_count", QUEUES, Client),
            // The driver's default.
            ("busy_budget", Value::Number(0..=64), Client),
            ("force_copy", FLAG, Client),
            ("shared_umem", FLAG, Starter),
            ("xdp_prog", Value::Path, Starter),
            ("use_cni", FLAG, Starter),
            ("use_pinned_map", FLAG, Starter),
            ("dp_path", Value::Path, Starter),
            ("uds_path", Value::Path, Starter),
        ],
        socket: None,
    },
    Driver {
        name: "net_virtio_user",
        arguments: &[
            ("path", Value::Path, Starter),
            ("mac", Value::Address, Starter),
            ("iface", Value::NewInterface, Starter),
            ("queues", QUEUES, Starter),
            ("queue_size", Value::Number(2..=1 << 15), Starter),
            ("speed", Value::Number(0..=1_000_000), Starter),
            ("server", FLAG, Starter),
            ("cq", FLAG, Starter),
            ("mrg_rxbuf", FLAG, Starter),
            ("in_order", FLAG, Starter),
            ("packed_vq", FLAG, Starter),
            ("vectorized", FLAG, Starter),
        ],
        socket: Some(Socket { key: "path", location: "virtio_user:SOCKET" }),
    },
    Driver { name: "net_vhost", arguments: VHOST_ARGUMENTS, socket: VHOST },
    Driver { name: "eth_vhost", arguments: VHOST_ARGUMENTS, socket: VHOST },
];

/// The driver that `--allow-any-vdev` adds, and its arguments that are interfaces.
const PCAP: &str = "net_pcap";
const PCAP_INTERFACES: [&str; 4] = ["iface", "rx_iface", "rx_iface_in", "tx_iface"];

impl Value {
    fn takes(&self, text: &str) -> bool {
        match self {
            Value::Number(range) => {
                let octal = text.len() > 1 && text.starts_with('0');
                !octal && read::number(text).is_some_and(|number| range.contains(&number))
            }
            Value::Interface => is_interface(text),
            // The kernel replaces `%d` by a number.
            Value::NewInterface => is_interface(text) && !text.contains('%'),
            Value::Mac => text == "fixed" || is_mac(text),
            Value::Address => is_mac(text),
            Value::Word(words) => words.contains(&text),
            Value::Path => is_text(text, MAX_PATH),
            Value::Text(most) => is_text(text, *most),
        }
    }
}

fn is_interface(text: &str) -> bool {
    read::interface_name(text).is_ok() && !text.contains(['=', '[', ']'])
}

/// With brackets, DPDK would parse past the next comma.
fn is_text(text: &str, most: usize) -> bool {
    let good = |c: char| !c.is_control() && !"[]=".contains(c);
    (1..=most).contains(&text.len()) && text.chars().all(good)
}

fn is_mac(text: &str) -> bool {
    let byte = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split(':').count() == 6 && text.split(':').all(byte)
}

/// Completes a message that ends with "has to be".
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(range) => {
                write!(f, "a decimal number from {} to {}", range.start(), range.end())
            }
            Value::Interface | Value::NewInterface => f.write_str("the name of an interface"),
            Value::Mac => f.write_str("`fixed` or an address such as 02:00:00:00:00:01"),
            Value::Address => f.write_str("an address such as 02:00:00:00:00:01"),
            Value::Word(words) => write!(f, "one of {}", words.join(", ")),
            Value::Path => f.write_str("a path"),
            Value::Text(most) => write!(f, "1 to {most} characters without brackets or ="),
        }
    }
}

/// The names of [`DRIVERS`], as a message lists them.
pub(super) fn driver_names() -> String {
    DRIVERS.map(|driver| driver.name).join(", ")
}

/// DPDK takes the driver whose name is a prefix of the device's, also after `vdev:`.
fn driver_of(arguments: &str) -> Option<&'static Driver> {
    let name = arguments.strip_prefix("vdev:").unwrap_or(arguments);
    DRIVERS.iter().find(|driver| name.starts_with(driver.name))
}

/// Whether the device is one of memif's.
pub(super) fn is_memif(arguments: &str) -> bool {
    driver_of(arguments).is_some_and(|driver| driver.name == "net_memif")
}

/// Whether the device is one of net_af_xdp's.
pub(super) fn is_af_xdp(arguments: &str) -> bool {
    driver_of(arguments).is_some_and(|driver| driver.name == "net_af_xdp")
}

/// Checks whether a `vdev:` may have these arguments.
pub(super) fn check(arguments: &str, vdevs: Vdevs) -> Result<(), LocationError> {
    if arguments.is_empty() || arguments.chars().any(char::is_control) {
        return Err(LocationError::Vdev(arguments.to_owned()));
    }
    // A driver may pass on arguments in brackets to another.
    let mut keys = arguments.split(',').map(|part| part.split('=').next().unwrap_or(part).trim());
    if arguments.contains("internal=") || keys.any(|key| key == "internal") {
        return Err(LocationError::Internal(arguments.to_owned()));
    }
    let mut parts = arguments.split(',');
    let name = parts.next().unwrap_or(arguments);
    let known = driver_of(name).filter(|driver| {
        let rest = name.strip_prefix(driver.name);
        rest.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    });
    let driver = match (known, vdevs) {
        (Some(driver), _) => driver,
        (None, Vdevs::Pathless | Vdevs::Known) => {
            return Err(LocationError::Driver(name.to_owned()));
        }
        (None, Vdevs::Any) => match driver_of(name) {
            Some(driver) => driver,
            None => return Ok(()),
        },
    };
    // DPDK parses commas between brackets as part of a value: here, of a socket that this check
    // would not see.
    if vdevs != Vdevs::Pathless && arguments.contains('[') && driver.socket.is_some() {
        return Err(LocationError::Vdev(arguments.to_owned()));
    }
    let giver = if vdevs == Vdevs::Pathless { Client } else { Starter };
    let mut given = Vec::new();
    parts.try_for_each(|argument| check_argument(driver, argument, giver, &mut given))
}

/// Checks whether an argument may come from this source; `given` are the keys of those before it.
fn check_argument<'text>(
    driver: &'static Driver,
    argument: &'text str,
    giver: Giver,
    given: &mut Vec<&'text str>,
) -> Result<(), LocationError> {
    let (key, value) = argument.split_once('=').unwrap_or((argument, ""));
    let own = |(known, ..): &&(&str, Value, Giver)| *known == key;
    let (key, wanted) = match driver.arguments.iter().find(own) {
        Some((key, wanted, least)) if giver == Starter || *least == Client => (key, wanted),
        // An argument of a release that is unknown here.
        None if giver == Starter => return Ok(()),
        _ => return Err(not_for_clients(driver, key)),
    };
    // If a key is repeated, DPDK takes the last value, or each in turn.
    let wanted = match (given.contains(key), wanted.takes(value)) {
        (false, true) => {
            given.push(key);
            return Ok(());
        }
        (true, _) => "given once".to_owned(),
        (false, false) => wanted.to_string(),
    };
    Err(LocationError::Value { driver: driver.name, argument: argument.to_owned(), key, wanted })
}

fn not_for_clients(driver: &'static Driver, key: &str) -> LocationError {
    let (name, key) = (driver.name, key.to_owned());
    match &driver.socket {
        Some(socket) => LocationError::SocketKey { driver: name, key, location: socket.location },
        None => {
            let all = driver.arguments.iter().filter(|(.., least)| *least == Client);
            let keys: Vec<&str> = all.map(|(key, ..)| *key).collect();
            let known = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
            LocationError::Key { driver: name, key, known }
        }
    }
}

/// The network interfaces that a device with these arguments would use or create.
pub(super) fn interfaces(arguments: &str) -> Vec<&str> {
    let name = arguments.strip_prefix("vdev:").unwrap_or(arguments);
    let is_interface = |key: &str| match driver_of(arguments) {
        Some(driver) => driver.arguments.iter().any(|(known, value, _)| {
            *known == key && matches!(value, Value::Interface | Value::NewInterface)
        }),
        None => name.starts_with(PCAP) && PCAP_INTERFACES.contains(&key),
    };
    let pairs = arguments.split(',').skip(1).filter_map(|argument| argument.split_once('='));
    pairs.filter(|(key, _)| is_interface(key)).map(|(_, value)| value).collect()
}

/// Checks whether an API client may create the device, which does not exist yet. Devices with
/// sockets must be created by EAL options: without arguments, net_memif connects to an abstract
/// socket, on which any user may listen.
///
/// # Errors
/// What to name instead.
pub(super) fn can_make(arguments: &str) -> Result<(), Unavailable> {
    match driver_of(arguments) {
        Some(Driver { socket: Some(socket), .. }) => {
            let name = arguments.split(',').next().unwrap_or(arguments);
            Err(Unavailable::NoDevice { name: name.to_owned(), location: socket.location })
        }
        // By default it uses names that other interfaces may have, and it takes over an existing
        // tap interface.
        Some(Driver { name: "net_tap", .. }) => match value_of(arguments, "iface") {
            None => Err(Unavailable::NoTapName(arguments.to_owned())),
            Some(interface) if host::has_interface(interface) => {
                Err(Unavailable::InterfaceTaken(interface.to_owned()))
            }
            Some(_) => Ok(()),
        },
        Some(Driver { name: "net_af_xdp", .. }) => {
            value_of(arguments, "iface").map_or(Ok(()), can_run_xdp)
        }
        _ => Ok(()),
    }
}

/// The value of an argument. If it is repeated, DPDK takes the last one.
fn value_of<'text>(arguments: &'text str, wanted: &str) -> Option<&'text str> {
    let pairs = arguments.split(',').skip(1).filter_map(|argument| argument.split_once('='));
    pairs.filter(|(key, _)| *key == wanted).last().map(|(_, value)| value)
}

/// The path of the socket on which a device with these arguments would listen, if that may be a
/// file: net_vhost and net_virtio_user remove what is there, even if they cannot listen.
pub(super) fn listens_on(arguments: &str) -> Option<&str> {
    let value = |wanted: &str| value_of(arguments, wanted);
    let driver = driver_of(arguments)?;
    let path = value(driver.socket.as_ref()?.key);
    match driver.name {
        "net_memif" => {
            let is_file = value("socket-abstract").is_some_and(|text| !text.contains("yes"));
            let serves = value("role").is_some_and(|role| role != "client");
            (is_file && serves).then(|| path.unwrap_or("/run/memif.sock"))
        }
        "net_virtio_user" => path.filter(|_| value("server").is_some_and(|server| server != "0")),
        _ => path.filter(|_| value("client") != Some("1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_names_no_path_and_no_program() {
        for good in [
            "net_null",
            "net_null0,size=64,copy=0,no-rx=1",
            "net_ring_a1",
            "net_tap0,iface=t0,mac=fixed",
            "net_tap0,iface=t0,mac=02:00:00:00:00:01",
            "net_af_packet0,iface=eth0,qpairs=16,qdisc_bypass=0,fanout_mode=lb",
            "net_af_xdp0,iface=eth0,start_queue=1,queue_count=2,busy_budget=0,force_copy=1",
            // Devices of EAL's own options.
            "net_memif0",
            "net_vhost0",
            "net_virtio_user0",
        ] {
            assert_eq!(check(good, Vdevs::Pathless), Ok(()), "{good}");
        }
        for (bad, key) in [
            ("net_vhost0,iface=/root-only/file", "iface"),
            ("net_vhost0,client=1,iface=/s", "client"),
            ("eth_vhost0,iface=/s", "iface"),
            ("net_virtio_user0,path=/dev/vhost-net,iface=t", "path"),
            ("net_memif0,role=server,socket=/s,socket-abstract=no", "role"),
            ("net_memif0,socket=name", "socket"),
            ("net_memif0,socket-abstract=no", "socket-abstract"),
            ("net_af_xdp1,iface=va,xdp_prog=/path/nobody.o", "xdp_prog"),
            ("net_af_xdp1,iface=va,use_cni=1", "use_cni"),
            ("net_af_xdp1,iface=va,use_pinned_map=1", "use_pinned_map"),
            ("net_af_xdp1,iface=va,dp_path=/s", "dp_path"),
            ("net_af_xdp1,iface=va,uds_path=/s", "uds_path"),
            ("net_af_xdp1, xdp_prog=/s", " xdp_prog"),
            ("net_tap0,persist=1", "persist"),
            ("net_tap0,iface", "iface"),
            ("net_tap0,iface=", "iface="),
            ("net_tap0,iface=/s", "iface=/s"),
            ("net_tap0,iface=a=/s", "iface=a"),
            ("net_tap0,iface=t%d", "iface=t%d"),
            ("net_tap0,iface=sixteen-letters-x", "iface"),
            ("net_tap0,iface=new,iface=eth0", "iface=eth0"),
            ("net_tap0,iface=new,remote=eth0", "remote"),
            ("net_tap0,iface=new,mac=xx", "mac=xx"),
            ("net_af_packet0,iface=eth0,fanout_mode=ebpf", "fanout_mode=ebpf"),
            ("net_tap0,iface=[a,xdp_prog=b]", "iface=[a"),
            ("net_ring0,nodeaction=a", "nodeaction"),
            ("net_null0,", ""),
        ] {
            let error = check(bad, Vdevs::Pathless).unwrap_err().to_string();
            assert!(error.contains(key), "{bad}: {error}");
            // The command line allows other keys too, but no value of the wrong type.
            match check(bad, Vdevs::Known) {
                Ok(()) => assert!(error.contains("--allow-any-vdev"), "{bad}: {error}"),
                Err(other) => assert!(matches!(other, LocationError::Value { .. }), "{other:?}"),
            }
        }
        let error = check("net_vhost0,iface=/f", Vdevs::Pathless).unwrap_err().to_string();
        assert!(error.contains("vhost:SOCKET"), "{error}");
    }

    /// One call with large rings took all of the machine's memory.
    #[test]
    fn a_client_reserves_little_memory() {
        for key in ["blocksz", "framesz", "framecnt"] {
            let error = check(&format!("net_af_packet0,iface=eth0,{key}=1"), Vdevs::Pathless);
            assert!(matches!(error, Err(LocationError::Key { .. })), "{key}");
        }
        for (device, most) in [
            ("net_af_packet0,iface=eth0,qpairs", 16),
            ("net_af_xdp0,iface=eth0,queue_count", 16),
            ("net_af_xdp0,iface=eth0,start_queue", 1023),
            ("net_af_xdp0,iface=eth0,busy_budget", 64),
            ("net_null0,size", 64),
        ] {
            assert_eq!(check(&format!("{device}={most}"), Vdevs::Pathless), Ok(()), "{device}");
            let more = (most + 1).to_string();
            for bad in [&more, "65537", "4294967297", "-1", "+1", "0x1", "010", "1 ", "1k", ""] {
                let error = check(&format!("{device}={bad}"), Vdevs::Pathless).unwrap_err();
                assert!(matches!(error, LocationError::Value { .. }), "{device}={bad}: {error:?}");
                assert!(error.to_string().ends_with(&format!("to {most}")), "{error}");
                // Refused from every source: with 1000 queues a device stopped the API for 20 s.
                for vdevs in [Vdevs::Known, Vdevs::Any] {
                    assert_eq!(check(&format!("{device}={bad}"), vdevs), Err(error.clone()));
                }
            }
        }
    }

    #[test]
    fn every_argument_of_the_starters_has_a_type() {
        for good in [
            "net_memif0,role=server,socket=/s,socket-abstract=no,id=7,bsize=9216,rsize=10",
            "net_memif0,role=client,socket=name,socket-abstract=yes,secret=s,mac=02:00:00:00:00:01",
            "net_vhost0,iface=relative,queues=2,client=1,tso=0",
            "net_virtio_user0,path=/s,queues=1,server=0,queue_size=1024,mac=02:00:00:00:00:01",
            "net_af_packet0,iface=eth0,blocksz=4096,framesz=2048,framecnt=512",
            "net_af_xdp0,iface=eth0,xdp_prog=/p.o",
            "net_tap0,iface=t0,remote=eth0",
            // Of a later release: DPDK says whether it is right.
            "net_null0,later=1",
        ] {
            for vdevs in [Vdevs::Known, Vdevs::Any] {
                assert_eq!(check(good, vdevs), Ok(()), "{good}");
            }
        }
        for bad in [
            "net_memif0,role=both",
            "net_memif0,bsize=65536",
            "net_memif0,rsize=15",
            "net_memif0,socket-abstract=maybe",
            "net_memif0,id=-1",
            "net_memif0,mac=fixed",
            "net_vhost0,iface=",
            "net_vhost0,iface=/s,queues=1000",
            "net_vhost0,iface=/s,iface=/t",
            "net_virtio_user0,path=/s,queue_size=65536",
            "net_af_packet0,iface=eth0,framecnt=100000",
            "net_af_packet0,iface=eth0,qpairs=1000",
            "net_af_xdp0,iface=/s",
            "net_tap0,remote=[a",
        ] {
            for vdevs in [Vdevs::Known, Vdevs::Any] {
                let error = check(bad, vdevs).unwrap_err();
                assert!(matches!(error, LocationError::Value { .. }), "{bad}: {error:?}");
            }
        }
    }

    #[test]
    fn interfaces_of_devices_are_known() {
        for (arguments, interfaces) in [
            ("net_null0,size=64", &[][..]),
            ("net_af_packet0,iface=a,qpairs=1", &["a"]),
            ("vdev:net_af_xdp0,iface=a", &["a"]),
            ("net_tap0,iface=t,remote=a", &["t", "a"]),
            ("net_virtio_user0,path=/dev/vhost-net,iface=t", &["t"]),
            // Of vhost it is a path.
            ("net_vhost0,iface=/s", &[]),
            ("net_pcap0,rx_pcap=f,rx_iface=a,tx_iface=b", &["a", "b"]),
        ] {
            assert_eq!(super::interfaces(arguments), interfaces, "{arguments}");
        }
    }

    #[test]
    fn a_client_has_no_device_with_a_socket_made() {
        for (device, location) in [
            ("net_memif0", "memif:SOCKET"),
            ("net_vhost7", "vhost:SOCKET"),
            ("eth_vhost0", "vhost:SOCKET"),
            ("net_virtio_user0", "virtio_user:SOCKET"),
        ] {
            let error = can_make(device).unwrap_err().to_string();
            assert!(error.contains(device) && error.contains(location), "{error}");
        }
        assert_eq!(can_make("net_ring0"), Ok(()));
    }

    #[test]
    fn a_client_takes_no_interface_by_a_tap() {
        let taken = Unavailable::InterfaceTaken("lo".to_owned());
        assert_eq!(can_make("net_tap0,iface=lo"), Err(taken.clone()));
        assert_eq!(can_make("net_tap0,mac=fixed,iface=lo"), Err(taken));
        assert!(matches!(can_make("net_tap0"), Err(Unavailable::NoTapName(_))));
        assert_eq!(can_make("net_tap0,iface=no-such-if"), Ok(()));
    }

    #[test]
    fn devices_of_af_xdp_are_known() {
        for (arguments, is) in [
            ("net_af_xdp0,iface=lo", true),
            ("vdev:net_af_xdp_a", true),
            ("net_af_packet0,iface=lo", false),
            ("net_null0", false),
        ] {
            assert_eq!(is_af_xdp(arguments), is, "{arguments}");
        }
    }

    /// Loopback's driver runs no XDP programs; kernels before 6.3 do not say.
    #[test]
    fn af_xdp_is_left_out_where_no_xdp_program_runs() {
        let can = can_make("net_af_xdp0,start_queue=3,iface=lo");
        match host::interface("lo").unwrap().unwrap().has_native_xdp().unwrap() {
            None => println!("skipped: the kernel does not say which drivers run XDP programs"),
            Some(_) => assert_eq!(can, Err(Unavailable::NoXdp("lo".to_owned()))),
        }
        assert_eq!(can_make("net_af_xdp0"), Ok(()));
    }

    #[test]
    fn sockets_of_devices_that_listen_are_known() {
        for (arguments, path) in [
            ("net_vhost0,iface=/f", Some("/f")),
            ("net_vhost0,iface=relative", Some("relative")),
            ("vdev:net_vhost0,iface=/f,client=0", Some("/f")),
            ("eth_vhost0,iface=/f,client=0x1", Some("/f")),
            ("net_vhost0,iface=/f,client=1", None),
            ("net_vhost0", None),
            ("net_virtio_user0,path=/f", None),
            ("net_virtio_user0,path=/f,server=0", None),
            ("net_virtio_user0,path=/f,server=1", Some("/f")),
            ("net_memif0,role=server,socket=/f", None),
            ("net_memif0,role=server,socket=/f,socket-abstract=yes", None),
            ("net_memif0,role=server,socket=/f,socket-abstract=no", Some("/f")),
            ("net_memif0,role=server,socket-abstract=no", Some("/run/memif.sock")),
            ("net_memif0,role=client,socket=/f,socket-abstract=no", None),
            ("net_memif0,socket=/f,socket-abstract=no", None),
            ("net_tap0,iface=f", None),
            ("net_pcap0,tx_pcap=/f", None),
        ] {
            assert_eq!(listens_on(arguments), path, "{arguments}");
        }
        for brackets in ["net_vhost0,iface=[/a,b]", "vdev:net_vhost0,iface=a[,b]"] {
            let refused = Err(LocationError::Vdev(brackets.to_owned()));
            assert_eq!(check(brackets, Vdevs::Any), refused);
        }
    }
}
