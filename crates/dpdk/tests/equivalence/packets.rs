// SPDX-License-Identifier: BSD-3-Clause
//! A packet's shape and owners: headroom, tailroom, prepend, append, adj, trim, chain, linearize,
//! reference counts, clones, copies, external bytes, offload requests.
//!
//! For shared packets, the safe API refuses what C would do; the test checks that it refuses
//! exactly then.

use std::cell::RefCell;
use std::num::NonZeroU16;

use dpdk::{
    Eal, ForeignMemory, IpOffload, L4Offload, Mbuf, Mempool, PoolConfig, ShareError, SharedMbuf,
    TxOffload,
};
use dpdk_sys::{layout, rte_mbuf};
use proptest::prelude::*;

use super::external;
use super::raw::{self, Pairs};
use super::support::Packet;
use super::support::property::for_all_unshrunk;

/// Few, so that the pool is empty for some clones.
const MBUFS: u32 = 63;
/// Small, so that every limit is reached.
const ROOM: u16 = 128 + 300;

#[derive(Clone, Debug)]
enum Step {
    Alloc,
    Scribble(usize, u8),
    Prepend(usize, usize),
    Append(usize, usize),
    Adj(usize, usize),
    ReplaceFront(usize, u8),
    Trim(usize, usize),
    Chain(usize, usize),
    Linearize(usize),
    External(u16),
    Request(usize, usize),
    Share(usize),
    AddOwner(usize),
    Clone(usize),
    Copy(usize, usize, usize),
    Unshare(usize),
    Free(usize),
}

fn step() -> impl Strategy<Value = Step> {
    // Mostly the same few packets, so that each goes through many steps.
    let which = prop_oneof![4 => 0..5usize, 1 => 0..64usize].boxed();
    let some = prop_oneof![0..40usize, 0..500usize, Just(65_535), Just(65_536)];
    prop_oneof![
        4 => Just(Step::Alloc),
        2 => (which.clone(), any::<u8>()).prop_map(|(at, seed)| Step::Scribble(at, seed)),
        3 => (which.clone(), some.clone()).prop_map(|(at, len)| Step::Prepend(at, len)),
        5 => (which.clone(), some.clone()).prop_map(|(at, len)| Step::Append(at, len)),
        2 => (which.clone(), some.clone()).prop_map(|(at, len)| Step::Adj(at, len)),
        2 => (which.clone(), some).prop_map(|(at, len)| Step::Trim(at, len)),
        3 => (which.clone(), 0..4u8).prop_map(|(at, which)| Step::ReplaceFront(at, which)),
        4 => (which.clone(), which.clone()).prop_map(|(head, tail)| Step::Chain(head, tail)),
        2 => which.clone().prop_map(Step::Linearize),
        2 => (0..=external::LEN).prop_map(Step::External),
        3 => (which.clone(), 0..REQUESTS.len()).prop_map(|(at, which)| Step::Request(at, which)),
        3 => which.clone().prop_map(Step::Share),
        3 => which.clone().prop_map(Step::AddOwner),
        3 => which.clone().prop_map(Step::Clone),
        2 => (which.clone(), 0..300usize, 0..600usize)
            .prop_map(|(at, skip, len)| Step::Copy(at, skip, len)),
        2 => which.clone().prop_map(Step::Unshare),
        3 => which.prop_map(Step::Free),
    ]
}

const REQUESTS: [TxOffload; 3] = [
    TxOffload { l2_len: 14, ip: IpOffload::Ipv4 { len: 20, checksum: true }, l4: L4Offload::Udp },
    TxOffload { l2_len: 0, ip: IpOffload::Ipv6 { len: 48 }, l4: L4Offload::Tcp { len: 32 } },
    TxOffload {
        l2_len: 18,
        ip: IpOffload::Ipv4 { len: 24, checksum: false },
        l4: L4Offload::TcpSegments { len: 20, payload: NonZeroU16::MIN },
    },
];

/// C's functions on ownership.
mod c {
    use super::*;

    pub fn sole_owner(mbuf: *mut rte_mbuf) -> bool {
        // SAFETY: a valid mbuf.
        unsafe { dpdk_sys::lr_mbuf_refcnt_read(mbuf) == 1 }
    }

