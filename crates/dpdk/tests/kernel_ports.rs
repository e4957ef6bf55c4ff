// SPDX-License-Identifier: BSD-3-Clause
//! Ports on network interfaces, in a network namespace of its own: net_af_packet, net_tap,
//! net_af_xdp. Needs root; otherwise it is skipped with a reason.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

#[path = "support/devices.rs"]
mod devices;
mod support;

use std::process::Command;
use std::time::Instant;

use devices::{PATIENCE, cross, frame, queues, remove, start};
use dpdk::vdev::{AfPacket, AfXdp, Tap, TapMac};
use dpdk::{
    Burst, Eal, ExternalBuffer, ForeignMemory, Lack, Mbuf, Mempool, PoolConfig, Port, PortConfig,
    PortControl, PortId, Queues, Request, Rss, RxOffloads, Started, TxOffloads,
};
use support::namespace::in_network_namespace;
use support::skip::skip;

#[test]
fn kernel_interfaces() {
    in_network_namespace("kernel_interfaces", &["ip", "link"], inside);
}

fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn inside() {
    ip("link add va type veth peer name vb");
    for end in ["va", "vb"] {
        ip(&format!("link set {end} addrgenmode none up"));
    }
    let eal = support::eal(&[]);
    let config = PoolConfig { count: 16_383, ..PoolConfig::named("packets") };
    let pool = Mempool::packet_pool(&eal, &config).unwrap();
    af_packet(&eal, &pool);
    assert!(pool.is_full());
    tap(&eal, &pool);
    assert!(pool.is_full());
    let left = af_xdp(&eal, &pool);
    assert_eq!(eal.ports(), Vec::from_iter(left));
    assert!(pool.is_full());
}

fn both_ways<'eal>(pool: &Mempool<'eal>, a: &mut Port<'eal, Started>, b: &mut Port<'eal, Started>) {
    for end in [&*a, &*b] {
        assert!(end.control().wait_link(PATIENCE).unwrap().up);
    }
    let (mut near, mut far) = (a.queues(), b.queues());
    cross(pool, &mut near, &mut far, 200);
    cross(pool, &mut far, &mut near, 200);
}

/// The kernel ends the mode when the process ends, in any way: nothing then has to clear the
/// interface's flag.
fn promiscuous_mode_goes_with_the_port(control: &PortControl<'_>) {
    let shown = || {
        let shown = ip("-o -d link show va");
        (shown.contains("promiscuity 1"), shown.contains("PROMISC"))
    };
    assert_eq!(shown(), (false, false));
    for _ in 0..2 {
        control.set_promiscuous(true).unwrap();
        assert_eq!((shown(), control.promiscuous().unwrap()), ((true, false), true));
    }
    control.set_promiscuous(false).unwrap();
    assert_eq!((shown(), control.promiscuous().unwrap()), ((false, false), false));
    // A mode set by another program stays.
    ip("link set va promisc on");
    for on in [true, false] {
        control.set_promiscuous(on).unwrap();
        assert!(ip("-o link show va").contains("PROMISC"));
    }
    ip("link set va promisc off");
    assert_eq!(shown(), (false, false));
    control.set_promiscuous(true).unwrap();
}

fn af_packet(eal: &Eal, pool: &Mempool<'_>) {
    let sized = AfPacket::new("net_af_packet_a", "va").block_size(8192).frame_count(128);
    let mut a = start(eal, pool, &sized.frame_size(1024).qdisc_bypass(true));
    let mut b = start(eal, pool, &AfPacket::new("net_af_packet_b", "vb"));
    both_ways(pool, &mut a, &mut b);
    // The interface follows the port's settings.
    let control = a.control();
    let mac = [2, 0, 0, 0, 0, 9];
    control.set_mac(mac).unwrap();
    assert!(ip("-o link show va").contains("02:00:00:00:00:09"));
    assert_eq!(control.macs().unwrap(), [mac]);
    control.set_mtu(900).unwrap();
    assert!(ip("-o link show va").contains("mtu 900"));
    promiscuous_mode_goes_with_the_port(&control);
    assert!(control.set_mtu(1500).is_err(), "longer than its slots");
    ip("link set va mtu 1500");
    // DPDK switches the mode on again when it starts the port.
    let a = a.stop().unwrap().start().unwrap();
    let shown = ip("-o -d link show va");
    assert!(shown.contains("promiscuity 1") && !shown.contains("PROMISC"), "{shown}");
    remove(eal, a);
    assert!(ip("-o -d link show va").contains("promiscuity 0"));
    remove(eal, b);
    tags_fit(eal, pool);
    // The kernel spreads connections over queues; the driver offers no RSS settings.
    let two = eal.attach_vdev(&AfPacket::new("net_af_packet_2", "va").queue_pairs(2)).unwrap();
    let rss = Rss { key: Some(vec![1; 40]), ..Rss::default() };
    let config = PortConfig { rss, ..queues(pool, 2) };
    let port = eal.take_port(two).unwrap().configure(&config).unwrap();
    assert_eq!(port.shortfalls()[0].lack, Lack::Rss { queues: 2 });
    remove(eal, port.start().unwrap());
}

