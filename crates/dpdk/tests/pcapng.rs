// SPDX-License-Identifier: BSD-3-Clause
//! Captures: packets are in the file byte by byte, and those that are not are counted. One test,
//! because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

#[path = "support/pcapng.rs"]
mod reader;
mod support;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use dpdk::pcapng::{Direction, Figures, Interface, Pcapng, PcapngConfig, PcapngError, TapConfig};
use dpdk::{Burst, Eal, Mbuf, Mempool, PoolConfig};
use dpdk_sys::layout;
use reader::{Block, Packet, blocks};

#[test]
fn captures() {
    let eal = support::eal(&["net_ring0"]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    what_passes_is_in_the_file(&eal, &pool);
    packets_are_cut_to_the_snap_length(&pool);
    segments_and_tags_are_put_together(&eal, &pool);
    what_finds_no_room_is_counted(&pool);
    several_threads_capture_into_one_file(&pool);
    errors_name_the_file(&pool);
    assert!(pool.is_full());
}

/// The destination of a capture, which the test can read.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // In small pieces, as a pipe may take it.
        let some = &bytes[..bytes.len().min(1000)];
        self.0.lock().unwrap().extend_from_slice(some);
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn blocks(&self) -> Vec<Block> {
        blocks(&self.0.lock().unwrap())
    }

    fn packets(&self) -> Vec<Packet> {
        packets(self.blocks())
    }
}

fn packets(blocks: Vec<Block>) -> Vec<Packet> {
    let packet = |block| match block {
        Block::Packet(packet) => Some(packet),
        _ => None,
    };
    blocks.into_iter().filter_map(packet).collect()
}

fn file(out: &Shared) -> Pcapng {
    Pcapng::new(out.clone(), "memory", &PcapngConfig::named("test")).unwrap()
}

fn packet<'m>(pool: &Mempool<'m>, bytes: &[u8]) -> Mbuf<'m> {
    let mut mbuf = pool.alloc().unwrap();
    mbuf.resize(bytes.len()).unwrap().copy_from_slice(bytes);
    mbuf
}

/// `len` bytes that differ for each seed.
fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + seed * 13) as u8).collect()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn what_passes_is_in_the_file(eal: &Eal, pool: &Mempool<'_>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wan.pcapng");
    let mut port = support::started(eal, pool, "net_ring0");
    let started = now();
    let config = PcapngConfig {
        comment: Some("näive comment".into()),
        ..PcapngConfig::named("a test 1.0")
    };
    let mut file = Pcapng::create(&path, &config).unwrap();
    let wan = file.add_interface(&Interface::of(&port.control()).unwrap()).unwrap();
    let lan = file.add_interface(&Interface::named("lan")).unwrap();
    let all = TapConfig::default();
    let mut received = file.tap(wan, 3, Direction::Received, &all).unwrap();
    let mut sent = file.tap(lan, 1, Direction::Sent, &all).unwrap();
    let mut queues = port.queues();
    queues.rx[0].add_callback(move |packets| received.capture(packets.iter())).unwrap();
    queues.tx[0].add_callback(move |packets| sent.capture(packets.iter())).unwrap();
    // Every length modulo 4, and more than the ring can hold at once.
    let frames: Vec<Vec<u8>> = (0..3000).map(|seed| bytes(seed, 60 + seed % 1400)).collect();
    let mut burst = Burst::<32>::new();
    let mut written = 0;
    for group in frames.chunks(32) {
        for frame in group {
            burst.push(packet(pool, frame)).ok().unwrap();
        }
        assert_eq!(queues.tx[0].send(&mut burst), group.len());
        assert_eq!(queues.rx[0].receive(&mut burst), group.len());
        burst.clear();
        written += file.collect().unwrap();
    }
    assert_eq!(written, 6000);
    drop((burst, queues));
    let figures = file.finish().unwrap();
    let ended = now();
    assert_eq!(figures, Figures { captured: 6000, dropped: 0 });

    let mut blocks = blocks(&std::fs::read(&path).unwrap());
    assert_eq!(
        blocks[0],
        Block::Section { application: "a test 1.0".into(), comment: Some("näive comment".into()) }
    );
    let mac = port.control().mac().unwrap();
    assert_eq!(
        blocks[1],
        Block::Interface { name: "net_ring0".into(), mac: Some(mac), bits: Some(10_000_000_000) }
    );
    assert_eq!(blocks[2], Block::Interface { name: "lan".into(), mac: None, bits: None });
    for interface in [1, 0] {
        let Some(Block::Statistics { interface: which, seen, dropped, from, to }) = blocks.pop()
        else {
            panic!("no statistics")
        };
        assert_eq!((which, seen, dropped), (interface, 3000, 0));
        assert!(started <= from && from <= to && to <= ended);
    }
    let packets = packets(blocks.split_off(3));
    assert_eq!(packets.len(), 6000);
    for (interface, queue, way) in [(0, 3, 1), (1, 1, 2)] {
        let those: Vec<&Packet> =
            packets.iter().filter(|packet| packet.interface == interface).collect();
        assert_eq!(those.len(), 3000);
        for (packet, frame) in those.iter().zip(&frames) {
            assert_eq!((packet.queue, packet.way, packet.lost), (queue, way, 0));
            assert_eq!((packet.len, &packet.bytes), (frame.len(), frame));
        }
    }
    assert!(packets.is_sorted_by_key(|packet| packet.nanoseconds));
    // The TSC's frequency is known to a few parts per million, which is applied to the seconds that
    // this took.
    let near = started - 1_000_000..ended + 1_000_000;
    assert!(packets.iter().all(|packet| near.contains(&packet.nanoseconds)));
}

