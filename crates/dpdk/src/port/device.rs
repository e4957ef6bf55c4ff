// SPDX-License-Identifier: BSD-3-Clause
//! The devices that safe code may attach.
//!
//! This is a list of allowed devices, not of forbidden ones: DPDK has more than one way to write a
//! device, aliases of drivers, and drivers that make further devices from their arguments.
//! [`driver`](super::driver) has the allowed arguments of each driver.

use super::driver::Driver;

/// Checks if a device may be attached; the error says why not.
pub(super) fn check(device: &str) -> Result<(), &'static str> {
    // `bus=vdev,name=...`: DPDK looks for such a layer at the start and after every slash.
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
    let Some(driver) = Driver::of_device(name) else {
        return Err(
            "it is neither a PCI address nor a device of a driver that is known to be safe; EAL's --vdev accepts any device",
        );
    };
    if !arguments.iter().all(|argument| is_pair(argument)) {
        return Err("write each argument as key=value, with one =");
    }
    if arguments.iter().any(|argument| argument.starts_with("internal")) {
        return Err("internal= is a pointer");
    }
    (driver.check_arguments)(&arguments)
}

/// Returns true if an argument is a key and a value. DPDK's `rte_kvargs_parse` reads `a=b=c` as
/// `b=c`; and `a` as a key with a null pointer as its value, which net_pcap dereferences.
fn is_pair(argument: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    argument.split_once('=').is_some_and(|(key, value)| {
        !key.is_empty() && key.bytes().all(plain) && !value.is_empty() && !value.contains('=')
    })
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
            // More than one =: the key is the text before the last.
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
            // Invalid names.
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