    pub fn unshared(mbuf: *mut rte_mbuf) -> bool {
        let flags: u64 = raw::field(mbuf, layout::MBUF_OL_FLAGS);
        sole_owner(mbuf) && flags & (layout::MBUF_F_INDIRECT | layout::MBUF_F_EXTERNAL) == 0
    }

    /// Removes what C leaves in a packet and the native functions remove.
    pub fn withdraw(mbuf: *mut rte_mbuf) {
        let flags: u64 = raw::field(mbuf, layout::MBUF_OL_FLAGS);
        let left = flags & (!layout::MBUF_F_TX_OFFLOAD_MASK | layout::MBUF_F_TX_VLAN);
        // SAFETY: a valid packet of the C side's own.
        unsafe { mbuf.cast::<u8>().add(layout::MBUF_OL_FLAGS).cast::<u64>().write(left) };
    }

    /// Returns true if an IPv4 header of maximum length fits where `request` says that it begins.
    pub fn has_room(mbuf: *mut rte_mbuf, request: &TxOffload) -> bool {
        let room: u16 = raw::field(mbuf, layout::MBUF_BUF_LEN);
        let before: u16 = raw::field(mbuf, layout::MBUF_DATA_OFF);
        let longest = usize::from(before) + usize::from(request.l2_len) + 60;
        matches!(request.ip, IpOffload::Ipv6 { .. }) || longest <= room.into()
    }

    pub fn last(mbuf: *mut rte_mbuf) -> *mut rte_mbuf {
        // SAFETY: a valid packet.
        unsafe { dpdk_sys::lr_pktmbuf_lastseg(mbuf) }
    }

    pub fn segments(mut mbuf: *mut rte_mbuf) -> Vec<*mut rte_mbuf> {
        let mut segments = Vec::new();
        while !mbuf.is_null() {
            segments.push(mbuf);
            mbuf = raw::field(mbuf, layout::MBUF_NEXT);
        }
        segments
    }
}

pub fn agree(eal: &Eal) {
    let [native_pool, c_pool] = ["native-packets", "c-packets"].map(|name| {
        let config =
            PoolConfig { count: MBUFS, cache: 16, data_room: ROOM, ..PoolConfig::named(name) };
        Mempool::packet_pool(eal, &config).unwrap()
    });
    let pairs = RefCell::new(Pairs::default());
    for_all_unshrunk(10..=400, &prop::collection::vec(step(), 1..160), |steps| {
        let mut sides = Sides {
            native_pool,
            c_pool: raw::pool("c-packets"),
            foreign: ForeignMemory::check(eal).unwrap(),
            packets: Vec::new(),
            filler: 0,
        };
        for step in steps {
            sides.take(step)?;
            for (native, c) in &sides.packets {
                raw::compare(&mut pairs.borrow_mut(), raw::pointer(native.get()), *c)?;
                rooms(native.get(), *c)?;
            }
            prop_assert_eq!(native_pool.in_use(), c_pool.in_use());
            prop_assert_eq!(
                raw::cache_len(eal, "native-packets"),
                raw::cache_len(eal, "c-packets")
            );
        }
        for (native, c) in sides.packets {
            drop(native);
            raw::c_free([c]);
        }
        prop_assert!(native_pool.is_full() && c_pool.is_full());
        Ok(())
    });
}

/// Compares what is only read: the data's position and length, headroom and tailroom.
fn rooms(native: &Mbuf<'_>, c: *mut rte_mbuf) -> Result<(), TestCaseError> {
    // SAFETY: a valid packet.
    unsafe {
        prop_assert_eq!(native.headroom(), usize::from(dpdk_sys::lr_pktmbuf_headroom(c)));
        prop_assert_eq!(native.tailroom(), usize::from(dpdk_sys::lr_pktmbuf_tailroom(c::last(c))));
        let from_buffer = |mbuf, data: *const u8| {
            data as usize - raw::field::<usize>(mbuf, layout::MBUF_BUF_ADDR)
        };
        prop_assert_eq!(
            from_buffer(raw::pointer(native), native.data().as_ptr()),
            from_buffer(c, dpdk_sys::lr_pktmbuf_mtod(c).cast())
        );
    }
    prop_assert_eq!(native.is_unshared(), c::unshared(c));
    let lengths: Vec<usize> = native.segment_data().map(<[u8]>::len).collect();
    prop_assert_eq!(native.segments(), lengths.len());
    prop_assert_eq!(native.packet_len(), lengths.iter().sum::<usize>());
    Ok(())
}

