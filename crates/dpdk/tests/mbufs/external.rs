// SPDX-License-Identifier: BSD-3-Clause
//! Bytes outside of mbufs: never copied, dropped once, by their last owner.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dpdk::{
    Burst, Eal, ExternalBuffer, ForeignMemory, HeapBuffer, HeapError, Mbuf, Mempool, OffloadError,
    PartError, ShareError,
};
use dpdk::{IpOffload, L4Offload, TxOffload};
use dpdk_sys::layout;

static FOR_EVER: OnceLock<Vec<u8>> = OnceLock::new();

/// Bytes that count how often they were dropped.
struct Counted {
    bytes: Vec<u8>,
    dropped: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// A buffer of `len` bytes, and a count of its drops.
fn counted(eal: &Eal, len: usize) -> (ExternalBuffer<'_>, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let owner = Counted { bytes: super::bytes(len), dropped: Arc::clone(&dropped) };
    (ExternalBuffer::foreign(ForeignMemory::check(eal).unwrap(), owner), dropped)
}

pub fn check(eal: &Eal) {
    let pool = super::pool(eal, "external", 200);
    owners(eal, &pool);
    heap(eal, &pool);
    ranges(eal, &pool);
    read_only(eal, &pool);
    last_owner_is_anyone(eal, &pool);
    through_a_port(eal);
    counts_do_not_run_over(eal, &pool);
    assert!(pool.is_full());
}

fn owners(eal: &Eal, pool: &Mempool<'_>) {
    // Any type that lends bytes.
    let right = ForeignMemory::check(eal).unwrap();
    let bytes = super::bytes(1000);
    for buffer in [
        ExternalBuffer::foreign(right, bytes.clone()),
        ExternalBuffer::foreign(right, bytes.clone().into_boxed_slice()),
        ExternalBuffer::foreign(right, Arc::<[u8]>::from(bytes.clone())),
        ExternalBuffer::foreign(right, FOR_EVER.get_or_init(|| bytes.clone()).as_slice()),
        ExternalBuffer::foreign(right, <[u8; 1000]>::try_from(bytes.clone()).unwrap()),
    ] {
        assert_eq!(*buffer, *bytes);
        let packet = buffer.packet(pool, ..).unwrap();
        assert_eq!(packet.data().as_ptr(), buffer.as_ptr(), "nothing was copied");
        drop(buffer);
        assert_eq!(packet.data(), bytes);
        assert_eq!((packet.segments(), packet.packet_len()), (1, 1000));
        assert_eq!((packet.headroom(), packet.tailroom()), (0, 0));
    }

    // The buffer is dropped first and the packet last, then the other way round.
    let (buffer, dropped) = counted(eal, 100);
    let packet = buffer.packet(pool, ..).unwrap();
    drop(buffer);
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    drop(packet);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    let (buffer, dropped) = counted(eal, 100);
    drop(buffer.packet(pool, ..).unwrap());
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    drop(buffer);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);

    // When it comes back, the mbuf is like any other.
    assert!(pool.is_full());
    let all: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
    for mbuf in &all {
        assert!(mbuf.is_unshared());
        assert_eq!((mbuf.headroom(), mbuf.tailroom()), (128, 200));
    }
}

fn heap(eal: &Eal, pool: &Mempool<'_>) {
    assert_eq!(HeapBuffer::zeroed(eal, 0, None).err(), Some(HeapError::Empty));
    let huge = HeapBuffer::zeroed(eal, 1 << 40, None).err();
    assert_eq!(huge, Some(HeapError::Exhausted(1 << 40)));
    for len in [isize::MAX as usize, isize::MAX as usize + 1, usize::MAX - 63, usize::MAX] {
        let huge = HeapBuffer::zeroed(eal, len, None).err();
        assert_eq!(huge, Some(HeapError::Exhausted(len)));
    }
    // More than the heap holds, unless each one is freed.
    for _ in 0..100 {
        let mut memory = HeapBuffer::zeroed(eal, 5 << 20, None).unwrap();
        assert!(memory.iter().all(|&byte| byte == 0));
        memory.fill(0xee);
        let buffer = ExternalBuffer::on_heap(memory);
        let packet = buffer.packet(pool, 70_000..70_100).unwrap();
        drop(buffer);
        assert_eq!(packet.data(), [0xee; 100]);
    }
    // In memory that devices can access.
    let buffer = ExternalBuffer::on_heap(HeapBuffer::zeroed(eal, 5000, None).unwrap());
    let packet = buffer.packet(pool, 4097..).unwrap();
    if layout::MBUF_IOVA_SIZE > 0 {
        // SAFETY: only translates the address of existing memory.
        let iova = unsafe { dpdk_sys::rte_mem_virt2iova(packet.data().as_ptr().cast()) };
        assert_eq!(super::read::<u64>(&packet, layout::MBUF_IOVA), iova);
    }
}

