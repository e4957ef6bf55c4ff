// SPDX-License-Identifier: BSD-3-Clause
//! The loop on raw pointers, as a C programmer would write it, in Rust.
//!
//! Every function here is unsafe for the same reason, given at [`run`]; the functions themselves
//! check nothing.

use std::ffi::c_void;

use dpdk::tsc;
use dpdk_sys::{layout, rte_mbuf};
use forwarders_dpdk::ethernet::{self, Addresses};
use forwarders_dpdk::polling::{BURST, Meter, QueueFigures};
use forwarders_dpdk::stop::Stop;

/// From one port to another.
pub struct Lane<'f> {
    figures: &'f QueueFigures,
    rx: *const u8,
    tx: *const u8,
    rx_port: u16,
    tx_port: u16,
    addresses: Option<(u64, u32)>,
    buffer: [*mut rte_mbuf; BURST],
    pending: usize,
    received: u64,
    sent: u64,
    dropped: u64,
}

impl<'f> Lane<'f> {
    /// From queue 0 of one port to queue 0 of another.
    pub fn new(
        rx_port: u16,
        tx_port: u16,
        addresses: Option<Addresses>,
        figures: &'f QueueFigures,
    ) -> Self {
        // SAFETY: the table has an entry for each possible DPDK port.
        let entry = |port: u16| unsafe {
            (&raw const dpdk_sys::rte_eth_fp_ops)
                .cast::<u8>()
                .add(usize::from(port) * layout::FP_OPS_SIZE)
        };
        Self {
            figures,
            rx: entry(rx_port),
            tx: entry(tx_port),
            rx_port,
            tx_port,
            addresses: addresses.as_ref().map(ethernet::halves),
            buffer: [std::ptr::null_mut(); BURST],
            pending: 0,
            received: 0,
            sent: 0,
            dropped: 0,
        }
    }
}

type BurstFn = unsafe extern "C" fn(*mut c_void, *mut *mut rte_mbuf, u16) -> u16;

/// Volatile: another thread may change the table, and the compiler must know that.
#[inline(always)]
unsafe fn read<T: Copy>(base: *const u8, offset: usize) -> T {
    // SAFETY: the caller names a field of a port's entry, by the offset that C gives.
    unsafe { base.add(offset).cast::<T>().read_volatile() }
}

#[inline(always)]
unsafe fn field<T: Copy>(mbuf: *const rte_mbuf, offset: usize) -> T {
    // SAFETY: the caller names a field of a valid mbuf, by the offset that C gives.
    unsafe { mbuf.cast::<u8>().add(offset).cast::<T>().read() }
}

#[inline(always)]
unsafe fn receive(lane: &Lane<'_>, packets: *mut *mut rte_mbuf) -> usize {
    // SAFETY: the port is started and its queue 0 is this loop's; there is room for a burst.
    unsafe {
        let queue: *mut c_void = read::<*mut *mut c_void>(lane.rx, layout::FP_RXQ_DATA).read();
        let burst: BurstFn = read(lane.rx, layout::FP_RX_PKT_BURST);
        let n = burst(queue, packets, BURST as u16);
        let callbacks = read::<*mut *mut c_void>(lane.rx, layout::FP_RXQ_CLBK).read_volatile();
        usize::from(if callbacks.is_null() {
            n
        } else {
            let most = BURST as u16;
            dpdk_sys::rte_eth_call_rx_callbacks(lane.rx_port, 0, packets, n, most, callbacks)
        })
    }
}