fn packets_are_cut_to_the_snap_length(pool: &Mempool<'_>) {
    let out = Shared::default();
    let mut file = file(&out);
    let lan = file.add_interface(&Interface::named("lan")).unwrap();
    let config = TapConfig { snap: 61, ..TapConfig::default() };
    let mut tap = file.tap(lan, 0, Direction::Sent, &config).unwrap();
    let frames = [60, 61, 62, 1000].map(|len| bytes(len, len));
    tap.capture(&frames.each_ref().map(|frame| packet(pool, frame)));
    drop(file); // It is finished, too.
    for (packet, frame) in out.packets().iter().zip(&frames) {
        assert_eq!(packet.len, frame.len());
        assert_eq!(packet.bytes, frame[..frame.len().min(61)]);
    }
    assert_eq!(out.packets().len(), 4);
    assert!(matches!(out.blocks().last(), Some(Block::Statistics { seen: 4, .. })));
}

/// A packet of several segments, with tags in its fields.
fn segments_and_tags_are_put_together(eal: &Eal, pool: &Mempool<'_>) {
    let small = PoolConfig { data_room: 228, count: 255, cache: 0, ..PoolConfig::named("small") };
    let small = Mempool::packet_pool(eal, &small).unwrap();
    let frame = bytes(5, 1499);
    let chain = packet(pool, &frame).copy_into(&small).unwrap();
    assert_eq!(chain.segments(), 15);
    let (vlan, qinq) =
        (dpdk_sys::RTE_MBUF_F_RX_VLAN_STRIPPED, dpdk_sys::RTE_MBUF_F_RX_QINQ_STRIPPED);
    let single = tagged(packet(pool, &frame), u64::from(vlan));
    let double = tagged(packet(pool, &frame), u64::from(vlan) | u64::from(qinq));
    // The device has removed the outer of two tags: the inner one is in its original place.
    let outer = tagged(packet(pool, &frame), qinq.into());
    // Too short to insert a tag.
    let runt = tagged(packet(pool, &frame[..11]), u64::from(vlan));
    let to_be_tagged = tagged(packet(pool, &frame), dpdk_sys::RTE_MBUF_F_TX_VLAN);
    let out = Shared::default();
    let mut file = file(&out);
    let lan = file.add_interface(&Interface::named("lan")).unwrap();
    let cut = TapConfig { snap: 14, ..TapConfig::default() };
    let mut received = file.tap(lan, 0, Direction::Received, &TapConfig::default()).unwrap();
    received.capture([&chain, &single, &double, &outer, &runt, &to_be_tagged]);
    file.collect().unwrap();
    let mut cut = file.tap(lan, 0, Direction::Received, &cut).unwrap();
    cut.capture([&single]);
    file.collect().unwrap();
    let mut sent = file.tap(lan, 0, Direction::Sent, &TapConfig::default()).unwrap();
    sent.capture([&single, &to_be_tagged]);
    file.finish().unwrap();
    let inner = [0x81, 0x00, 0x12, 0x34];
    let with = |tags: &[u8]| [&frame[..12], tags, &frame[12..]].concat();
    let outer = [0x88, 0xa8, 0x56, 0x78];
    let both = [&outer[..], &inner[..]].concat();
    let expected = [
        frame.clone(),
        with(&inner),
        with(&both),
        with(&outer),
        frame[..11].to_vec(),
        frame.clone(),
        with(&inner)[..14].to_vec(),
        frame.clone(),
        with(&inner),
    ];
    let captured = out.packets();
    assert_eq!(captured.len(), expected.len());
    for (packet, expected) in captured.iter().zip(&expected) {
        assert_eq!(&packet.bytes, expected);
    }
    assert_eq!((captured[0].len, captured[2].len, captured[6].len), (1499, 1507, 1503));
    drop(chain);
    assert!(small.is_full());
}

