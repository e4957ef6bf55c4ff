// SPDX-License-Identifier: BSD-3-Clause
//! The stamp of a packet: the TSC at its reception in a dynamic field, and a dynamic flag that
//! marks it. Fields of fresh mbufs hold arbitrary values; flags are reset when a packet is
//! allocated or received.
//!
//! A stamp is valid for one mbuf, whose address is part of it: a copy of a packet inherits field
//! and flag, but only the original counts. So the number of pending stamps is known, and if it is
//! 0, which is nearly always the case, senders need not check their packets: that would cost more
//! than everything else. The stamp of a packet that a program drops stays pending until its mbuf is
//! stamped again; as long as there are such stamps, senders check every packet.

use std::num::NonZeroU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU64};

use crate::dpdk::{Dpdk, DynField, DynFlag, MBUF_OL_FLAGS, MBUF_REFCNT, Mbuf};

/// Stamps that were set and not removed: never fewer than can still be found.
static UNDER_WAY: AtomicI64 = AtomicI64::new(0);

/// Bits of the TSC in a stamp: enough for minutes.
const TSC_BITS: u32 = 40;
const TSC: u64 = (1 << TSC_BITS) - 1;

/// A stamp's value: when its packet was received, and the mbuf that it is valid for. Mbufs are at
/// least 128 bytes apart, so the stored part of the address distinguishes mbufs within 2 GiB.
fn encode(mbuf: *const Mbuf, now: u64) -> u64 {
    (mbuf.addr() as u64 >> 7) << TSC_BITS | now & TSC
}

/// A value that is no stamp of this mbuf: the stamp was removed.
fn taken_off(mbuf: *const Mbuf) -> u64 {
    !encode(mbuf, 0)
}

/// Cycles from a stamp to `now`.
pub fn span(stamp: u64, now: u64) -> u64 {
    /// How far the counter of another socket may be behind: milliseconds.
    const BEHIND: u64 = 1 << 24;
    match now.wrapping_sub(stamp) & TSC {
        span if span <= TSC - BEHIND => span,
        _ => 0,
    }
}

/// Where stamps are stored.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// Offset of the dynamic field in an mbuf.
    offset: usize,
    /// The dynamic flag's bit.
    flag: u64,
}

/// How bursts are stamped.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    pub stamp: Stamp,
    /// One received burst in this many.
    pub one_in: NonZeroU32,
}