/// Sends packets in one burst, and receives `count` of the test's packets at the other end.
fn exchange<'m>(
    packets: Vec<Mbuf<'m>>,
    from: &mut Queues<'m>,
    to: &mut Queues<'m>,
    count: usize,
) -> Vec<Mbuf<'m>> {
    let begin = Instant::now();
    let mut burst = Burst::<64>::new();
    for packet in packets {
        assert!(burst.push(packet).is_ok());
    }
    let mut seen = Vec::new();
    while seen.len() < count || !burst.is_empty() {
        assert!(begin.elapsed() < PATIENCE, "{} of {count} frames came", seen.len());
        from.tx[0].send(&mut burst);
        let mut arrived = Burst::<32>::new();
        to.rx[0].receive(&mut arrived);
        let ours = |mbuf: &Mbuf<'_>| mbuf.data().get(..6) == Some(&[2, 0, 0, 0, 0, 1]);
        seen.extend(arrived.drain().filter(ours));
    }
    seen
}

/// The driver inserts a tag into a packet after checking that the packet fits. In a slot of 1024
/// bytes, 32 are not available for the packet.
fn tags_fit(eal: &Eal, pool: &Mempool<'_>) {
    const FITS: usize = 1024 - 32;
    let slots = AfPacket::new("net_af_packet_t", "va").block_size(8192).frame_count(128);
    let mut near = start(eal, pool, &slots.frame_size(1024));
    let mut far = start(eal, pool, &AfPacket::new("net_af_packet_u", "vb"));
    assert!(near.control().wait_link(PATIENCE).unwrap().up);
    let (mut from, mut to) = (near.queues(), far.queues());
    // Each takes a slot: if a tag exceeded one, the next would not be sent, or the program would
    // crash.
    for round in 0..5 {
        let mut packets: Vec<_> = (0..30).map(|_| frame(pool, FITS, round)).collect();
        for at in [7, 29] {
            packets[at].insert_vlan(Some(42)); // and is too long by it
        }
        let mut tagged = frame(pool, FITS - 4, round);
        tagged.insert_vlan(Some(42));
        packets.push(tagged);
        let mut no_room = frame(pool, 60, round);
        no_room.prepend(no_room.headroom()).unwrap().fill(0);
        no_room.insert_vlan(Some(42));
        packets.push(no_room);
        let shared = frame(pool, 60, round).share();
        let mut clone = shared.clone_into(pool).unwrap();
        clone.insert_vlan(Some(42));
        packets.push(clone);
        let seen = exchange(packets, &mut from, &mut to, 29);
        assert_eq!(seen.len(), 29);
        let of_type = [0x88, 0xb5];
        for plain in &seen[..28] {
            assert_eq!((plain.packet_len(), &plain.data()[12..14]), (FITS, &of_type[..]));
            assert!(plain.data()[14..].iter().all(|byte| *byte == round));
        }
        let tagged = &seen[28].data();
        assert_eq!((tagged.len(), &tagged[12..18]), (FITS, &[0x81, 0, 0, 42, 0x88, 0xb5][..]));
        assert!(tagged[18..].iter().all(|byte| *byte == round));
    }
    drop((from, to));
    remove(eal, near);
    remove(eal, far);
}

fn tap(eal: &Eal, pool: &Mempool<'_>) {
    let device = Tap::new("net_tap0").interface("edge0").mac(TapMac::Fixed);
    let id = eal.attach_vdev(&device).unwrap();
    let port = eal.take_port(id).unwrap();
    let has = port.info().unwrap().tx_offloads;
    assert!(has.contains(TxOffloads::IPV4_CKSUM | TxOffloads::UDP_CKSUM | TxOffloads::MULTI_SEGS));
    let config = PortConfig {
        rx_offloads: Request::wanted(RxOffloads::ALL),
        tx_offloads: Request::required(has),
        ..queues(pool, 1)
    };
    let mut tap = port.configure(&config).unwrap().start().unwrap();
    assert_eq!(tap.tx_offloads(), has);
    assert!(tap.rx_offloads().contains(RxOffloads::IPV4_CKSUM | RxOffloads::SCATTER));
    let told = tap.shortfalls().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert!(told.contains("VLAN_STRIP"), "{told}");
    ip("link set edge0 addrgenmode none up");
    let mut kernel = start(eal, pool, &AfPacket::new("net_af_packet_k", "edge0"));
    both_ways(pool, &mut tap, &mut kernel);
    assert_eq!(tap.control().mac().unwrap()[1..5], [0x64, 0x74, 0x61, 0x70]);
    tap.control().set_multicast(&[[1, 0, 0x5e, 0, 0, 1]]).unwrap();
    tap.control().set_multicast(&[]).unwrap();
    tap.control().set_all_multicast(true).unwrap();
    assert!(tap.control().all_multicast().unwrap());
    remove(eal, kernel);
    remove(eal, tap);
    assert!(!ip("-o link").contains("edge0"));
}