/// Like a device that has removed tags.
fn tagged(packet: Mbuf<'_>, flags: u64) -> Mbuf<'_> {
    // SAFETY: an `Mbuf` is a pointer to an mbuf, which is valid and ours and has these fields.
    unsafe {
        let mbuf = *(&raw const packet).cast::<*mut u8>();
        mbuf.add(layout::MBUF_OL_FLAGS).cast::<u64>().write(flags);
        mbuf.add(layout::MBUF_VLAN_TCI).cast::<u16>().write(0x1234);
        mbuf.add(layout::MBUF_VLAN_TCI_OUTER).cast::<u16>().write(0x5678);
    }
    packet
}

fn what_finds_no_room_is_counted(pool: &Mempool<'_>) {
    let out = Shared::default();
    let mut file = file(&out);
    let lan = file.add_interface(&Interface::named("lan")).unwrap();
    // The smallest possible: two packets of 65,535 bytes.
    let config = TapConfig { ring: 0, ..TapConfig::default() };
    let mut tap = file.tap(lan, 0, Direction::Sent, &config).unwrap();
    let frame = packet(pool, &bytes(1, 1000));
    let fit = 2 * (65_535 + 20) / 1020;
    (0..fit + 5).for_each(|_| tap.capture([&frame]));
    assert_eq!(file.figures(), Figures { captured: 0, dropped: 5 });
    assert_eq!(file.collect().unwrap(), fit);
    tap.capture([&frame]);
    drop(tap);
    assert_eq!(file.collect().unwrap(), 1);
    assert_eq!(file.figures(), Figures { captured: fit + 1, dropped: 5 }, "its tap is gone");
    file.finish().unwrap();
    let packets = out.packets();
    assert!(packets[..packets.len() - 1].iter().all(|packet| packet.lost == 0));
    assert_eq!(packets.last().unwrap().lost, 5);
    let statistics = out.blocks().pop().unwrap();
    assert!(matches!(statistics, Block::Statistics { seen, dropped: 5, .. } if seen == fit + 6));
}

/// Taps on their own threads, which are dropped while others are working.
fn several_threads_capture_into_one_file(pool: &Mempool<'_>) {
    const EACH: u32 = 5000;
    let out = Shared::default();
    let mut file = file(&out);
    let lan = file.add_interface(&Interface::named("lan")).unwrap();
    let config = TapConfig { snap: 64, ring: 0 };
    let taps: Vec<_> =
        (0..3).map(|queue| file.tap(lan, queue, Direction::Received, &config).unwrap()).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work: Vec<_> = (0..)
            .zip(taps)
            .map(|(queue, mut tap)| {
                // One for all: threads that take packets from a pool wait for each other by spinning, on a
                // busy machine for seconds.
                let mut frame = packet(pool, &bytes(queue, 64));
                scope.spawn(move || {
                    for number in 0..EACH {
                        frame.resize(64).unwrap()[..4].copy_from_slice(&number.to_be_bytes());
                        tap.capture([&frame]);
                    }
                })
            })
            .collect();
        let collecting = scope.spawn(|| {
            while !done.load(SeqCst) {
                file.collect().unwrap();
                // The others spin while they wait for each other: an idle thread must not take
                // their CPU.
                std::thread::yield_now();
            }
        });
        work.into_iter().for_each(|work| work.join().unwrap());
        done.store(true, SeqCst);
        collecting.join().unwrap();
    });
    let figures = file.finish().unwrap();
    assert_eq!(figures.captured + figures.dropped, 3 * u64::from(EACH));
    let packets = out.packets();
    assert_eq!(packets.len() as u64, figures.captured);
    for queue in 0..3 {
        // If packets are missing, the next one reports it.
        let mut next = 0;
        for packet in packets.iter().filter(|packet| packet.queue == queue) {
            let number = u32::from_be_bytes(packet.bytes[..4].try_into().unwrap());
            assert_eq!(u64::from(number), next + packet.lost);
            assert_eq!(packet.bytes[4..], bytes(queue as usize, 64)[4..]);
            next = u64::from(number) + 1;
        }
    }
}

