// SPDX-License-Identifier: BSD-3-Clause
//! Virtual devices with typed arguments: attached, used, detached. Those that need privileges are
//! in `crates/dpdk/tests/kernel_ports.rs`.

use std::time::{Duration, Instant};

use dpdk::vdev::{Memif, Null, Pcap, Ring, Role, VdevError, Vhost, VirtioUser};
use dpdk::{
    Burst, Eal, Lack, Mbuf, Mempool, PoolConfig, Port, PortConfig, PortError, PortEvents,
    PortWatch, Queues, Release, Request, RxOffloads, Started, VlanModes,
};

use super::devices::{PATIENCE, cross, queues, remove, start};
use super::support::skip::skip;

/// Both ends of a link in one process.
pub fn memif_pair(eal: &Eal, pool: &Mempool<'_>) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("memif.sock");
    let mac = [2, 0, 0, 0, 0xaa, 1];
    let server = Memif::new("net_memif_s").role(Role::Server).socket(&socket).id(7).mac(mac);
    let client = Memif::new("net_memif_c").role(Role::Client).socket(&socket).id(7);
    // Releases after 22.11 assume that the other end's buffers are as long as their own.
    let bytes = if Release::running() <= Release::V22_11 { 1024 } else { 2048 };
    let client = client.ring_size_log2(6).buffer_size(bytes).secret("open");
    let mut a = start(eal, pool, &server.secret("open"));
    assert_eq!(a.control().mac().unwrap(), mac);
    assert!(!a.control().wait_link(Duration::ZERO).unwrap().up, "nobody is at the other end");
    let mut b = start(eal, pool, &client);
    for end in [&a, &b] {
        assert!(end.control().wait_link(PATIENCE).unwrap().up);
    }
    {
        let (mut near, mut far) = (a.queues(), b.queues());
        cross(pool, &mut near, &mut far, 200);
        cross(pool, &mut far, &mut near, 200);
        segments_of_two_pools_arrive(eal, pool, &mut near, &mut far);
    }
    // More would exceed the 4 GiB over which the driver computes the sum.
    assert_eq!(b.info().unwrap().max_rx_queues, 63);
    assert_eq!(b.info().unwrap().max_tx_queues, 63);
    remove(eal, b);
    remove(eal, a);
    assert!(pool.is_full());
}

/// After DPDK 22.11, the driver reports a packet of several buffers as longer than the mbufs, if
/// these are shorter than the other end's buffers.
pub fn memif_wants_room(eal: &Eal) {
    let config = PoolConfig { count: 255, cache: 0, data_room: 2175, ..PoolConfig::named("short") };
    let short = Mempool::packet_pool(eal, &config).unwrap();
    let name = format!("linerate-room-{}", std::process::id());
    let server = Memif::new("net_memif_r").role(Role::Server).abstract_socket(&name).id(0);
    let id = eal.attach_vdev(&server).unwrap();
    let made = eal.take_port(id).unwrap().configure(&queues(&short, 1)).map(drop);
    if Release::running() > Release::V22_11 {
        let error = made.unwrap_err();
        assert!(error.to_string().contains("room for 2048 bytes"), "{error}");
    } else {
        made.unwrap();
    }
    eal.detach(eal.take_port(id).unwrap()).unwrap();
}