fn replace_front<const OLD: usize, const NEW: usize>(
    native: &mut Mbuf<'_>,
    c: *mut rte_mbuf,
    filler: u8,
) -> Result<(), TestCaseError> {
    let len: u16 = raw::field(c, layout::MBUF_DATA_LEN);
    let mut bytes = std::ptr::null_mut();
    // SAFETY: a valid packet of the C side's own.
    unsafe {
        let room = usize::from(dpdk_sys::lr_pktmbuf_headroom(c)) + OLD;
        if c::unshared(c) && usize::from(len) >= OLD && room >= NEW {
            dpdk_sys::lr_pktmbuf_adj(c, OLD as u16);
            bytes = dpdk_sys::lr_pktmbuf_prepend(c, NEW as u16);
            c::withdraw(c);
        }
    }
    let replaced = native.replace_front::<OLD, NEW>().map(|bytes| &mut bytes[..]);
    both_write(replaced, bytes.cast(), NEW, filler)
}

struct Sides<'m> {
    native_pool: Mempool<'m>,
    c_pool: *mut dpdk_sys::rte_mempool,
    foreign: ForeignMemory<'m>,
    packets: Vec<(Packet<'m>, *mut rte_mbuf)>,
    filler: u8,
}

impl<'m> Sides<'m> {
    /// The packet of a step, if it is writable.
    fn own(&mut self, at: usize) -> Option<(&mut Mbuf<'m>, *mut rte_mbuf)> {
        match self.packets.get_mut(at) {
            Some((Packet::Own(mbuf), c)) => Some((mbuf, *c)),
            _ => None,
        }
    }

    fn shared(&self, at: usize) -> Option<(&SharedMbuf<'m>, *mut rte_mbuf)> {
        match self.packets.get(at) {
            Some((Packet::Shared(shared), c)) => Some((shared, *c)),
            _ => None,
        }
    }

