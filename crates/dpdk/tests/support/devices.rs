// SPDX-License-Identifier: BSD-3-Clause
//! Virtual devices for tests: attaches and starts them, sends frames through them.

use std::time::{Duration, Instant};

use dpdk::vdev::Vdev;
use dpdk::{Burst, Eal, Mbuf, Mempool, Port, PortConfig, Queues, RxConfig, Started, TxConfig};

/// Longest time that a link or a frame may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Attaches and starts a device with one queue in each direction.
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

/// A test frame of `len` bytes, with `fill` in each byte after the header.
pub fn frame<'p>(pool: &Mempool<'p>, len: usize, fill: u8) -> Mbuf<'p> {
    let mut mbuf = pool.alloc().unwrap();
    let bytes = mbuf.append(len).unwrap();
    bytes.fill(fill);
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    mbuf
}

/// Sends `count` numbered frames of 60 bytes, receives them at the other end, and checks them.
pub fn cross(pool: &Mempool<'_>, from: &mut Queues<'_>, to: &mut Queues<'_>, count: u8) {
    let begin = Instant::now();
    let (mut sent, mut seen) = (0, 0);
    let mut burst = Burst::<16>::new();
    let mut arrived = Burst::<32>::new();
    while seen < count {
        assert!(begin.elapsed() < PATIENCE, "{seen} of {count} frames came, {sent} were sent");
        while sent < count && burst.spare() > 0 {
            assert!(burst.push(frame(pool, 60, sent)).is_ok());
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

/// `count` queues in each direction.
pub fn queues<'eal>(pool: &Mempool<'eal>, count: usize) -> PortConfig<'eal> {
    PortConfig {
        rx: (0..count).map(|_| RxConfig::new(pool)).collect(),
        tx: (0..count).map(|_| TxConfig::default()).collect(),
        ..PortConfig::default()
    }
}
