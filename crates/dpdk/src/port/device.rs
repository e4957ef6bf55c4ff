// SPDX-License-Identifier: BSD-3-Clause
//! Which devices safe code may attach.
//!
//! A list of what is allowed: DPDK has more than one way to write a device, aliases of drivers, and
//! drivers that build further devices from their arguments.

use crate::is_22;
use crate::mempool::LEAST_DATA;

/// Drivers of virtual devices. DPDK takes the driver whose name the device's begins with.
const DRIVERS: [(&str, Arguments); 10] = [
    // It has `internal`, a pointer, and `nodeaction`, which attaches to rings of other devices.
    ("net_ring", Arguments::None),
    ("net_null", Arguments::Null),
    ("net_memif", Arguments::Memif),
    ("net_af_packet", Arguments::Any),
    // Also at queues that could not be set up.
    (
        "net_af_xdp",
        Arguments::Without(
            "shared_umem",
            "with shared_umem its driver looks at what it has freed of other ports",
        ),
    ),
    ("net_tap", Arguments::Any),
    ("net_pcap", Arguments::Any),
    ("net_vhost", VHOST),
    ("eth_vhost", VHOST),
    // It writes the header before packets also where the bytes there are another packet's or no mbuf's.
    (
        "net_virtio_user",
        Arguments::Without("vectorized", "vectorized sends write into packets that are shared"),
    ),
];

/// Received packets would ask to be worked on when they are sent, at places that the peer names and that the program moves
/// when it changes them.
const VHOST: Arguments = Arguments::Without(
    "legacy-ol-flags",
    "with legacy-ol-flags the peer decides where checksums are written",
);

/// What a driver may be told.
enum Arguments {
    Any,
    /// All but one, and why not that.
    Without(&'static str, &'static str),
    Memif,
    None,
    /// It copies `size` bytes into and out of buffers of whatever length when `copy` is not 0. Otherwise
    /// it only says so many bytes, which this crate does not believe, but the next driver does that they
    /// are sent on to: so no more than every buffer has.
    Null,
}

/// Whether a device may be attached, or why not.
pub(super) fn check(device: &str) -> Result<(), &'static str> {
    // `bus=vdev,name=...`: DPDK looks for such a layer at the beginning and behind any slash.
    let layer = |text: &str| ["bus=", "class=", "driver="].iter().any(|key| text.starts_with(key));
    if device.split('/').any(layer) {
        return Err("write a name and arguments, not bus=, class= or driver=");
    }
    let mut parts = device.split(',');
    let name = parts.next().unwrap_or(device);
    let arguments: Vec<&str> = parts.collect();
    if is_pci_address(name.strip_prefix("pci:").unwrap_or(name)) {
        return match arguments.is_empty() {
            true => Ok(()),
            false => Err("arguments of PCI devices can be given by -a on the command line"),
        };
    }
    let name = name.strip_prefix("vdev:").unwrap_or(name);
    let allowed = DRIVERS.iter().find(|(driver, _)| {
        let rest = name.strip_prefix(driver);
        rest.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    });
    let Some((_, allowed)) = allowed else {
        return Err(
            "it is neither a PCI address nor of a driver that is known to be safe; --vdev on the command line takes any",
        );
    };
    if !arguments.iter().all(|argument| is_pair(argument)) {
        return Err("write each argument as key=value, with one =");
    }
    if arguments.iter().any(|argument| argument.starts_with("internal")) {
        return Err("internal= is a pointer");
    }
    match allowed {
        Arguments::Any => Ok(()),
        Arguments::Without(key, why) if arguments.iter().any(|it| it.starts_with(key)) => Err(why),
        Arguments::Without(..) => Ok(()),
        // The peer would write to packets while they are looked at.
        Arguments::Memif if arguments.iter().any(|it| it.starts_with("zero-copy")) => {
            Err("with zero-copy the peer writes to packets at any time")
        }
        Arguments::Memif => memif_sizes(&arguments),
        Arguments::None if arguments.is_empty() => Ok(()),
        Arguments::None => {
            Err("this driver takes no arguments here: they are pointers or other rings")
        }
        Arguments::Null if arguments.iter().all(|argument| null_argument(argument)) => Ok(()),
        Arguments::Null => Err(
            "net_null takes size=1 to size=64, no-rx=0, no-rx=1 and copy=0 here; larger packets might be larger than their buffers",
        ),
    }
}

