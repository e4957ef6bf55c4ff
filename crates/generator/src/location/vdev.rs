// SPDX-License-Identifier: BSD-3-Clause
//! The arguments of `vdev:` locations: which drivers and keys a client of the API may name, and which
//! socket a device would listen on.

use super::policy::Vdevs;
use super::read::LocationError;

/// A driver that a `vdev:` may name. Others take a program to run or a pointer.
struct Driver {
    name: &'static str,
    /// What may be given without [`Vdevs::Known`]: no paths and no programs, of any release of DPDK.
    keys: &'static [&'static str],
    socket: Option<Socket>,
}

/// A driver's argument that is the path of a socket.
struct Socket {
    key: &'static str,
    /// What takes its place.
    location: &'static str,
}

const VHOST: Option<Socket> = Some(Socket { key: "iface", location: "vhost:SOCKET" });

const DRIVERS: [Driver; 9] = [
    Driver { name: "net_null", keys: &["size", "copy", "no-rx"], socket: None },
    Driver { name: "net_ring", keys: &[], socket: None },
    Driver {
        name: "net_memif",
        keys: &[],
        socket: Some(Socket { key: "socket", location: "memif:SOCKET" }),
    },
    Driver { name: "net_tap", keys: &["iface", "mac", "remote"], socket: None },
    Driver {
        name: "net_af_packet",
        keys: &["iface", "qpairs", "blocksz", "framesz", "framecnt", "qdisc_bypass", "fanout_mode"],
        socket: None,
    },
    // Not xdp_prog, a program; not use_cni, use_pinned_map and dp_path, which lead to sockets and maps.
    Driver {
        name: "net_af_xdp",
        keys: &["iface", "start_queue", "queue_count", "busy_budget", "force_copy"],
        socket: None,
    },
    Driver {
        name: "net_virtio_user",
        keys: &[],
        socket: Some(Socket { key: "path", location: "virtio_user:SOCKET" }),
    },
    Driver { name: "net_vhost", keys: &[], socket: VHOST },
    Driver { name: "eth_vhost", keys: &[], socket: VHOST },
];

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
            parts.try_for_each(|argument| check_argument(driver, argument))
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

/// Whether an argument may come from a client of the API.
fn check_argument(driver: &'static Driver, argument: &str) -> Result<(), LocationError> {
    let (key, value) = argument.split_once('=').unwrap_or((argument, ""));
    if !driver.keys.contains(&key) {
        let (driver_name, key) = (driver.name, key.to_owned());
        return Err(match &driver.socket {
            Some(socket) => {
                LocationError::SocketKey { driver: driver_name, key, location: socket.location }
            }
            None => {
                let known = match driver.keys {
                    [] => "none".to_owned(),
                    keys => keys.join(", "),
                };
                LocationError::Key { driver: driver_name, key, known }
            }
        });
    }
    match value.is_empty() || value.contains(['/', '=', '[', ']']) {
        true => Err(LocationError::Value { driver: driver.name, argument: argument.to_owned() }),
        false => Ok(()),
    }
}

/// The path of the socket that a device of these arguments would listen on, where that may be a file:
/// net_vhost and net_virtio_user remove what is there, also when they cannot listen.
pub(super) fn listens_on(arguments: &str) -> Option<&str> {
    // DPDK takes the last of several.
    let value = |wanted: &str| {
        let pairs = arguments.split(',').skip(1).filter_map(|argument| argument.split_once('='));
        pairs.filter(|(key, _)| *key == wanted).last().map(|(_, value)| value)
    };
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
            "net_tap0,iface=t0,mac=02:00:00:00:00:01,remote=eth0",
            "net_af_packet0,iface=eth0,qpairs=2,blocksz=4096,framesz=2048,framecnt=64,qdisc_bypass=0",
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
