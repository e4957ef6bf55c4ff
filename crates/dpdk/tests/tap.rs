// SPDX-License-Identifier: BSD-3-Clause
//! What is asked of a device is done: net_tap fills checksums in and cuts TCP segments, and the kernel, which drops
//! what is wrong, receives them. In a network namespace of the test's own, which needs root; otherwise it is skipped.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::io::{self, Write as _};
use std::mem::ManuallyDrop;
use std::net::UdpSocket;
use std::num::NonZeroU16;
use std::process::Command;
use std::time::{Duration, Instant};

use dpdk::{
    ExternalBuffer, ForeignMemory, IpOffload, L4Offload, Mbuf, Mempool, PoolConfig, TxOffload,
};
use rustix::net::{AddressFamily, RecvFlags, SocketType, ipproto, recv, socket};

const INSIDE: &str = "LINERATE_TEST_NETWORK";
const INTERFACE: &str = "lrtap0";
/// `RTE_ETH_TX_OFFLOAD_` of `IPV4_CKSUM`, `UDP_CKSUM`, `TCP_CKSUM`, `TCP_TSO` and `MULTI_SEGS`.
const OFFLOADS: u64 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 15;
const PORT: u16 = 4789;
const ETHERNET: usize = 14;

#[test]
fn a_device_does_what_it_is_asked_for() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let unshared = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--"]);
        command
    };
    let probe = unshared().args(["ip", "tuntap", "add", INTERFACE, "mode", "tap"]).output();
    if !probe.as_ref().is_ok_and(|output| output.status.success()) {
        // Past libtest's capture, where scripts/run-tests counts it.
        writeln!(io::stderr(), "skipped: no tap interface in a network namespace: {probe:?}")
            .unwrap();
        return;
    }
    let status = unshared()
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_device_does_what_it_is_asked_for", "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(status.unwrap().success());
}

fn inside() {
    let eal = support::eal(&[&format!("net_tap0,iface={INTERFACE}")]);
    let config = PoolConfig { count: 255, cache: 16, ..PoolConfig::named("tap") };
    let pool = Mempool::packet_pool(&eal, &config).unwrap();
    let port = eal.ports()[0].index();
    let mac = start(port);
    ip(&["link", "set", INTERFACE, "up"]);
    ip(&["addr", "add", "192.0.2.1/24", "dev", INTERFACE]);
    ip(&["addr", "add", "2001:db8::1/64", "dev", INTERFACE, "nodad"]);
    // The kernel takes an address of IPv6 for its own a little later than it says so.
    let routes = ["-6", "route", "show", "table", "local"];
    let end = Instant::now() + Duration::from_secs(20);
    while !ip(&routes).contains("2001:db8::1 ") {
        assert!(Instant::now() < end, "the kernel has not got its address");
    }
    let foreign = ForeignMemory::check(&eal).unwrap();
    udp(port, &pool, foreign, mac, false);
    udp(port, &pool, foreign, mac, true);
    segments(port, &pool, mac);
    // SAFETY: the test's own port, which nothing uses any longer.
    unsafe {
        assert_eq!(dpdk_sys::rte_eth_dev_stop(port), 0);
        assert_eq!(dpdk_sys::rte_eth_dev_close(port), 0);
    }
    assert!(pool.is_full());
}

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Starts the port with what it can do for others, and says its address.
fn start(port: u16) -> [u8; 6] {
    let name = c"tap";
    // SAFETY: configures the test's own port as DPDK's documentation says; structs of numbers may be zero.
    unsafe {
        let mut conf: dpdk_sys::rte_eth_conf = std::mem::zeroed();
        conf.txmode.offloads = OFFLOADS;
        assert_eq!(dpdk_sys::rte_eth_dev_configure(port, 1, 1, &raw const conf), 0);
        let pool = dpdk_sys::rte_mempool_lookup(name.as_ptr());
        let rx = dpdk_sys::rte_eth_rx_queue_setup(port, 0, 64, 0, std::ptr::null(), pool);
        assert_eq!(rx, 0);
        assert_eq!(dpdk_sys::rte_eth_tx_queue_setup(port, 0, 64, 0, std::ptr::null()), 0);
        assert_eq!(dpdk_sys::rte_eth_dev_start(port), 0);
        let mut address: dpdk_sys::rte_ether_addr = std::mem::zeroed();
        assert_eq!(dpdk_sys::rte_eth_macaddr_get(port, &raw mut address), 0);
        address.addr_bytes
    }
}

/// Sends one packet, in C, for the safe API has not configured the port.
fn send(port: u16, mbuf: Mbuf<'_>) {
    let mbuf = ManuallyDrop::new(mbuf);
    // SAFETY: an mbuf is a pointer to one; the driver owns it where it takes it.
    let sent = unsafe {
        let mut raw = std::mem::transmute_copy::<_, *mut dpdk_sys::rte_mbuf>(&*mbuf);
        dpdk_sys::lr_eth_tx_burst(port, 0, &raw mut raw, 1)
    };
    assert_eq!(sent, 1, "the driver has refused it");
}

