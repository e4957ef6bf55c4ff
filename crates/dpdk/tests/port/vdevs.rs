// SPDX-License-Identifier: BSD-3-Clause
//! Virtual devices by typed arguments: attached, used, detached. Those that need privileges are in
//! `crates/dpdk/tests/kernel_ports.rs`.

use std::time::{Duration, Instant};

use dpdk::vdev::{Memif, Null, Pcap, Ring, Role, Vdev, VdevError, Vhost, VirtioUser};
use dpdk::{Burst, Eal, Mempool, Port, PortError, Queues, Started};

use super::queues;

const PATIENCE: Duration = Duration::from_secs(20);

/// Attaches and starts a device with one queue each way.
pub fn start<'eal, V: Vdev>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    device: &V,
) -> Port<'eal, Started> {
    let id = eal.attach_vdev(device).unwrap();
    let name = device.to_string().split(',').next().map(str::to_owned);
    assert_eq!(id.name(), name);
    eal.take_port(id).unwrap().configure(&queues(pool, 1)).unwrap().start().unwrap()
}

pub fn remove(eal: &Eal, port: Port<'_, Started>) {
    eal.detach(port.stop().unwrap().unconfigure()).unwrap();
}

/// Sends so many frames of 60 bytes that are numbered, receives them at the other end, and looks at them.
pub fn cross(pool: &Mempool<'_>, from: &mut Queues<'_>, to: &mut Queues<'_>, count: u8) {
    let begin = Instant::now();
    let (mut sent, mut seen) = (0, 0);
    let mut burst = Burst::<16>::new();
    let mut arrived = Burst::<32>::new();
    while seen < count {
        assert!(begin.elapsed() < PATIENCE, "{seen} of {count} frames came, {sent} were sent");
        while sent < count && burst.spare() > 0 {
            let mut mbuf = pool.alloc().unwrap();
            let bytes = mbuf.append(60).unwrap();
            bytes.fill(sent);
            bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
            assert!(burst.push(mbuf).is_ok());
            sent += 1;
        }
        from.tx[0].send(&mut burst);
        to.rx[0].receive(&mut arrived);
        for mbuf in arrived.drain().filter(|mbuf| mbuf.data().get(12..14) == Some(&[0x88, 0xb5])) {
            assert_eq!((mbuf.packet_len(), mbuf.data()[14], mbuf.data()[59]), (60, seen, seen));
            seen += 1;
        }
    }
}

/// Both ends of a link in one process.
pub fn memif_pair(eal: &Eal, pool: &Mempool<'_>) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("memif.sock");
    let mac = [2, 0, 0, 0, 0xaa, 1];
    let server = Memif::new("net_memif_s").role(Role::Server).socket(&socket).id(7).mac(mac);
    let client = Memif::new("net_memif_c").role(Role::Client).socket(&socket).id(7);
    let client = client.ring_size_log2(6).buffer_size(1024).secret("open");
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
    }
    remove(eal, b);
    remove(eal, a);
    assert!(pool.is_full());
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

/// The host's end and the guest's. The guest shows the host its memory, which has to be in files: where it is
/// not, virtio_user does not start.
pub fn vhost_and_virtio_user(eal: &Eal, pool: &Mempool<'_>) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("vhost.sock");
    let mut host = start(eal, pool, &Vhost::new("net_vhost_h", &socket));
    let guest = VirtioUser::new("net_virtio_user_g", &socket).queue_size(256);
    match eal.attach_vdev(&guest) {
        Err(error) => println!("skipped: vhost with virtio_user: {error}"),
        Ok(id) => {
            let port = eal.take_port(id).unwrap().configure(&queues(pool, 1)).unwrap();
            match port.start() {
                Err(error) => println!("skipped: vhost with virtio_user: {error}"),
                Ok(mut guest) => {
                    for end in [&host, &guest] {
                        assert!(end.control().wait_link(PATIENCE).unwrap().up);
                    }
                    {
                        let (mut near, mut far) = (host.queues(), guest.queues());
                        cross(pool, &mut far, &mut near, 200);
                        cross(pool, &mut near, &mut far, 200);
                    }
                    guest = guest.stop().unwrap().start().unwrap();
                    remove(eal, guest);
                }
            }
        }
    }
    remove(eal, host);
    assert!(pool.is_full(), "{} of the pool's are out", pool.in_use());
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
