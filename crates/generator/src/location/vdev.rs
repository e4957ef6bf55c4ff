// SPDX-License-Identifier: BSD-3-Clause
//! The arguments of `vdev:` locations: which drivers and arguments a client of the API may name, which
//! device it may have made, and which socket a device would listen on.

use std::fmt;
use std::ops::RangeInclusive;

use super::policy::Vdevs;
use super::probe::{Unavailable, can_run_xdp};
use super::read::{self, LocationError};

/// A driver that a `vdev:` may name. Others take a program to run or a pointer.
struct Driver {
    name: &'static str,
    /// What a client of the API may give: no paths and no programs, of any release of DPDK, and nothing that
    /// reserves more memory than [`Location::Interface`](super::Location::Interface) may with its queues.
    arguments: &'static [(&'static str, Value)],
    socket: Option<Socket>,
}

/// What the value of an argument has to be when a client of the API gives it.
enum Value {
    /// A decimal number. Drivers read numbers in several ways: an octal or negative one could be large to them.
    Number(RangeInclusive<u16>),
    /// The name of a network interface.
    Interface,
    /// The name of a network interface that the device makes.
    NewInterface,
    /// `fixed`, or an Ethernet address.
    Mac,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A driver's argument that is the path of a socket.
struct Socket {
    key: &'static str,
    /// What takes its place.
    location: &'static str,
}

const VHOST: Option<Socket> = Some(Socket { key: "iface", location: "vhost:SOCKET" });

const FLAG: Value = Value::Number(0..=1);
const QUEUES: Value = Value::Number(1..=read::MAX_QUEUES);

const DRIVERS: [Driver; 9] = [
    Driver {
        name: "net_null",
        arguments: &[
            ("size", Value::Number(1..=read::MAX_NULL_SIZE)),
            ("copy", FLAG),
            ("no-rx", FLAG),
        ],
        socket: None,
    },
    Driver { name: "net_ring", arguments: &[], socket: None },
    Driver {
        name: "net_memif",
        arguments: &[],
        socket: Some(Socket { key: "socket", location: "memif:SOCKET" }),
    },
    // Not remote, which takes the frames of another interface.
    Driver {
        name: "net_tap",
        arguments: &[("iface", Value::NewInterface), ("mac", Value::Mac)],
        socket: None,
    },
    // Not blocksz, framesz and framecnt, the sizes of its rings: the kernel's memory, which cannot be
    // swapped. A pair of queues has 2 MiB without them.
    Driver {
        name: "net_af_packet",
        arguments: &[
            ("iface", Value::Interface),
            ("qpairs", QUEUES),
            ("qdisc_bypass", FLAG),
            ("fanout_mode", Value::Word(&["hash", "lb", "cpu", "rollover", "rnd", "qm"])),
        ],
        socket: None,
    },
    // Not xdp_prog, a program; not use_cni, use_pinned_map and dp_path, which lead to sockets and maps.
    Driver {
        name: "net_af_xdp",
        arguments: &[
            ("iface", Value::Interface),
            ("start_queue", Value::Number(0..=1023)),
            ("queue_count", QUEUES),
            // As many as the driver takes by itself.
            ("busy_budget", Value::Number(0..=64)),
            ("force_copy", FLAG),
        ],
        socket: None,
    },
    Driver {
        name: "net_virtio_user",
        arguments: &[],
        socket: Some(Socket { key: "path", location: "virtio_user:SOCKET" }),
    },
    Driver { name: "net_vhost", arguments: &[], socket: VHOST },
    Driver { name: "eth_vhost", arguments: &[], socket: VHOST },
];

impl Value {
    fn takes(&self, text: &str) -> bool {
        match self {
            Value::Number(range) => {
                let octal = text.len() > 1 && text.starts_with('0');
                !octal && read::number(text).is_some_and(|number| range.contains(&number))
            }
            Value::Interface => is_interface(text),
            // The kernel puts a number in place of `%d`.
            Value::NewInterface => is_interface(text) && !text.contains('%'),
            Value::Mac => text == "fixed" || is_mac(text),
            Value::Word(words) => words.contains(&text),
        }
    }
}

fn is_interface(text: &str) -> bool {
    read::interface_name(text).is_ok() && !text.contains(['=', '[', ']'])
}

fn is_mac(text: &str) -> bool {
    let byte = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split(':').count() == 6 && text.split(':').all(byte)
}

/// As a message goes on behind "has to be".
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(range) => {
                write!(f, "a decimal number from {} to {}", range.start(), range.end())
            }
            Value::Interface | Value::NewInterface => f.write_str("the name of an interface"),
            Value::Mac => f.write_str("`fixed` or an address such as 02:00:00:00:00:01"),
            Value::Word(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

/// The names of [`DRIVERS`], as a message lists them.
pub(super) fn driver_names() -> String {
    DRIVERS.map(|driver| driver.name).join(", ")
}

/// DPDK takes the driver whose name the device's begins with, also behind `vdev:`.
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

/// Whether a `vdev:` may have these arguments.
pub(super) fn check(arguments: &str, vdevs: Vdevs) -> Result<(), LocationError> {
    if arguments.is_empty() || arguments.chars().any(char::is_control) {
        return Err(LocationError::Vdev(arguments.to_owned()));
    }
    // A driver may hand arguments on to another, in brackets.
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
    match (known, vdevs) {
        (None, Vdevs::Pathless | Vdevs::Known) => Err(LocationError::Driver(name.to_owned())),
        (Some(driver), Vdevs::Pathless) => {
            let mut given = Vec::new();
            parts.try_for_each(|argument| check_argument(driver, argument, &mut given))
        }
        // DPDK reads commas between brackets as part of a value: of a socket that nobody here would see.
        (_, Vdevs::Known | Vdevs::Any)
            if arguments.contains('[')
                && driver_of(name).is_some_and(|driver| driver.socket.is_some()) =>
        {
            Err(LocationError::Vdev(arguments.to_owned()))
        }
        (_, Vdevs::Known | Vdevs::Any) => Ok(()),
    }
}

/// Whether an argument may come from a client of the API; `given` are the keys of those before it.
fn check_argument<'text>(
    driver: &'static Driver,
    argument: &'text str,
    given: &mut Vec<&'text str>,
) -> Result<(), LocationError> {
    let (key, value) = argument.split_once('=').unwrap_or((argument, ""));
    let Some((key, wanted)) = driver.arguments.iter().find(|(known, _)| *known == key) else {
        let (driver_name, key) = (driver.name, key.to_owned());
        return Err(match &driver.socket {
            Some(socket) => {
                LocationError::SocketKey { driver: driver_name, key, location: socket.location }
            }
            None => {
                let keys: Vec<&str> = driver.arguments.iter().map(|(key, _)| *key).collect();
                let known = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
                LocationError::Key { driver: driver_name, key, known }
            }
        });
    };
    // DPDK takes the last of several, or each in turn.
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

/// Whether a client of the API may have the device made, which is not there yet. Those with sockets are
/// left to EAL options of the starter's: without arguments, net_memif connects to an abstract socket,
/// where any user may listen.
///
/// # Errors
/// What to name instead.
pub(super) fn can_make(arguments: &str) -> Result<(), Unavailable> {
    match driver_of(arguments) {
        Some(Driver { socket: Some(socket), .. }) => {
            let name = arguments.split(',').next().unwrap_or(arguments);
            Err(Unavailable::NoDevice { name: name.to_owned(), location: socket.location })
        }
        // It takes a tap interface that is there already for its own, and other interfaces' names by default.
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

/// The value of an argument. DPDK takes the last of several.
fn value_of<'text>(arguments: &'text str, wanted: &str) -> Option<&'text str> {
    let pairs = arguments.split(',').skip(1).filter_map(|argument| argument.split_once('='));
    pairs.filter(|(key, _)| *key == wanted).last().map(|(_, value)| value)
}

/// The path of the socket that a device of these arguments would listen on, where that may be a file:
/// net_vhost and net_virtio_user remove what is there, also when they cannot listen.
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
            assert!(error.contains("--allow-any-vdev"), "{bad}: {error}");
            assert!(error.contains(key), "{bad}: {error}");
            // Of whoever starts the program, DPDK's drivers judge the rest.
            assert_eq!(check(bad, Vdevs::Known), Ok(()), "{bad}");
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
                assert!(error.to_string().contains(&format!("to {most};")), "{error}");
            }
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