    /// Does the same on both sides. If C is not called, the native side must have refused.
    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        self.filler = self.filler.wrapping_add(1);
        let filler = self.filler;
        // C's lengths have 16 bits; longer ones can only be refused.
        let short = |len: usize| u16::try_from(len).ok();
        match step {
            Step::Alloc => {
                let (native, c) = (self.native_pool.alloc(), raw::c_alloc(self.c_pool, 1));
                prop_assert_eq!(native.is_some(), c.is_some());
                self.packets.extend(native.map(Packet::Own).zip(c.map(|c| c[0])));
            }
            Step::Scribble(at, seed) => {
                if let Some((native, c)) = self.own(at).filter(|(_, c)| c::sole_owner(*c)) {
                    raw::scribble(raw::pointer(native), seed);
                    raw::scribble(c, seed);
                }
            }
            Step::Prepend(at, len) => {
                let Some((native, c)) = self.own(at) else { return Ok(()) };
                let bytes =
                    short(len).filter(|_| c::unshared(c)).map_or(std::ptr::null_mut(), |len| {
                        // SAFETY: a valid packet of the C side's own.
                        unsafe { dpdk_sys::lr_pktmbuf_prepend(c, len) }
                    });
                if !bytes.is_null() {
                    c::withdraw(c);
                }
                both_write(native.prepend(len), bytes.cast(), len, filler)?;
            }
            Step::Append(at, len) => {
                let Some((native, c)) = self.own(at) else { return Ok(()) };
                let allowed = c::sole_owner(c) && c::unshared(c::last(c));
                let bytes = short(len).filter(|_| allowed).map_or(std::ptr::null_mut(), |len| {
                    // SAFETY: as above.
                    unsafe { dpdk_sys::lr_pktmbuf_append(c, len) }
                });
                both_write(native.append(len), bytes.cast(), len, filler)?;
            }
            Step::Adj(at, len) => {
                let Some((native, c)) = self.own(at) else { return Ok(()) };
                let done = short(len).filter(|_| c::sole_owner(c)).is_some_and(|len| {
                    // SAFETY: as above.
                    unsafe { !dpdk_sys::lr_pktmbuf_adj(c, len).is_null() }
                });
                if done {
                    c::withdraw(c);
                }
                prop_assert_eq!(native.adj(len), done);
            }
            Step::ReplaceFront(at, which) => {
                let Some((native, c)) = self.own(at) else { return Ok(()) };
                match which {
                    0 => replace_front::<14, 34>(native, c, filler)?,
                    1 => replace_front::<64, 20>(native, c, filler)?,
                    2 => replace_front::<20, 20>(native, c, filler)?,
                    _ => replace_front::<0, 129>(native, c, filler)?,
                }
            }
            Step::Trim(at, len) => {
                let Some((native, c)) = self.own(at) else { return Ok(()) };
                let allowed = c::sole_owner(c) && c::sole_owner(c::last(c));
                let done = short(len).filter(|_| allowed).is_some_and(|len| {
                    // SAFETY: as above.
                    unsafe { dpdk_sys::lr_pktmbuf_trim(c, len) == 0 }
                });
                if done {
                    c::withdraw(c);
                }
                prop_assert_eq!(native.trim(len), done);
            }
            Step::Chain(head, tail) => self.chain(head, tail)?,
            Step::Linearize(at) => {
                let Some((native, c)) = self.own(at) else { return Ok(()) };
                // SAFETY: as above.
                let done = native.segments() == 1
                    || c::unshared(c) && unsafe { dpdk_sys::lr_pktmbuf_linearize(c) == 0 };
                prop_assert_eq!(native.linearize(), done);
            }
            Step::External(len) => {
                // Dropped before the comparison, which counts owners.
                let native =
                    external::native(self.foreign).packet(&self.native_pool, ..usize::from(len));
                let c = raw::c_alloc(self.c_pool, 1);
                prop_assert_eq!(native.is_ok(), c.is_some());
                if let (Ok(native), Some(c)) = (native, c) {
                    external::attach(c[0], len);
                    self.packets.push((Packet::Own(native), c[0]));
                }
            }
            Step::Request(at, which) => {
                let Some((native, c)) = self.own(at) else { return Ok(()) };
                let request = &REQUESTS[which];
                let done = native.request(request);
                let len: u16 = raw::field(c, layout::MBUF_DATA_LEN);
                let inside = usize::from(len) >= request.headers_len();
                let allowed = inside && c::unshared(c) && c::has_room(c, request);
                prop_assert_eq!(done.is_ok(), allowed);
                // Copied from the native side: requests are compared elsewhere.
                let fields = [layout::MBUF_OL_FLAGS, layout::MBUF_TX_OFFLOAD];
                for field in fields.iter().take(if done.is_ok() { 2 } else { 1 }) {
                    let value: u64 = raw::field(raw::pointer(native), *field);
                    // SAFETY: a valid packet of the C side's own.
                    unsafe { c.cast::<u8>().add(*field).cast::<u64>().write(value) };
                }
            }
            Step::Share(at) => {
                if self.own(at).is_none() {
                    return Ok(());
                }
                if let (Packet::Own(mbuf), c) = self.packets.swap_remove(at) {
                    self.packets.push((Packet::Shared(mbuf.share()), c));
                }
            }
            Step::AddOwner(at) => {
                let Some((native, c)) = self.shared(at) else { return Ok(()) };
                let owner = native.try_clone().unwrap();
                // SAFETY: as above; the reference is owned by the new entry.
                unsafe { dpdk_sys::lr_pktmbuf_refcnt_update(c, 1) };
                self.packets.push((Packet::Shared(owner), c));
            }
            Step::Clone(at) => {
                let Some((native, c)) = self.shared(at) else { return Ok(()) };
                let native = native.clone_into(&self.native_pool);
                // SAFETY: as above.
                let clone = unsafe { dpdk_sys::rte_pktmbuf_clone(c, self.c_pool) };
                match native {
                    Ok(native) => {
                        prop_assert!(!clone.is_null());
                        c::withdraw(clone);
                        self.packets.push((Packet::Own(native), clone));
                    }
                    Err(error) => {
                        prop_assert_eq!(error, ShareError::Exhausted);
                        prop_assert!(clone.is_null());
                    }
                }
            }
            Step::Copy(at, skip, len) => self.copy(at, skip, len)?,
            Step::Unshare(at) => {
                let Some((_, c)) = self.shared(at) else { return Ok(()) };
                let alone = c::segments(c).into_iter().all(c::sole_owner);
                let (Packet::Shared(shared), c) = self.packets.swap_remove(at) else {
                    return Ok(());
                };
                let packet = match shared.unshare() {
                    Ok(mbuf) => Packet::Own(mbuf),
                    Err(shared) => Packet::Shared(shared),
                };
                prop_assert_eq!(matches!(packet, Packet::Own(_)), alone);
                self.packets.push((packet, c));
            }
            Step::Free(at) => {
                if at < self.packets.len() {
                    let (native, c) = self.packets.swap_remove(at);
                    drop(native);
                    raw::c_free([c]);
                }
            }
        }
        Ok(())
    }

    fn copy(&mut self, at: usize, skip: usize, len: usize) -> Result<(), TestCaseError> {
        let Some((native, c)) = self.packets.get(at) else { return Ok(()) };
        let all = native.get().packet_len();
        if all == 0 {
            return Ok(()); // C makes no copy of no bytes.
        }
        let skip = skip.min(all - 1);
        let native = match skip + len {
            end if skip == 0 && end >= all => native.get().copy_into(&self.native_pool).ok(),
            end => native.get().copy_range_into(&self.native_pool, skip..end.min(all)).ok(),
        };
        // SAFETY: a valid packet and a pool.
        let copy = unsafe { dpdk_sys::rte_pktmbuf_copy(*c, self.c_pool, skip as u32, len as u32) };
        prop_assert_eq!(native.is_some(), !copy.is_null());
        if !copy.is_null() {
            c::withdraw(copy);
        }
        for segment in c::segments(copy).into_iter().skip(1) {
            // This field is not used there. C leaves 0; the native copy chains, and C's chain sets
            // it.
            let len = u32::from(raw::field::<u16>(segment, layout::MBUF_DATA_LEN));
            // SAFETY: a segment of the C side's own.
            unsafe { *segment.cast::<u8>().add(layout::MBUF_PKT_LEN).cast() = len };
        }
        self.packets.extend(native.map(|native| (Packet::Own(native), copy)));
        Ok(())
    }

    fn chain(&mut self, head: usize, tail: usize) -> Result<(), TestCaseError> {
        /// As many as `raw::compare` looks at.
        const SEGMENTS: usize = 8;
        let (Some(head_c), Some(tail_c)) =
            (self.own(head).map(|(_, c)| c), self.own(tail).map(|(_, c)| c))
        else {
            return Ok(());
        };
        let all = c::segments(head_c).len() + c::segments(tail_c).len();
        if head == tail || all > SEGMENTS {
            return Ok(());
        }
        // From the end, so that no index changes before it is used.
        let end = self.packets.len() - 1;
        self.packets.swap(tail, end);
        let head = if head == end { tail } else { head };
        let Some((Packet::Own(tail), _)) = self.packets.pop() else { return Ok(()) };
        let (native, _) = self.own(head).unwrap();
        let allowed = [head_c, c::last(head_c), tail_c].into_iter().all(c::sole_owner);
        let refused = native.chain(tail).err();
        // SAFETY: two valid packets of the C side's own.
        let done = allowed && unsafe { dpdk_sys::lr_pktmbuf_chain(head_c, tail_c) == 0 };
        prop_assert_eq!(refused.is_none(), done);
        if done {
            c::withdraw(tail_c);
        }
        self.packets.extend(refused.map(|tail| (Packet::Own(tail), tail_c)));
        Ok(())
    }
}

/// Checks that both sides returned space of the same length, or neither did, and fills it with the
/// same bytes.
fn both_write(
    native: Option<&mut [u8]>,
    c: *mut u8,
    len: usize,
    filler: u8,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(native.is_some(), !c.is_null());
    if let Some(native) = native {
        prop_assert_eq!(native.len(), len);
        native.fill(filler);
        // SAFETY: C has returned that much space there.
        unsafe { c.write_bytes(filler, len) };
    }
    Ok(())
}