fn ranges(eal: &Eal, pool: &Mempool<'_>) {
    let (buffer, dropped) = counted(eal, 200_000);
    let bytes = super::bytes(200_000);
    for range in [0..0, 0..1, 199_999..200_000, 10..65_545, 10..65_546, 5..131_075, 0..200_000] {
        let packet = buffer.packet(pool, range.clone()).unwrap();
        assert_eq!(packet.packet_len(), range.len());
        assert_eq!(packet.segments(), range.len().div_ceil(65_535).max(1));
        assert_eq!(super::content(&packet), bytes[range]);
    }
    let outside = buffer.packet(pool, 1..200_001).err();
    let expected = PartError::Range { start: 1, end: 200_001, len: 200_000 };
    assert_eq!(outside, Some(expected));
    // No packet is leaked if the pool becomes empty in the middle.
    let mut held: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
    for _ in 0..3 {
        let exhausted = buffer.packet(pool, ..).err();
        assert_eq!(exhausted, Some(PartError::Share(ShareError::Exhausted)));
        held.pop();
        assert_eq!(pool.available(), 255 - held.len());
    }
    drop((held, buffer));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert!(pool.is_full());
}

fn read_only(eal: &Eal, pool: &Mempool<'_>) {
    let (buffer, _) = counted(eal, 1000);
    let mut packet = buffer.packet(pool, 100..900).unwrap();
    assert!(!packet.is_unshared());
    assert!(packet.data_mut().is_none() && packet.header_mut::<14>().is_none());
    assert!(packet.prepend(1).is_none() && packet.append(1).is_none());
    assert!(packet.resize(10).is_none());
    assert!(packet.header::<14>().is_some_and(|header| header[..] == buffer[100..114]));
    // Not even space that was data before.
    assert!(packet.adj(100) && packet.trim(100));
    assert!(packet.prepend(1).is_none() && packet.append(1).is_none());
    assert_eq!(packet.data(), &buffer[200..800]);
    let offload = TxOffload { l2_len: 14, ip: IpOffload::Ipv6 { len: 40 }, l4: L4Offload::Udp };
    assert_eq!(packet.request(&offload), Err(OffloadError::Shared));
    // After a header it can be linearised, which copies.
    let mut header = super::packet(pool, 10);
    let part = buffer.packet(pool, ..100).unwrap();
    header.chain(part).unwrap();
    assert!(header.linearize());
    assert_eq!(super::content(&header)[10..], buffer[..100]);
    assert!(header.data_mut().is_some());
}

fn last_owner_is_anyone(eal: &Eal, pool: &Mempool<'_>) {
    for _ in 0..50 {
        let (buffer, dropped) = counted(eal, 10_000);
        let packets: Vec<Mbuf<'_>> =
            (0..40).map(|index| buffer.packet(pool, index..5000 + index).unwrap()).collect();
        std::thread::scope(|scope| {
            let mut packets = packets.into_iter();
            for _ in 0..4 {
                let packets: Vec<_> = packets.by_ref().take(10).collect();
                scope.spawn(move || {
                    for packet in packets {
                        let shared = packet.share();
                        let clone = shared.clone_into(pool).unwrap();
                        drop(shared);
                        assert_eq!(clone.packet_len(), 5000);
                    }
                });
            }
            scope.spawn(move || drop(buffer));
        });
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}

fn through_a_port(eal: &Eal) {
    let pool = super::pool(eal, "external-port", 200);
    let (buffer, dropped) = counted(eal, 3000);
    let mut port = super::support::started(eal, &pool, "net_ring0");
    let mut queues = port.queues();
    let mut burst = Burst::<4>::new();
    let mut framed = super::packet(&pool, 14);
    framed.chain(buffer.packet(&pool, 1000..2000).unwrap()).unwrap();
    assert!(burst.push(framed).is_ok());
    assert!(burst.push(buffer.packet(&pool, ..).unwrap()).is_ok());
    assert_eq!(queues.tx[0].send(&mut burst), 2);
    drop(buffer);
    assert_eq!(queues.rx[0].receive(&mut burst), 2);
    let [framed, whole] = burst.as_slice() else { unreachable!() };
    assert_eq!(super::content(framed)[14..], super::bytes(3000)[1000..2000]);
    assert_eq!(super::content(whole), super::bytes(3000));
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    drop(burst);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    drop(queues);
    port.stop().unwrap();
    assert!(pool.is_full());
}

fn counts_do_not_run_over(eal: &Eal, pool: &Mempool<'_>) {
    let (buffer, dropped) = counted(eal, 10);
    let packet = buffer.packet(pool, ..).unwrap();
    // The maximum number of owners; C's reference count of the external buffer is here.
    let shared: *mut u8 = super::read(&packet, layout::MBUF_SHINFO);
    // SAFETY: the buffer's reference count, which nothing else uses now.
    let count = unsafe { shared.add(layout::SHINFO_REFCNT).cast::<u16>() };
    // SAFETY: as above.
    unsafe { assert_eq!(count.replace(u16::MAX / 2), 2) };
    let full = Err(PartError::Share(ShareError::TooManyOwners));
    assert_eq!(buffer.packet(pool, ..).map(drop), full);
    let shared = packet.share();
    assert_eq!(shared.clone_into(pool).map(drop), Err(ShareError::TooManyOwners));
    assert_eq!(shared.part_into(pool, 1..2).map(drop), full);
    // SAFETY: as above.
    unsafe { assert_eq!(count.replace(2), u16::MAX / 2) };
    drop((buffer, shared));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}
