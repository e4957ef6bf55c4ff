// SPDX-License-Identifier: BSD-3-Clause
//! An inline array of up to `N` packets, for queues to receive into and send from.

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use dpdk_sys::rte_mbuf;

use crate::debug::impl_debug;
use crate::fast;
use crate::mbuf::Mbuf;
use crate::mempool::{Exhausted, Mempool};

/// Up to `N` packets in order of arrival. It owns them: packets still inside are freed on drop.
///
/// `N` is at most 65,535, the most that DPDK's burst functions can count.
///
/// ```standalone_crate
/// use dpdk::Burst;
/// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
/// # let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig { count: 2047, ..dpdk::PoolConfig::named("packets") })?;
///
/// let mut burst = Burst::<2>::new();
/// for _ in 0..2 {
///     burst.push(pool.alloc().ok_or("the pool is empty")?).map_err(|_| "there is room")?;
/// }
/// // One too many comes back.
/// assert!(burst.push(pool.alloc().ok_or("the pool is empty")?).is_err());
/// let kept: Vec<_> = burst.drain().skip(1).collect(); // the first one is freed
/// assert_eq!((kept.len(), burst.len(), pool.in_use()), (1, 0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Burst<'m, const N: usize> {
    /// The first `len` are mbufs that this burst owns.
    slots: [MaybeUninit<Mbuf<'m>>; N],
    len: usize,
}

impl<const N: usize> fmt::Debug for Burst<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<const N: usize> Default for Burst<'_, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'m, const N: usize> Burst<'m, N> {
    const FITS: () = assert!(N <= u16::MAX as usize, "a burst holds at most 65,535 packets");

    /// An empty burst.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        let () = Self::FITS;
        Self { slots: [const { MaybeUninit::uninit() }; N], len: 0 }
    }

    /// The number of packets inside.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if it is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if there is no room left.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == N
    }

    /// The number of packets that can be added.
    #[inline]
    #[must_use]
    pub fn spare(&self) -> usize {
        N - self.len
    }

    /// Appends a packet.
    ///
    /// # Errors
    /// Gives it back when the burst is full.
    #[inline]
    pub fn push(&mut self, mbuf: Mbuf<'m>) -> Result<(), Mbuf<'m>> {
        match self.slots.get_mut(self.len) {
            Some(slot) => {
                slot.write(mbuf);
                self.len += 1;
                Ok(())
            }
            None => Err(mbuf),
        }
    }

    /// The packets, in order.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Mbuf<'m>] {
        // SAFETY: the first `len` slots are initialised.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr().cast(), self.len) }
    }

    /// The packets, in order, for changing in place.
    #[inline]
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [Mbuf<'m>] {
        // SAFETY: the first `len` slots are initialised.
        unsafe { std::slice::from_raw_parts_mut(self.slots.as_mut_ptr().cast(), self.len) }
    }

    /// Iterates over the packets.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Mbuf<'m>> {
        self.as_slice().iter()
    }

    /// Iterates over the packets for changing them in place.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Mbuf<'m>> {
        self.as_mut_slice().iter_mut()
    }

    /// Takes the packets out, in order. The burst is empty afterwards; packets that the iterator
    /// has not returned are freed when it is dropped.
    #[inline]
    pub fn drain(&mut self) -> Drain<'_, 'm> {
        let len = self.len;
        // First, so that a forgotten iterator leaks the packets and never frees them twice.
        self.len = 0;
        // SAFETY: these slots were initialised; the burst no longer counts them, so the iterator owns
        // what is in them.
        let slots = unsafe { std::slice::from_raw_parts_mut(self.slots.as_mut_ptr(), len) };
        Drain { slots: slots.iter_mut() }
    }

    /// Moves packets from the front of `other` to the end of this burst, as many as there is room
    /// for.
    #[inline]
    pub fn append<const M: usize>(&mut self, other: &mut Burst<'m, M>) {
        let n = self.spare().min(other.len);
        // SAFETY: both ranges lie inside their arrays, which differ; the first `n` packets of `other`
        // change owner: they are counted here and given away there.
        unsafe {
            std::ptr::copy_nonoverlapping(other.raw_ptr(), self.spare_ptr(), n);
            self.set_len(self.len + n);
            other.give_away_front(n);
        }
    }

    /// Frees the packets for which `keep` returns false, together and at the end, and closes the
    /// gaps. `keep` is called for each packet in order and may change it; the others stay in order.
    /// If it panics, every packet is still inside, in some order.
    ///
    /// ```
    /// /// IPv4 alone goes on.
    /// fn filter(burst: &mut dpdk::Burst<'_, 32>) {
    ///     burst.retain(|packet| packet.data().get(12..14) == Some(&[8, 0]));
    /// }
    /// ```
    #[inline]
    pub fn retain(&mut self, mut keep: impl FnMut(&mut Mbuf<'m>) -> bool) {
        let packets = self.as_mut_slice();
        let mut kept = 0;
        for index in 0..packets.len() {
            if keep(&mut packets[index]) {
                packets.swap(kept, index);
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Frees all but the first `len` packets (`rte_pktmbuf_free_bulk`).
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.free_from(len);
        }
    }

    /// Frees every packet inside (`rte_pktmbuf_free_bulk`).
    #[inline]
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Out of line, because most bursts are empty when they are dropped.
    #[inline(never)]
    fn free_from(&mut self, first: usize) {
        let freed = self.len - first;
        self.len = first;
        // SAFETY: the slots from the `first`th on hold mbufs that this burst owned and no longer counts.
        unsafe { fast::mbuf::free_bulk(self.spare_ptr(), freed) };
    }

    /// The slots as an array of mbuf pointers: `Mbuf` is transparent over one.
    #[inline]
    pub(crate) fn raw_ptr(&mut self) -> *mut *mut rte_mbuf {
        self.slots.as_mut_ptr().cast()
    }

    /// The first free slot; there are [`spare`](Self::spare) of them.
    #[inline]
    pub(crate) fn spare_ptr(&mut self) -> *mut *mut rte_mbuf {
        // SAFETY: len <= N, so this is inside the array or one past its end.
        unsafe { self.raw_ptr().add(self.len) }
    }

    /// Sets the number of packets inside: larger after packets were written after the last, smaller
    /// after packets at the end were given away.
    ///
    /// # Safety
    /// The first `len` slots hold mbufs that are valid for `'m` and that nobody else owns; `len <= N`.
    #[inline]
    pub(crate) unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len <= N);
        self.len = len;
    }

    /// Forgets the first `n` packets, which have another owner now, and closes the gap.
    ///
    /// # Safety
    /// `n <= len()`, and ownership of the first `n` was given away.
    #[inline]
    pub(crate) unsafe fn give_away_front(&mut self, n: usize) {
        debug_assert!(n <= self.len);
        self.len -= n;
        if self.len > 0 {
            // SAFETY: the slots n..n+len are initialised.
            unsafe { self.move_to_front(n) };
        }
    }

    /// Moves the `len` slots from the `n`th on to the front.
    ///
    /// # Safety
    /// They are initialised.
    #[cold]
    unsafe fn move_to_front(&mut self, n: usize) {
        // Nothing is moved for 0: a driver that takes nothing is called again and again.
        if n > 0 {
            let slots = self.slots.as_mut_ptr();
            // SAFETY: both ranges lie inside the array.
            unsafe { std::ptr::copy(slots.add(n), slots, self.len) };
        }
    }
}