/// DPDK's driver never takes back the buffers that it gives the kernel for receiving
/// (`reserve_fill_queue`, 2048 of them), nor those that were being sent. Here they are in a pool of
/// their own, and no more than those are missing.
fn af_xdp(eal: &Eal, pool: &Mempool<'_>) -> Option<PortId> {
    let config = PoolConfig { count: 8191, ..PoolConfig::named("af_xdp") };
    let kept = Mempool::packet_pool(eal, &config).unwrap();
    let left = af_xdp_receives_into(eal, pool, &kept);
    assert!(kept.in_use() <= 2048 + 200, "{} are out", kept.in_use());
    left
}

/// A port whose queues cannot be set up stays until the end.
fn af_xdp_receives_into<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    kept: &Mempool<'eal>,
) -> Option<PortId> {
    let device = AfXdp::new("net_af_xdp0", "va").busy_budget(0).force_copy(true);
    let id = match eal.attach_vdev(&device) {
        Ok(id) => id,
        Err(error) => {
            skip(format_args!("net_af_xdp: {error}"));
            return None;
        }
    };
    // The driver frees what a queue has allocated when its setup fails, and would free it again
    // with the port.
    let config = PoolConfig { count: 511, ..PoolConfig::named("too few") };
    let few = Mempool::packet_pool(eal, &config).unwrap();
    let port = eal.take_port(id).unwrap();
    let failed = port.configure(&queues(&few, 1)).map(drop).unwrap_err().to_string();
    assert!(failed.contains("rte_eth_rx_queue_setup"), "{failed}");
    let refused = eal.detach(eal.take_port(id).unwrap()).unwrap_err().to_string();
    assert!(refused.contains("configure the port successfully first"), "{refused}");
    let port = eal.take_port(id).unwrap().configure(&queues(kept, 1));
    let mut port = match port.and_then(Port::start) {
        Ok(port) => port,
        Err(error) => {
            skip(format_args!("net_af_xdp: {error}"));
            return Some(id);
        }
    };
    let mut peer = start(eal, pool, &AfPacket::new("net_af_packet_x", "vb"));
    both_ways(pool, &mut port, &mut peer);
    whatever_is_sent_is_whole(eal, kept, &mut port, &mut peer);
    remove(eal, peer);
    // The driver keeps its queue until it is detached: another setup would fail, and free it twice.
    let again = port.stop().unwrap().unconfigure().configure(&queues(kept, 1)).unwrap_err();
    assert!(again.to_string().contains("detach the device, and attach it again"), "{again}");
    eal.detach(eal.take_port(id).unwrap()).unwrap();
    None
}

/// The driver copies as many bytes as the packet has, from its first segment, into a buffer of any
/// length.
fn whatever_is_sent_is_whole<'eal>(
    eal: &'eal Eal,
    kept: &Mempool<'eal>,
    port: &mut Port<'eal, Started>,
    peer: &mut Port<'eal, Started>,
) {
    let config =
        PoolConfig { count: 63, cache: 0, data_room: 60_000, ..PoolConfig::named("large") };
    let large = Mempool::packet_pool(eal, &config).unwrap();
    {
        let (mut from, mut to) = (port.queues(), peer.queues());
        let mut segments = frame(&large, 20, 2);
        for _ in 0..2 {
            let mut next = large.alloc().unwrap();
            next.append(20).unwrap().fill(2);
            segments.chain(next).unwrap();
        }
        let shared = frame(kept, 70, 3).share();
        let bytes = ExternalBuffer::foreign(
            ForeignMemory::check(eal).unwrap(),
            frame(&large, 80, 4).data().to_vec(),
        );
        let packets = vec![
            frame(&large, 50, 0),
            frame(&large, 50_000, 1),
            segments,
            shared.clone_into(kept).unwrap(),
            bytes.packet(kept, ..).unwrap(),
            frame(kept, 90, 5),
        ];
        drop(shared);
        let seen = exchange(packets, &mut from, &mut to, 5);
        let seen: Vec<_> = seen.iter().map(|it| (it.packet_len(), it.data()[14])).collect();
        assert_eq!(seen, [(50, 0), (60, 2), (70, 3), (80, 4), (90, 5)]);
        // Without a buffer to copy into, it waits, and so do the packets after it.
        let mut all: Vec<_> = std::iter::from_fn(|| kept.alloc()).collect();
        let mut burst = Burst::<4>::new();
        let mut first = frame(&large, 20, 6);
        first.chain(large.alloc().unwrap()).unwrap();
        assert!(burst.push(first).is_ok() && burst.push(frame(&large, 20, 7)).is_ok());
        assert_eq!((from.tx[0].send(&mut burst), burst.len()), (0, 2));
        all.truncate(all.len() - 8);
        assert_eq!(exchange(burst.drain().collect(), &mut from, &mut to, 2).len(), 2);
    }
    assert!(large.is_full());
}
