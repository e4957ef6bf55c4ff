// SPDX-License-Identifier: BSD-3-Clause
//! The stamp on a packet: the TSC at its reception in a dynamic field, and a dynamic flag that says
//! that it is one. Fields of fresh mbufs hold anything; flags are reset by whoever makes the packet.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::dpdk::{Dpdk, DynField, DynFlag, MBUF_OL_FLAGS, Mbuf};

/// Where the stamp of a packet is.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// Offset of the dynamic field in an mbuf.
    offset: usize,
    /// The dynamic flag's bit.
    flag: u64,
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
    /// Reserves field and flag in this program's mbufs, once EAL has started.
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

    /// # Safety
    /// `mbuf` is a live mbuf.
    #[inline(always)]
    unsafe fn flags<'m>(mbuf: *mut Mbuf) -> &'m AtomicU64 {
        // SAFETY: `ol_flags` of a live mbuf, aligned to 8 by DPDK. An atomic, because a packet of
        // several owners may be read elsewhere.
        unsafe { AtomicU64::from_ptr(mbuf.byte_add(MBUF_OL_FLAGS).cast()) }
    }

    /// # Safety
    /// `mbuf` is a live mbuf.
    #[inline(always)]
    unsafe fn field<'m>(self, mbuf: *mut Mbuf) -> &'m AtomicU64 {
        // SAFETY: the 8 bytes that DPDK gave to this field alone, aligned as was asked for.
        unsafe { AtomicU64::from_ptr(mbuf.byte_add(self.offset).cast()) }
    }

    /// Stamps packets as received at TSC `now`.
    ///
    /// # Safety
    /// They are live mbufs.
    pub unsafe fn put(self, packets: &[*mut Mbuf], now: u64) {
        for packet in packets {
            // SAFETY: the contract is the caller's.
            let (flags, field) = unsafe { (Self::flags(*packet), self.field(*packet)) };
            field.store(now, Relaxed);
            flags.store(flags.load(Relaxed) | self.flag, Relaxed);
        }
    }

    /// Whether any of the packets has a stamp.
    ///
    /// # Safety
    /// They are live mbufs.
    #[inline(always)]
    pub unsafe fn is_on_any(self, packets: &[*mut Mbuf]) -> bool {
        let mut all = 0;
        for packet in packets {
            // SAFETY: the contract is the caller's.
            all |= unsafe { Self::flags(*packet) }.load(Relaxed);
        }
        all & self.flag != 0
    }

    /// Takes the stamp off a packet: the TSC at its reception, if it has one.
    ///
    /// # Safety
    /// It is a live mbuf.
    pub unsafe fn take(self, packet: *mut Mbuf) -> Option<u64> {
        // SAFETY: the contract is the caller's.
        let (flags, field) = unsafe { (Self::flags(packet), self.field(packet)) };
        let all = flags.load(Relaxed);
        if all & self.flag == 0 {
            return None;
        }
        // Offered again, because the port did not take it, it must not count again.
        flags.store(all & !self.flag, Relaxed);
        Some(field.load(Relaxed))
    }
}