/// After 22.11, the driver checks only the pool of the first queue. And for the first packet, no
/// pool.
fn segments_of_two_pools_arrive<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    near: &mut Queues<'_>,
    far: &mut Queues<'_>,
) {
    let config = PoolConfig { count: 63, cache: 0, data_room: 9000, ..PoolConfig::named("long") };
    let long = Mempool::packet_pool(eal, &config).unwrap();
    let (head, tail) = ([&[2; 12][..], &[0x88, 0xb5], &[1; 6]].concat(), [7; 5000]);
    let mut burst = Burst::<4>::new();
    assert_eq!(near.tx[0].send(&mut burst), 0);
    for _ in 0..4 {
        let mut mbuf = pool.alloc().unwrap();
        mbuf.append(head.len()).unwrap().copy_from_slice(&head);
        let mut next = long.alloc().unwrap();
        next.append(tail.len()).unwrap().copy_from_slice(&tail);
        mbuf.chain(next).unwrap();
        assert!(burst.push(mbuf).is_ok());
    }
    let (begin, mut seen) = (Instant::now(), 0);
    while seen < 4 {
        assert!(begin.elapsed() < PATIENCE, "{seen} of 4 packets came");
        near.tx[0].send(&mut burst);
        let mut arrived = Burst::<4>::new();
        far.rx[0].receive(&mut arrived);
        for mbuf in arrived.drain() {
            let bytes: Vec<u8> = mbuf.segment_data().flatten().copied().collect();
            assert_eq!(bytes, [&head[..], &tail].concat());
            seen += 1;
        }
    }
    drop(burst);
    assert!(long.is_full());
}

pub fn pcap_files(eal: &Eal, pool: &Mempool<'_>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a file.pcap");
    let mut writer = start(eal, pool, &Pcap::new("net_pcap_w").send_file(&file));
    let mut ring = start(eal, pool, &Ring::new("net_ring_r"));
    {
        let mut queues = writer.queues();
        let mut burst = Burst::<8>::new();
        pool.fill(&mut burst, 8).unwrap();
        for (number, mbuf) in burst.iter_mut().enumerate() {
            mbuf.append(60 + number).unwrap().fill(number as u8);
        }
        assert_eq!(queues.tx[0].send(&mut burst), 8);
    }
    remove(eal, writer);
    let mut reader = start(eal, pool, &Pcap::new("net_pcap_r").receive_file(&file));
    {
        let mut queues = reader.queues();
        let mut burst = Burst::<32>::new();
        assert_eq!(queues.rx[0].receive(&mut burst), 8);
        for (number, mbuf) in burst.iter().enumerate() {
            assert_eq!(mbuf.packet_len(), 60 + number);
            assert!(mbuf.data().iter().all(|byte| *byte == number as u8));
        }
        burst.clear();
        assert_eq!(queues.rx[0].receive(&mut burst), 0, "once");
        let mut other = ring.queues();
        assert_eq!(other.rx[0].receive(&mut burst), 0);
    }
    remove(eal, reader);
    remove(eal, ring);
    // What the driver keeps of the file is freed if the pool is too small, and would be freed again
    // with the port.
    let again = Pcap::new("net_pcap_i").receive_file(&file).again_and_again(true);
    let id = eal.attach_vdev(&again).unwrap();
    let few = PoolConfig { count: 7, cache: 0, ..PoolConfig::named("too few") };
    let few = Mempool::packet_pool(eal, &few).unwrap();
    assert!(eal.take_port(id).unwrap().configure(&queues(&few, 1)).is_err());
    let refused = eal.detach(eal.take_port(id).unwrap()).unwrap_err().to_string();
    assert!(refused.contains("configure the port successfully first"), "{refused}");
    assert!(few.is_full());
    // The driver never frees what it keeps then, so this has a pool of its own.
    let kept = PoolConfig { count: 255, cache: 0, ..PoolConfig::named("kept") };
    let kept = Mempool::packet_pool(eal, &kept).unwrap();
    remove(eal, eal.take_port(id).unwrap().configure(&queues(&kept, 1)).unwrap().start().unwrap());
    let mut port = start(eal, &kept, &again);
    let id = port.id();
    {
        let mut queues = port.queues();
        let mut burst = Burst::<32>::new();
        assert_eq!(queues.rx[0].receive(&mut burst), 32);
    }
    // The file is closed with the port: it is not started, so nothing is freed.
    let port = port.stop().unwrap().unconfigure();
    assert!(port.configure(&queues(&kept, 1)).is_err());
    eal.detach(eal.take_port(id).unwrap()).unwrap();
    assert!(pool.is_full());
}