fn errors_name_the_file(pool: &Mempool<'_>) {
    let error = Pcapng::create("/nonexistent/a.pcapng", &PcapngConfig::named("test")).unwrap_err();
    assert!(matches!(error, PcapngError::Create { .. }));
    assert!(error.to_string().starts_with("capture file /nonexistent/a.pcapng: No such file"));

    // A disk that is full.
    let mut full = Pcapng::create("/dev/full", &PcapngConfig::named("test")).unwrap();
    let lan = full.add_interface(&Interface::named("lan")).unwrap();
    let mut tap = full.tap(lan, 0, Direction::Sent, &TapConfig::default()).unwrap();
    tap.capture([&packet(pool, &bytes(0, 60))]);
    let error = full.finish().unwrap_err();
    assert_eq!(error.to_string(), "capture file /dev/full: No space left on device (os error 28)");

    // Rings that no machine has memory for; the file takes other taps.
    let huge = Shared::default();
    let mut huge = file(&huge);
    let lan = huge.add_interface(&Interface::named("lan")).unwrap();
    for ring in [usize::MAX, isize::MAX as usize, 1 << 56] {
        let config = TapConfig { ring, ..TapConfig::default() };
        let error = huge.tap(lan, 0, Direction::Sent, &config).unwrap_err();
        assert!(matches!(error, PcapngError::Ring { bytes, .. } if bytes == ring), "{error}");
        assert!(error.to_string().contains(&format!("no memory for a ring of {ring} bytes")));
    }
    huge.tap(lan, 0, Direction::Sent, &TapConfig::default()).unwrap();

    let (one, other) = (Shared::default(), Shared::default());
    let mut one = file(&one);
    let lan = one.add_interface(&Interface::named("lan")).unwrap();
    let error = file(&other).tap(lan, 0, Direction::Sent, &TapConfig::default()).unwrap_err();
    assert!(matches!(error, PcapngError::Interface(_)), "{error}");
    // A tap whose file is gone only fills its ring.
    let mut tap = one.tap(lan, 0, Direction::Sent, &TapConfig::default()).unwrap();
    drop(one);
    let frame = packet(pool, &bytes(0, 1000));
    std::iter::repeat_n(&frame, 10_000).for_each(|frame| tap.capture([frame]));
}