/// Offers packets once and frees those that the driver does not accept.
#[inline(always)]
unsafe fn offer(lane: &mut Lane<'_>, packets: *mut *mut rte_mbuf, n: usize) {
    // SAFETY: as in `receive`; the packets belong to this loop until the driver has accepted them.
    unsafe {
        let queue: *mut c_void = read::<*mut *mut c_void>(lane.tx, layout::FP_TXQ_DATA).read();
        let callbacks = read::<*mut *mut c_void>(lane.tx, layout::FP_TXQ_CLBK).read_volatile();
        let mut offered = n as u16;
        if !callbacks.is_null() {
            offered =
                dpdk_sys::rte_eth_call_tx_callbacks(lane.tx_port, 0, packets, offered, callbacks);
        }
        let burst: BurstFn = read(lane.tx, layout::FP_TX_PKT_BURST);
        let sent = usize::from(burst(queue, packets, offered));
        lane.sent += sent as u64;
        if sent != n {
            free_rest(lane, packets, sent, usize::from(offered), n);
        }
    }
}

/// Callbacks have already freed the packets that they did not leave to be offered.
#[cold]
unsafe fn free_rest(
    lane: &mut Lane<'_>,
    packets: *mut *mut rte_mbuf,
    sent: usize,
    offered: usize,
    n: usize,
) {
    lane.dropped += (n - sent) as u64;
    for index in sent..offered {
        // SAFETY: packets that the driver did not accept still belong to this loop.
        unsafe { dpdk_sys::lr_pktmbuf_free(*packets.add(index)) };
    }
}

/// Number of packets that l2fwd checks together for whether they are writable.
const GROUP: usize = 8;

/// Writes the addresses of every packet that is not shared and is long enough.
#[inline(always)]
unsafe fn write_all(packets: *mut *mut rte_mbuf, n: usize, addresses: (u64, u32)) {
    let mut index = 0;
    while index + GROUP <= n {
        // SAFETY: the next GROUP are below n, and the packets are this loop's.
        unsafe {
            let group = packets.add(index).cast::<[*mut rte_mbuf; GROUP]>().read();
            if !all_own(&group) {
                return write_rest(packets, index, n, addresses);
            }
            for mbuf in group {
                write_one(mbuf, addresses);
            }
        }
        index += GROUP;
    }
    if index < n {
        // SAFETY: as above.
        unsafe { write_rest(packets, index, n, addresses) };
    }
}

/// One by one; shared and short packets stay unchanged.
#[inline(never)]
unsafe fn write_rest(packets: *mut *mut rte_mbuf, from: usize, n: usize, addresses: (u64, u32)) {
    for index in from..n {
        // SAFETY: the index is below n, and the packets are this loop's.
        unsafe {
            let mbuf = *packets.add(index);
            if is_own(mbuf) {
                write_one(mbuf, addresses);
            }
        }
    }
}

const SHARED: u64 = layout::MBUF_F_INDIRECT | layout::MBUF_F_EXTERNAL;

/// Returns true if a packet is not shared and is long enough.
#[inline(always)]
unsafe fn is_own(mbuf: *const rte_mbuf) -> bool {
    // SAFETY: a valid mbuf.
    unsafe {
        field::<u16>(mbuf, layout::MBUF_DATA_LEN) >= size_of::<Addresses>() as u16
            && field::<u16>(mbuf, layout::MBUF_REFCNT) == 1
            && field::<u64>(mbuf, layout::MBUF_OL_FLAGS) & SHARED == 0
    }
}

/// Returns true if all packets are not shared and are long enough, with the same check as l2fwd.
#[inline(always)]
unsafe fn all_own(group: &[*mut rte_mbuf; GROUP]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if const { sse2::FITS } {
        // SAFETY: the packets are this loop's.
        return unsafe { sse2::all_own(group) };
    }
    // SAFETY: the packets are this loop's.
    group.iter().all(|mbuf| unsafe { is_own(*mbuf) })
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_extract_epi16, _mm_min_epi16, _mm_or_si128, _mm_set1_epi16, _mm_setzero_si128,
    };

    use super::{Addresses, GROUP, SHARED, layout, rte_mbuf};

    /// True for the mbuf layout of every release so far, for which the numbers below are.
    pub(super) const FITS: bool = layout::MBUF_REFCNT == 18
        && layout::MBUF_OL_FLAGS == 24
        && layout::MBUF_DATA_LEN == 40
        && SHARED == 0x6000 << 48;

    #[inline(always)]
    pub(super) unsafe fn all_own(group: &[*mut rte_mbuf; GROUP]) -> bool {
        // SAFETY: SSE2 is part of x86_64; 16 bytes at 16 and at 32 are inside each mbuf, and aligned.
        unsafe {
            let (mut owners, mut lengths) = (_mm_setzero_si128(), _mm_set1_epi16(i16::MAX));
            for mbuf in group {
                let words = mbuf.cast::<__m128i>();
                owners = _mm_or_si128(owners, words.add(1).read());
                lengths = _mm_min_epi16(lengths, words.add(2).read());
            }
            _mm_extract_epi16::<1>(owners) == 1
                && _mm_extract_epi16::<7>(owners) & 0x6000 == 0
                && _mm_extract_epi16::<4>(lengths) as i16 >= size_of::<Addresses>() as i16
        }
    }
}