impl<'eal> Mempool<'eal> {
    /// Puts `n` empty mbufs into the spare room of `burst`, or none (`rte_pktmbuf_alloc_bulk`). `n`
    /// is limited to the spare room.
    ///
    /// # Errors
    /// [`Exhausted`] when the pool has fewer than that.
    #[inline]
    pub fn fill<'m, const N: usize>(
        &self,
        burst: &mut Burst<'m, N>,
        n: usize,
    ) -> Result<(), Exhausted>
    where
        'eal: 'm,
    {
        let n = n.min(burst.spare());
        // SAFETY: the pool lives, and the burst has room for n more pointers after its last.
        if unsafe { fast::mbuf::alloc_bulk(self.as_ptr(), burst.spare_ptr(), n) } {
            // SAFETY: n fresh mbufs, which nobody else has, were written there.
            unsafe { burst.set_len(burst.len() + n) };
            Ok(())
        } else {
            Err(Exhausted)
        }
    }
}

impl<'b, 'm, const N: usize> IntoIterator for &'b Burst<'m, N> {
    type Item = &'b Mbuf<'m>;
    type IntoIter = std::slice::Iter<'b, Mbuf<'m>>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'b, 'm, const N: usize> IntoIterator for &'b mut Burst<'m, N> {
    type Item = &'b mut Mbuf<'m>;
    type IntoIter = std::slice::IterMut<'b, Mbuf<'m>>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<const N: usize> Drop for Burst<'_, N> {
    #[inline]
    fn drop(&mut self) {
        self.clear();
    }
}

/// Packets taken out of a [`Burst`]; those not taken are freed on drop.
pub struct Drain<'b, 'm> {
    /// Initialised slots whose content this iterator owns.
    slots: std::slice::IterMut<'b, MaybeUninit<Mbuf<'m>>>,
}

impl_debug!([] Drain<'_, '_>, drain => len: drain.len());

impl<'m> Iterator for Drain<'_, 'm> {
    type Item = Mbuf<'m>;

    #[inline]
    fn next(&mut self) -> Option<Mbuf<'m>> {
        // SAFETY: the slot is initialised, and the iterator never comes back to it.
        self.slots.next().map(|slot| unsafe { slot.assume_init_read() })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl ExactSizeIterator for Drain<'_, '_> {}

impl Drop for Drain<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

// The packets go to C as an array of pointers.
const _: () = assert!(size_of::<Mbuf<'_>>() == size_of::<NonNull<rte_mbuf>>());
