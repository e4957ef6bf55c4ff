// SPDX-License-Identifier: BSD-3-Clause
//! Requests to a device take effect: net_tap computes checksums and segments TCP, and the kernel,
//! which drops incorrect packets, receives the result. Runs in a network namespace of its own,
//! which needs root; otherwise it is skipped.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU16;
use std::process::Command;
use std::time::{Duration, Instant};

use dpdk::vdev::Tap;
use dpdk::{
    Burst, ExternalBuffer, ForeignMemory, IpOffload, L4Offload, Mbuf, Mempool, PoolConfig,
    PortConfig, Request, RxConfig, TxConfig, TxOffload, TxOffloads, TxQueue,
};
use rustix::net::{AddressFamily, RecvFlags, SocketType, ipproto, recv, socket};
use support::namespace::in_network_namespace;

const INTERFACE: &str = "lrtap0";
const OFFLOADS: TxOffloads = TxOffloads::IPV4_CKSUM
    .union(TxOffloads::UDP_CKSUM)
    .union(TxOffloads::TCP_CKSUM)
    .union(TxOffloads::TCP_TSO)
    .union(TxOffloads::MULTI_SEGS);
const PORT: u16 = 4789;
const ETHERNET: usize = 14;

#[test]
fn a_device_does_what_it_is_asked_for() {
    let probe = ["ip", "tuntap", "add", INTERFACE, "mode", "tap"];
    in_network_namespace("a_device_does_what_it_is_asked_for", &probe, inside);
}

fn inside() {
    let eal = support::eal(&[]);
    let config = PoolConfig { count: 255, cache: 16, ..PoolConfig::named("tap") };
    let pool = Mempool::packet_pool(&eal, &config).unwrap();
    let id = eal.attach_vdev(&Tap::new("net_tap0").interface(INTERFACE)).unwrap();
    let config = PortConfig {
        rx: vec![RxConfig { descriptors: 64, ..RxConfig::new(&pool) }],
        tx: vec![TxConfig::default()],
        tx_offloads: Request::required(OFFLOADS),
        ..PortConfig::default()
    };
    let mut port = eal.take_port(id).unwrap().configure(&config).unwrap().start().unwrap();
    let mac = port.control().mac().unwrap();
    ip(&["link", "set", INTERFACE, "up"]);
    ip(&["addr", "add", "192.0.2.1/24", "dev", INTERFACE]);
    ip(&["addr", "add", "2001:db8::1/64", "dev", INTERFACE, "nodad"]);
    // The kernel accepts packets to an IPv6 address a little later than it lists the address.
    let routes = ["-6", "route", "show", "table", "local"];
    let end = Instant::now() + Duration::from_secs(20);
    while !ip(&routes).contains("2001:db8::1 ") {
        assert!(Instant::now() < end, "the kernel has not got its address");
    }
    let foreign = ForeignMemory::check(&eal).unwrap();
    let mut queues = port.queues();
    let queue = &mut queues.tx[0];
    udp(queue, &pool, foreign, mac, false);
    udp(queue, &pool, foreign, mac, true);
    segments(queue, &pool, mac);
    let lost = refused(queue, &pool, mac);
    drop(queues);
    eal.detach(port.stop().unwrap().unconfigure()).unwrap();
    assert_eq!(pool.in_use(), lost);
}

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Sends one packet.
fn send<'m>(queue: &mut TxQueue<'_>, mbuf: Mbuf<'m>) {
    let mut burst = Burst::<1>::new();
    assert!(burst.push(mbuf).is_ok());
    queue.prepare(&mut burst, |_, reason| panic!("the driver cannot send it: {reason}"));
    assert_eq!(queue.send(&mut burst), 1, "the driver has refused it");
}

/// An Ethernet and an IP header, with zeros in place of IPv4's checksum.
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

/// The kernel delivers only packets with correct checksums to a socket.
fn udp<'m>(
    queue: &mut TxQueue<'_>,
    pool: &Mempool<'m>,
    foreign: ForeignMemory<'m>,
    mac: [u8; 6],
    v6: bool,
) {
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
    // Without a request, with one that was changed later, and with one; the payload in the mbuf or
    // in external memory.
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
                // Removed again.
                let _ = mbuf.prepend(4).unwrap();
                assert!(mbuf.adj(4));
            }
            if carried {
                mbuf.chain(page.packet(pool, ..len).unwrap()).unwrap();
            }
            send(queue, mbuf);
            if requested {
                let mut room = [0; 2000];
                // In the order in which they were sent: those without a request were dropped.
                let received = undisturbed(|| socket.recv(&mut room)).unwrap_or_else(|error| {
                    panic!("{len} bytes, v6 {v6}, carried {carried}: {error}")
                });
                assert_eq!(room[..received], payload[..len], "v6: {v6}, carried: {carried}");
            }
        }
    }
}

fn segments(queue: &mut TxQueue<'_>, pool: &Mempool<'_>, mac: [u8; 6]) {
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
    send(queue, mbuf);
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

/// A packet that the kernel does not take is returned, and has no request beyond its bytes. The
/// drivers of later releases have removed the headers by then, and leak the mbuf with their copy of
/// them. Returns how many were leaked.
fn refused(queue: &mut TxQueue<'_>, pool: &Mempool<'_>, mac: [u8; 6]) -> usize {
    ip(&["link", "set", INTERFACE, "down"]);
    let in_use = pool.in_use();
    let mut bytes = headers(mac, false, 17, 8 + 4);
    bytes.extend([0; 8 + 4]);
    let mut mbuf = filled(pool, &bytes);
    mbuf.request(&TxOffload {
        l2_len: ETHERNET as u8,
        ip: IpOffload::Ipv4 { len: 20, checksum: true },
        l4: L4Offload::Udp,
    })
    .unwrap();
    let mut burst = Burst::<1>::new();
    assert!(burst.push(mbuf).is_ok());
    assert_eq!(queue.send(&mut burst), 0, "the interface is down");
    let back = burst.drain().next().unwrap();
    if back.packet_len() == bytes.len() {
        assert!(back.requested().is_some() && back.data() == bytes);
    } else {
        assert_eq!((back.data(), back.requested()), (&[0; 4][..], None));
    }
    drop(back);
    pool.in_use() - in_use
}

/// Repeats an interrupted call: net_tap has the kernel announce each frame by a signal, which
/// interrupts system calls.
fn undisturbed<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted && Instant::now() < end => {}
            result => return result,
        }
    }
}

/// The ones' complement sum of 16-bit words: all ones for bytes with a correct checksum.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        rest => u32::from(rest[0]) << 8,
    });
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}