/// The program's mbufs have no room left.
#[derive(Debug, thiserror::Error)]
#[error("no latency: the program's mbufs have no room left for a {0}")]
pub struct NoRoomError(&'static str);

fn name(text: &str) -> [u8; 64] {
    let mut name = [0; 64];
    for (place, byte) in name.iter_mut().zip(text.bytes()) {
        *place = byte;
    }
    name
}

impl Stamp {
    /// Reserves the field and the flag in this program's mbufs, once EAL has started.
    pub fn reserve(dpdk: &Dpdk) -> Result<Self, NoRoomError> {
        let size = size_of::<u64>();
        let field = DynField { name: name("linerate_probe_rx_tsc"), size, align: size, flags: 0 };
        let flag = DynFlag { name: name("linerate_probe_stamped"), flags: 0 };
        // SAFETY: descriptions that DPDK copies; EAL has started, or there would be no port.
        let (offset, bit) = unsafe { ((dpdk.register_field)(&field), (dpdk.register_flag)(&flag)) };
        let offset =
            usize::try_from(offset).map_err(|_| NoRoomError("dynamic field of 8 bytes"))?;
        let bit = u32::try_from(bit).map_err(|_| NoRoomError("dynamic flag"))?;
        let flag = 1u64.checked_shl(bit).ok_or(NoRoomError("dynamic flag"))?;
        Ok(Self { offset, flag })
    }

    #[cfg(test)]
    pub fn at(offset: usize, flag: u64) -> Self {
        Self { offset, flag }
    }

    /// # Safety
    /// `mbuf` is a live mbuf.
    #[inline(always)]
    unsafe fn flags<'m>(mbuf: *mut Mbuf) -> &'m AtomicU64 {
        // SAFETY: `ol_flags` of a live mbuf, aligned to 8 by DPDK. An atomic, because a packet of
        // several owners may be read elsewhere.
        unsafe { AtomicU64::from_ptr(mbuf.byte_add(MBUF_OL_FLAGS).cast()) }
    }

    /// The number of a packet's owners.
    ///
    /// # Safety
    /// `mbuf` is a live mbuf.
    #[inline(always)]
    unsafe fn owners(mbuf: *mut Mbuf) -> u16 {
        // SAFETY: `refcnt` of a live mbuf, 16 bits wide and aligned by DPDK, which counts atomically.
        unsafe { AtomicU16::from_ptr(mbuf.byte_add(MBUF_REFCNT).cast()) }.load(Acquire)
    }

    /// # Safety
    /// `mbuf` is a live mbuf.
    #[inline(always)]
    unsafe fn field<'m>(self, mbuf: *mut Mbuf) -> &'m AtomicU64 {
        // SAFETY: the 8 bytes that DPDK reserved for this field, aligned as requested.
        unsafe { AtomicU64::from_ptr(mbuf.byte_add(self.offset).cast()) }
    }

    /// Stamps packets as received at the TSC that `now` reads.
    ///
    /// The clock is read after the atomic addition, which waits for earlier stores, and after the
    /// flags were changed. Then each field is written once; its cache line is seldom in the cache,
    /// but nothing waits for it.
    ///
    /// # Safety
    /// They are live mbufs.
    pub unsafe fn put(self, packets: &[*mut Mbuf], now: impl FnOnce() -> u64) {
        for packet in packets {
            // SAFETY: the contract is the caller's.
            let (flags, owners) = unsafe { (Self::flags(*packet), Self::owners(*packet)) };
            if owners == 1 {
                flags.store(flags.load(Relaxed) | self.flag, Relaxed);
            } else {
                // A port may return packets that have other owners, too.
                flags.fetch_or(self.flag, Relaxed);
            }
        }
        UNDER_WAY.fetch_add(packets.len() as i64, Relaxed);
        let now = now();
        let mut again = 0;
        for packet in packets {
            // SAFETY: the contract is the caller's.
            let field = unsafe { self.field(*packet) };
            // A stamp that the mbuf had when it was dropped is still counted as pending.
            let before = field.load(Relaxed);
            again += u64::from(before == encode(*packet, before));
            field.store(encode(*packet, now), Relaxed);
        }
        if again > 0 {
            taken(again);
        }
    }

    /// Returns true if any of the packets has a stamp, according to its flag.
    ///
    /// # Safety
    /// They are live mbufs.
    pub unsafe fn is_on_any(self, packets: &[*mut Mbuf]) -> bool {
        let mut all = 0;
        for packet in packets {
            // SAFETY: the contract is the caller's.
            all |= unsafe { Self::flags(*packet) }.load(Relaxed);
        }
        all & self.flag != 0
    }

    /// Removes a packet's stamp, if it has a valid one; report it to [`taken`].
    ///
    /// # Safety
    /// It is a live mbuf.
    pub unsafe fn take(self, packet: *mut Mbuf) -> Option<u64> {
        // SAFETY: the contract is the caller's.
        let (flags, field) = unsafe { (Self::flags(packet), self.field(packet)) };
        if flags.load(Relaxed) & self.flag == 0 {
            return None;
        }
        // A packet that is offered again, because the port did not take it, must not count again;
        // nor may one that several owners send at once, which alone needs a locked instruction. If
        // an owner has just given it up, that owner took the stamp before.
        // SAFETY: the contract is the caller's.
        let all = match unsafe { Self::owners(packet) } {
            1 => {
                let all = flags.load(Relaxed);
                flags.store(all & !self.flag, Relaxed);
                all
            }
            _ => flags.fetch_and(!self.flag, Relaxed),
        };
        if all & self.flag == 0 {
            return None;
        }
        let stamp = field.load(Relaxed);
        if stamp != encode(packet, stamp) {
            return None;
        }
        field.store(taken_off(packet), Relaxed);
        Some(stamp)
    }
}

/// Returns true if a packet may have a stamp.
#[inline(always)]
pub fn any_under_way() -> bool {
    // Code that passes packets to another thread makes earlier writes visible there.
    UNDER_WAY.load(Relaxed) != 0
}

/// Records that this many stamps were removed.
pub fn taken(stamps: u64) {
    UNDER_WAY.fetch_sub(stamps as i64, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::AcqRel;
    use std::sync::atomic::{AtomicPtr, AtomicUsize};

    /// The part of an mbuf that stamps use.
    #[repr(align(128))]
    struct Bytes([u8; 128]);

    #[test]
    fn a_stamp_counts_once_and_only_on_its_own_mbuf() {
        let stamp = Stamp { offset: 96, flag: 1 << 40 };
        let (mut original, mut copy) = (Bytes([0xee; 128]), Bytes([0; 128]));
        original.0[MBUF_OL_FLAGS..][..8].copy_from_slice(&5u64.to_ne_bytes());
        let packet: *mut Mbuf = (&raw mut original).cast();
        let copied: *mut Mbuf = (&raw mut copy).cast();
        // SAFETY: both are as large as what is touched, and live.
        unsafe {
            assert!(!stamp.is_on_any(&[packet, copied]) && !any_under_way());
            stamp.put(&[packet], || u64::MAX - 10);
            assert!(stamp.is_on_any(&[copied, packet]) && any_under_way());
            std::ptr::copy_nonoverlapping(packet.cast::<u8>(), copied.cast::<u8>(), 128);
            assert_eq!(stamp.take(copied), None);
            assert!(stamp.is_on_any(&[packet]));
            // The counter has run over meanwhile.
            assert_eq!(stamp.take(packet).map(|found| span(found, 89)), Some(100));
            assert_eq!(stamp.take(packet), None);
            assert!(!stamp.is_on_any(&[packet, copied]) && any_under_way());
            taken(1);
            assert!(!any_under_way());
            // Dropped (which is not reported), its flags reset, and received again.
            for _ in 0..3 {
                original.0[MBUF_OL_FLAGS..][..8].copy_from_slice(&5u64.to_ne_bytes());
                stamp.put(&[packet], || 7);
            }
            assert!(any_under_way() && stamp.take(packet).is_some());
            taken(1);
            assert!(!any_under_way());
        }
        assert_eq!(original.0[MBUF_OL_FLAGS..][..8], 5u64.to_ne_bytes());
    }

    #[test]
    fn of_owners_that_send_at_once_one_takes_the_stamp() {
        const ROUNDS: usize = 20_000;
        let stamp = Stamp { offset: 96, flag: 1 << 40 };
        let mut bytes = Bytes([0; 128]);
        let packet = AtomicPtr::new((&raw mut bytes).cast::<Mbuf>());
        let (counted, arrived) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // Both start at once; a barrier that sleeps does not ensure that.
        let meet = || {
            let both = (arrived.fetch_add(1, AcqRel) / 2 + 1) * 2;
            let mut spins = 0;
            while arrived.load(Acquire) < both {
                spins += 1;
                if spins % 1000 == 0 {
                    std::thread::yield_now();
                }
            }
        };
        // SAFETY: it is as large as what is touched, and outlives the threads.
        let owner = |puts: bool| unsafe {
            for _ in 0..ROUNDS {
                let packet = packet.load(Relaxed);
                if puts {
                    // Not by put(): other tests count pending stamps.
                    stamp.field(packet).store(encode(packet, 7), Relaxed);
                    Stamp::flags(packet).store(stamp.flag, Relaxed);
                }
                meet();
                let found = usize::from(stamp.take(packet).is_some());
                counted.fetch_add(found, Relaxed);
                meet();
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(|| owner(true));
            owner(false);
        });
        assert_eq!(counted.into_inner(), ROUNDS);
    }

    #[test]
    fn a_counter_that_is_a_little_behind_makes_no_span() {
        assert_eq!((span(1000, 999), span(1000, 1000), span(1000, 1001)), (0, 0, 1));
        assert_eq!(span(1000, 1000 + TSC / 4 * 3), TSC / 4 * 3, "minutes");
    }
}