#[inline(always)]
unsafe fn write_one(mbuf: *mut rte_mbuf, (front, back): (u64, u32)) {
    // SAFETY: a valid mbuf that is not shared, and its data is as long as it says.
    unsafe {
        let data = field::<*mut u8>(mbuf, layout::MBUF_BUF_ADDR)
            .add(usize::from(field::<u16>(mbuf, layout::MBUF_DATA_OFF)));
        data.cast::<u64>().write_unaligned(front);
        data.add(8).cast::<u32>().write_unaligned(back);
    }
}

#[inline(always)]
unsafe fn buffer(lane: &mut Lane<'_>, packets: *mut *mut rte_mbuf, n: usize) {
    // SAFETY: both arrays hold a burst, and `flush` empties a full one at once.
    unsafe {
        if lane.pending == 0 && n == BURST {
            return offer(lane, packets, n);
        }
        for index in 0..n {
            lane.buffer[lane.pending] = *packets.add(index);
            lane.pending += 1;
            if lane.pending == BURST {
                flush(lane);
            }
        }
    }
}

unsafe fn flush(lane: &mut Lane<'_>) {
    let n = std::mem::take(&mut lane.pending);
    if n > 0 {
        let packets = lane.buffer.as_mut_ptr();
        // SAFETY: the first n of the buffer are this loop's packets.
        unsafe { offer(lane, packets, n) };
    }
}

/// Forwards until `stop`: each burst as it came, or through a buffer that is flushed every 100 us.
///
/// # Safety
/// The lanes' ports are started with queue 0 in each direction, which nothing else uses meanwhile;
/// nothing else writes to the lanes' packets.
pub unsafe fn run<const BURST_FORWARDING: bool>(lanes: &mut [Lane<'_>], stop: &Stop) {
    let mut meter = Meter::start(lanes.iter().map(|lane| lane.figures));
    let interval = tsc::hz().div_ceil(1_000_000) * 100;
    let mut packets = [std::ptr::null_mut::<rte_mbuf>(); BURST];
    let packets = packets.as_mut_ptr();
    let mut drained = tsc::now();
    let mut now = drained;
    while !stop.is_raised() {
        for lane in lanes.iter_mut() {
            // SAFETY: the caller's contract.
            unsafe {
                let n = receive(lane, packets);
                now = tsc::now();
                meter.polled(lane.figures, n, now);
                if n == 0 {
                    continue;
                }
                lane.received += n as u64;
                if let Some(addresses) = lane.addresses {
                    write_all(packets, n, addresses);
                }
                if BURST_FORWARDING {
                    offer(lane, packets, n);
                } else {
                    buffer(lane, packets, n);
                }
            }
        }
        if now.wrapping_sub(drained) > interval {
            for lane in lanes.iter_mut() {
                // SAFETY: the caller's contract.
                unsafe { flush(lane) };
            }
            drained = now;
        }
    }
    for lane in lanes {
        // SAFETY: the caller's contract.
        unsafe { flush(lane) };
        println!("received {} sent {} dropped {}", lane.received, lane.sent, lane.dropped);
    }
}