/// Whether an argument is a key and a value. DPDK's `rte_kvargs_parse` reads `a=b=c` as `b=c`; and `a` as a key whose value
/// is a null pointer, at which net_pcap looks.
fn is_pair(argument: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    argument.split_once('=').is_some_and(|(key, value)| {
        !key.is_empty() && key.bytes().all(plain) && !value.is_empty() && !value.contains('=')
    })
}

/// Bytes of the buffers of one ring of net_memif at most.
const MEMIF_RING: u64 = 1 << 25;
/// Bytes of a buffer when nothing is said.
const MEMIF_BUFFER: u64 = 2048;

/// Whether net_memif stays inside its memory with these sizes of buffers and rings. It adds them up in 32 bits. Behind 22.11 it believes
/// that its peer's buffers are as long as its own.
fn memif_sizes(arguments: &[&str]) -> Result<(), &'static str> {
    let (mut bytes, mut log2) = (MEMIF_BUFFER, 10);
    for argument in arguments {
        match argument.split_once('=') {
            Some(("bsize", value)) => bytes = decimal(value).ok_or("bsize is a number of bytes")?,
            Some(("rsize", value)) => log2 = decimal(value).ok_or("rsize is a number")?,
            _ => {}
        }
    }
    if log2 > 14 || bytes << log2 > MEMIF_RING {
        return Err(
            "bsize * 2^rsize is 2^25 bytes at most: with more the driver forgets how much memory it has",
        );
    }
    if bytes != MEMIF_BUFFER && !is_22() {
        return Err(
            "this release of DPDK writes behind buffers of net_memif that have another bsize than the peer's: leave it at 2048",
        );
    }
    Ok(())
}

/// A number that C reads likewise.
fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n| text.bytes().all(|b| b.is_ascii_digit()) && *n <= u16::MAX.into())
}

fn null_argument(argument: &str) -> bool {
    match argument.split_once('=') {
        // DPDK reads a leading 0 as octal.
        Some(("size", size)) => {
            size.parse().is_ok_and(|size| (1..=LEAST_DATA).contains(&size))
                && size.bytes().all(|b| b.is_ascii_digit())
                && !size.starts_with('0')
        }
        Some(("copy", copy)) => copy == "0",
        Some(("no-rx", no_rx)) => no_rx == "0" || no_rx == "1",
        _ => false,
    }
}