/// An Ethernet and an IP header, with nothing where IPv4's checksum belongs.
fn headers(mac: [u8; 6], v6: bool, protocol: u8, payload: usize) -> Vec<u8> {
    let mut bytes = mac.to_vec();
    bytes.extend([2, 0, 0, 0, 0, 9]);
    if v6 {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend((payload as u16).to_be_bytes());
        bytes.extend([protocol, 64]);
        for host in [2, 1] {
            bytes.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
    } else {
        bytes.extend([0x08, 0x00, 0x45, 0]);
        bytes.extend((payload as u16 + 20).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1]);
    }
    bytes
}

fn filled<'m>(pool: &Mempool<'m>, bytes: &[u8]) -> Mbuf<'m> {
    let mut mbuf = pool.alloc().unwrap();
    mbuf.append(bytes.len()).unwrap().copy_from_slice(bytes);
    mbuf
}

/// The kernel gives a socket only what has right checksums.
fn udp<'m>(port: u16, pool: &Mempool<'m>, foreign: ForeignMemory<'m>, mac: [u8; 6], v6: bool) {
    let address = if v6 { "2001:db8::1" } else { "192.0.2.1" };
    let socket = UdpSocket::bind((address, PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let payload: Vec<u8> = (0..501).map(|index| index as u8).collect();
    let page = ExternalBuffer::foreign(foreign, payload.clone());
    let request = TxOffload {
        l2_len: ETHERNET as u8,
        ip: if v6 {
            IpOffload::Ipv6 { len: 40 }
        } else {
            IpOffload::Ipv4 { len: 20, checksum: true }
        },
        l4: L4Offload::Udp,
    };
    // Without a request, changed after it, and with one; the payload in the same mbuf, or outside of all.
    for (len, requested) in [(1, false), (2, false), (501, true), (500, true), (0, true)] {
        for carried in [false, true] {
            let mut bytes = headers(mac, v6, 17, 8 + len);
            for word in [4000, PORT, 8 + len as u16, 0x1234] {
                bytes.extend(word.to_be_bytes());
            }
            if !carried {
                bytes.extend(&payload[..len]);
            }
            let mut mbuf = filled(pool, &bytes);
            if requested || len == 2 {
                mbuf.request(&request).unwrap();
            }
            if !requested && len == 2 {
                // Gone again.
                let _ = mbuf.prepend(4).unwrap();
                assert!(mbuf.adj(4));
            }
            if carried {
                mbuf.chain(page.packet(pool, ..len).unwrap()).unwrap();
            }
            send(port, mbuf);
            if requested {
                let mut room = [0; 2000];
                // In the order in which they were sent: those without were dropped.
                let received = undisturbed(|| socket.recv(&mut room)).unwrap_or_else(|error| {
                    panic!("{len} bytes, v6 {v6}, carried {carried}: {error}")
                });
                assert_eq!(room[..received], payload[..len], "v6: {v6}, carried: {carried}");
            }
        }
    }
}

fn segments(port: u16, pool: &Mempool<'_>, mac: [u8; 6]) {
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::TCP)).unwrap();
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Recv,
        Some(Duration::from_secs(10)),
    )
    .unwrap();
    let payload: Vec<u8> = (0..1300usize).map(|index| (index * 11 + index / 256) as u8).collect();
    let mut bytes = headers(mac, false, 6, 20 + payload.len());
    bytes.extend([0x0f, 0xa0, 0x12, 0xb5]); // ports
    bytes.extend(1000u32.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 5 << 4, 0x18, 0x10, 0, 0xde, 0xad, 0, 0]);
    bytes.extend(&payload);
    let mut mbuf = filled(pool, &bytes);
    mbuf.request(&TxOffload {
        l2_len: ETHERNET as u8,
        ip: IpOffload::Ipv4 { len: 20, checksum: false },
        l4: L4Offload::TcpSegments { len: 20, payload: NonZeroU16::new(500).unwrap() },
    })
    .unwrap();
    send(port, mbuf);
    let mut received: Vec<u8> = Vec::new();
    for expected in [500, 500, 300] {
        let mut room = [0; 2000];
        let (len, _) =
            undisturbed(|| Ok(recv(&socket, &mut room[..], RecvFlags::empty())?)).unwrap();
        let (ip, tcp) = room[..len].split_at(20);
        assert_eq!(tcp.len(), 20 + expected);
        let sequence = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
        assert_eq!(sequence as usize, 1000 + received.len());
        assert_eq!(sum(ip), 0xffff, "IPv4's checksum");
        let pseudo = [&ip[12..20], &[0, 6], &(tcp.len() as u16).to_be_bytes()[..], tcp].concat();
        assert_eq!(sum(&pseudo), 0xffff, "TCP's checksum");
        received.extend(&tcp[20..]);
    }
    assert_eq!(received, payload);
}

/// What a call says in the end: net_tap has the kernel tell of each frame by a signal, which interrupts others.
fn undisturbed<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted && Instant::now() < end => {}
            result => return result,
        }
    }
}

/// The sum of 16-bit words in ones' complement: all ones over what has a right checksum.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        rest => u32::from(rest[0]) << 8,
    });
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}