pub fn null_and_ring(eal: &Eal, pool: &Mempool<'_>) {
    let mut quiet = start(eal, pool, &Null::new("net_null_q").no_rx(true));
    let mut loud = start(eal, pool, &Null::new("net_null_l").size(33));
    let mut ring = start(eal, pool, &Ring::new("net_ring_x"));
    {
        let mut burst = Burst::<8>::new();
        assert_eq!(quiet.queues().rx[0].receive(&mut burst), 0);
        assert_eq!(loud.queues().rx[0].receive(&mut burst), 8);
        assert!(burst.iter().all(|mbuf| mbuf.packet_len() == 33));
        let mut queues = ring.queues();
        assert_eq!(queues.tx[0].send(&mut burst), 8);
        assert_eq!(queues.rx[0].receive(&mut burst), 8);
    }
    for port in [quiet, loud, ring] {
        remove(eal, port);
    }
    assert!(pool.is_full());
}

/// net_vhost reports a number of queues before it has any. Reading its statistics then used to
/// crash.
pub fn statistics_want_queues(eal: &Eal, pool: &Mempool<'_>) {
    let directory = tempfile::tempdir().unwrap();
    let device = Vhost::new("net_vhost_s", directory.path().join("vhost.sock"));
    let port = eal.take_port(eal.attach_vdev(&device).unwrap()).unwrap();
    let control = port.control();
    for refused in [
        control.stats().map(drop),
        control.reset_stats(),
        control.xstat_names().map(drop),
        control.reset_xstats(),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, PortError::NotConfigured(id) if id == control.id()), "{error}");
    }
    let port = port.configure(&queues(pool, 1)).unwrap();
    assert_eq!(control.stats().unwrap().ipackets, 0);
    control.reset_stats().unwrap();
    let port = port.unconfigure();
    control.stats().unwrap();
    eal.detach(port).unwrap();
    assert!(matches!(control.stats(), Err(PortError::Call { .. })), "there is no such port");
}

/// The host's end and the guest's. The guest shares its memory with the host, which requires memory
/// in files: without them, virtio_user does not start.
pub fn vhost_and_virtio_user(eal: &Eal, pool: &Mempool<'_>) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("vhost.sock");
    let mut host = start(eal, pool, &Vhost::new("net_vhost_h", &socket));
    assert!(host.info().unwrap().link_events);
    let heard = host.control().watch().unwrap();
    let mac = [2, 0, 0, 0, 0xaa, 2];
    let device = VirtioUser::new("net_virtio_user_g", &socket).queue_size(256).mac(mac);
    match guest(eal, pool, &device) {
        Err(error) => skip(format_args!("vhost with virtio_user: {error}")),
        Ok(mut guest) => {
            assert!(hears_of_link(&heard), "up");
            assert!(!guest.shortfalls().iter().any(|short| short.lack == Lack::LinkEvents));
            for end in [&host, &guest] {
                assert!(end.control().wait_link(PATIENCE).unwrap().up);
            }
            // It supports 64 addresses.
            assert!(guest.info().unwrap().max_mac_addresses > 1);
            assert_eq!(guest.control().macs().unwrap(), [mac]);
            {
                let (mut near, mut far) = (host.queues(), guest.queues());
                cross(pool, &mut far, &mut near, 200);
                cross(pool, &mut near, &mut far, 200);
            }
            tags_that_find_no_room_free_their_packets_once(pool, &mut host);
            tags_are_stripped_while_it_runs(pool, &mut host, &mut guest);
            let guest = guest.stop().unwrap().start().unwrap();
            let _ = heard.take();
            remove(eal, guest);
            assert!(hears_of_link(&heard), "down");
        }
    }
    remove(eal, host);
    assert!(heard.take().contains(PortEvents::CLOSED));
    assert!(pool.is_full(), "{} of the pool's are out", pool.in_use());
}