/// `DOMAIN:BUS:DEVICE.FUNCTION`, or without the domain.
fn is_pci_address(text: &str) -> bool {
    let hex = |text: &str, len| text.len() == len && text.bytes().all(|b| b.is_ascii_hexdigit());
    let Some((place, function)) = text.split_once('.') else { return false };
    let parts: Vec<&str> = place.split(':').collect();
    let place = match parts.as_slice() {
        [bus, device] => hex(bus, 2) && hex(device, 2),
        [domain, bus, device] => hex(domain, 4) && hex(bus, 2) && hex(device, 2),
        _ => false,
    };
    place && hex(function, 1)
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn known_devices_are_allowed() {
        for device in [
            "0000:01:00.0",
            "pci:0000:01:00.0",
            "01:00.1",
            "net_ring0",
            "vdev:net_ring_a1",
            "net_null0,size=64,copy=0,no-rx=1",
            "net_memif0,role=server,id=0,socket=/run/a.sock,socket-abstract=no,mac=02:00:00:00:aa:00",
            "net_memif0,role=client,rsize=14,bsize=2048",
            "net_af_packet7,iface=veth0",
            "net_af_xdp0,iface=lo",
            "net_tap0,iface=internal0",
            "net_pcap0,tx_pcap=/tmp/f:1",
            "net_vhost0,iface=/tmp/s",
            "eth_vhost0,iface=/tmp/s",
            "net_virtio_user0,path=/tmp/bus/s",
        ] {
            assert_eq!(check(device), Ok(()), "{device}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for device in [
            "",
            // Drivers that take over other ports, by their names, their aliases, and behind colons.
            "net_bonding0,slave=0",
            "net_bonding0,slave=0,mac=00:11:22:33:44:55",
            "net_bonding0,x=:net_null0",
            "eth_bond0,slave=0",
            "vdev:eth_bond0,slave=0",
            "vdev:vdev:net_ring0",
            "vdev:pci:01:00.0",
            "vdev_net_bonding0",
            "net_failsafe0,dev(net_ring0,internal=0x10)",
            "net_failsafe:net_null0",
            "net_softnic0",
            "net_vdev_netvsc0",
            // The other syntax.
            "bus=vdev,name=net_bonding0",
            "class=eth/bus=vdev,name=net_ring0",
            "net_memif0,socket=/bus=vdev,name=net_bonding0",
            "net_memif0,socket=/class=eth",
            // Arguments.
            "net_ring0,internal=0x10",
            "net_ring0,mac=a:b,internal=0x10",
            "net_ring0,nodeaction=r:0:ATTACH",
            "net_ring0,",
            "net_memif0, internal=0x10",
            // More than one =: the key is what stands before the last.
            "net_memif0,=internal=0x10",
            "net_memif0,role=client,=zero-copy=yes",
            "net_memif0,role=client,secret=zero-copy=yes",
            "net_memif0,role=client,[zero-copy=yes",
            "net_vhost0,iface=/tmp/s,=legacy-ol-flags=1",
            "net_vhost0,iface=/tmp/s=legacy-ol-flags=1",
            // No key, or no value.
            "net_tap0,",
            "net_tap0,=edge0",
            "net_tap0,iface=",
            "net_pcap0,rx_iface",
            "eth_ring0,internal=0x10",
            "net_null0,copy=1",
            "net_null0,copy=0,copy=1",
            "net_null0,copy=00x1",
            "net_null0,copy",
            "net_null0,size=0x2328,copy=1",
            "net_null0,size=-1",
            "net_null0,size=+1",
            "net_null0,size=0",
            "net_null0,size=077",
            "net_null0,size=65",
            "net_null0,size=64,size=65",
            "net_memif0,role=client,zero-copy=yes",
            "net_memif0,rsize=14,bsize=2049",
            "net_memif0,rsize=15",
            "net_memif0,bsize=32769",
            "net_memif0,bsize=0x800",
            "net_memif0,bsize=2048,rsize=+9",
            "net_memif0, zero-copy=yes",
            "net_vhost0,iface=/tmp/s,legacy-ol-flags=1",
            "eth_vhost0,iface=/tmp/s, legacy-ol-flags=1",
            "net_af_xdp0,iface=va,shared_umem=1",
            "net_af_xdp0, shared_umem=1,iface=va",
            "net_virtio_user0,path=/tmp/s,vectorized=1",
            "net_virtio_user0, vectorized=1,path=/tmp/s",
            "net_null0,size=[64,copy=1]",
            "eth_null0,copy=1,size=9000",
            "0000:01:00.0,cmd_fd=3",
            // Names that are none.
            "net_ring0/x",
            "net_ring:0",
            " net_ring0",
            "net_ring0 ",
            "1:00.0",
            "0000:01:00",
            "0000:01:00.0.0",
            "0:0000:01:00.0",
        ] {
            assert!(check(device).is_err(), "{device}");
        }
    }
}