/// Returns true if a link event comes, among others.
fn hears_of_link(watch: &PortWatch<'_>) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if watch.wait(PATIENCE).contains(PortEvents::LINK) {
            return true;
        }
    }
    false
}

/// With all its features.
fn guest<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    device: &VirtioUser,
) -> Result<Port<'eal, Started>, PortError> {
    let config = PortConfig {
        rx_offloads: Request { required: RxOffloads::VLAN_STRIP, wanted: RxOffloads::ALL },
        link_events: true,
        ..queues(pool, 1)
    };
    eal.take_port(eal.attach_vdev(device)?)?.configure(&config)?.start()
}

/// The host's driver frees them and reports that it has not accepted them.
fn tags_that_find_no_room_free_their_packets_once(
    pool: &Mempool<'_>,
    host: &mut Port<'_, Started>,
) {
    let mut queues = host.queues();
    let before = pool.in_use();
    let mut burst = Burst::<8>::new();
    for _ in 0..4 {
        let mut mbuf = pool.alloc().unwrap();
        mbuf.append(60).unwrap().fill(0);
        mbuf.prepend(mbuf.headroom()).unwrap().fill(0);
        mbuf.insert_vlan(Some(7));
        assert!(burst.push(mbuf).is_ok());
    }
    assert_eq!((queues.tx[0].send(&mut burst), burst.len()), (0, 0));
    assert_eq!(pool.in_use(), before);
}

fn tags_are_stripped_while_it_runs<'eal>(
    pool: &Mempool<'eal>,
    host: &mut Port<'eal, Started>,
    guest: &mut Port<'eal, Started>,
) {
    let control = guest.control();
    let strip = VlanModes { strip: true, ..VlanModes::default() };
    assert_eq!(control.vlan_modes().unwrap(), strip);
    let (mut near, mut far) = (host.queues(), guest.queues());
    for (modes, len) in [(strip, 60), (VlanModes::default(), 64), (strip, 60)] {
        control.set_vlan_modes(modes).unwrap();
        assert_eq!(control.vlan_modes().unwrap(), modes);
        let mut burst = Burst::<1>::new();
        assert!(burst.push(tagged(pool)).is_ok());
        assert_eq!(near.tx[0].send(&mut burst), 1);
        let begin = Instant::now();
        while far.rx[0].receive(&mut burst) == 0 {
            assert!(begin.elapsed() < PATIENCE);
        }
        assert_eq!(burst.as_slice()[0].packet_len(), len, "{modes:?}");
    }
}

/// A frame of 64 bytes, four of which are a VLAN tag.
fn tagged<'eal>(pool: &Mempool<'eal>) -> Mbuf<'eal> {
    let mut mbuf = pool.alloc().unwrap();
    let bytes = mbuf.append(64).unwrap();
    bytes.fill(0);
    bytes[..18].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 7, 0x88, 0xb5]);
    mbuf
}

pub fn refusals_leave_nothing_behind(eal: &Eal) {
    let before = eal.ports();
    let error = eal.attach_vdev(&Memif::new("net_memif_x").socket("a,zero-copy=yes")).unwrap_err();
    assert!(matches!(&error, PortError::Vdev(VdevError::Value { key: "socket", .. })), "{error}");
    let error = eal.attach_vdev(&Null::new("net_ring_x")).unwrap_err();
    assert!(matches!(&error, PortError::Vdev(VdevError::Name { .. })), "{error}");
    let error = eal.attach_vdev(&Pcap::new("net_pcap_x")).unwrap_err();
    assert!(matches!(&error, PortError::Vdev(VdevError::Missing { .. })), "{error}");
    let none = Pcap::new("net_pcap_x").receive_file("/nonexistent/file.pcap");
    let error = eal.attach_vdev(&none).unwrap_err();
    assert!(matches!(&error, PortError::Attach { .. }), "{error}");
    assert_eq!(eal.ports(), before);
}
