// SPDX-License-Identifier: BSD-3-Clause
//! Batches of objects that a node processes.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};

use dpdk::{Mbuf, RxQueue, TxQueue};

use crate::object::Object;
use crate::stats::Counters;

/// The objects that a node is to process, in order of arrival. It owns them: objects still inside
/// when it is dropped are dropped too, and counted as dropped by the node.
pub struct Batch<'b, M: Object> {
    first: *mut M,
    len: usize,
    /// True if these are all the objects in the node's memory.
    whole: bool,
    /// Where the node's drops are counted.
    dropped: &'b Cell<u64>,
    stream: PhantomData<&'b mut [M]>,
}

impl<M: Object> fmt::Debug for Batch<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len).finish_non_exhaustive()
    }
}

/// How many objects ahead of the current one the next is prefetched, and how many ahead the node is
/// told of one, which has been prefetched by then.
const FETCHED: usize = 12;
const TOLD: usize = 6;
const _: () = assert!(TOLD < FETCHED);

/// Chooses where each object goes.
pub(crate) trait Chooser<M> {
    /// The result of a choice.
    type Choice: PartialEq;

    /// Called with an object that comes later. Does nothing by default.
    #[inline(always)]
    fn ahead(&mut self, _object: &M) {}

    /// Chooses for this object.
    fn choose(&mut self, object: &mut M) -> Self::Choice;
}

impl<M, K: PartialEq, F: FnMut(&mut M) -> K> Chooser<M> for F {
    type Choice = K;

    #[inline(always)]
    fn choose(&mut self, object: &mut M) -> K {
        self(object)
    }
}

impl<'b, M: Object> Batch<'b, M> {
    /// # Safety
    /// `len` objects lie at `first`, which this batch alone owns and whose memory nothing else uses for
    /// `'b`.
    #[inline]
    pub(crate) unsafe fn new(first: *mut M, len: usize, dropped: &'b Cell<u64>) -> Self {
        Self { first, len, whole: true, dropped, stream: PhantomData }
    }

    /// Returns true if nothing was taken from it, so that no other batch is in the same memory.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Gives the objects away: the caller owns them.
    #[inline]
    pub(crate) fn into_raw(self) -> (*mut M, usize) {
        let this = ManuallyDrop::new(self);
        (this.first, this.len)
    }

    /// The address of its objects.
    #[inline]
    pub(crate) fn start(&self) -> *mut M {
        self.first
    }

    /// Takes the first `n` objects, or all if there are fewer, as a separate batch.
    #[inline]
    #[must_use = "objects that are not sent are dropped"]
    pub fn split_front(&mut self, n: usize) -> Self {
        let n = n.min(self.len);
        self.whole = false;
        let front = Self { len: n, ..*self };
        // SAFETY: n <= len, so this is inside the stream or one past its end. The objects before it are
        // the other batch's from here on.
        self.first = unsafe { self.first.add(n) };
        self.len -= n;
        front
    }

    /// Takes the first `K` objects; `None` if there are fewer.
    #[inline]
    pub fn take_array<const K: usize>(&mut self) -> Option<[M; K]> {
        if self.len < K {
            return None;
        }
        let (front, _) = self.split_front(K).into_raw();
        // SAFETY: K objects lie there, and nothing owns them any more.
        Some(unsafe { front.cast::<[M; K]>().read() })
    }

    /// Passes on, in order, each run of adjacent objects with the same choice; the batch itself if
    /// that is all of it.
    #[inline]
    pub(crate) fn for_runs<C: Chooser<M>>(
        mut self,
        mut chooser: C,
        mut hand_over: impl FnMut(C::Choice, Self),
    ) {
        // Only one call of `choose` in the code, so that it is inlined into the loop.
        let mut chosen = None;
        let mut run = 0;
        while run < self.len {
            // Local variables, so that they stay in registers: nodes write through pointers.
            let (first, len) = (self.first, self.len);
            let other = loop {
                // One check for the end of the batch: the last objects are not prefetched.
                if run + FETCHED < len {
                    // SAFETY: both are among the objects, which this batch owns.
                    unsafe {
                        (*first.add(run + FETCHED)).prefetch();
                        chooser.ahead(&*first.add(run + TOLD));
                    }
                }
                // SAFETY: as above; `run` is less than `len`.
                let next = Some(chooser.choose(unsafe { &mut *first.add(run) }));
                if next != chosen {
                    break next;
                }
                run += 1;
                if run == len {
                    break None;
                }
            };
            if let Some(before) = std::mem::replace(&mut chosen, other) {
                if run == self.len {
                    return hand_over(before, self);
                }
                let front = self.split_front(run);
                hand_over(before, front);
            }
            run = 1;
        }
        if let Some(last) = chosen {
            hand_over(last, self);
        }
    }

    /// Takes the objects one by one. Those not taken are dropped and counted.
    #[inline]
    pub fn drain(self) -> Drain<'b, M> {
        Drain(self)
    }
}

impl<'m> Batch<'_, Mbuf<'m>> {
    /// Offers the packets to a transmit queue once. The packets that the driver takes, from the
    /// front, leave the batch; returns their number. Packets that TX callbacks drop, or that the
    /// driver must not get, leave the batch too and are not counted ([`TxQueue::send`]).
    #[inline]
    pub fn send_by(&mut self, queue: &mut TxQueue<'_>) -> usize {
        let offered = self.len.min(u16::MAX.into());
        // If the batch is larger, packets that callbacks drop would leave a gap: the rest waits.
        let mut front = self.split_front(offered);
        // SAFETY: the batch owned them, and takes back those that are left.
        unsafe {
            let left = queue.send_from(front.first, offered as u16);
            front.first = front.first.add(left.start);
            front.len = left.len();
            let sent = left.start;
            self.take_back(front);
            sent
        }
    }

    /// Puts what is left of the front part back before the rest.
    #[inline]
    fn take_back(&mut self, front: Self) {
        let (first, len) = front.into_raw();
        if self.len == 0 {
            (self.first, self.len) = (first, len);
            return;
        }
        // SAFETY: the front part lay right before the rest, in the same memory, which is this batch's.
        unsafe {
            let start = self.first.sub(len);
            std::ptr::copy(first, start, len);
            (self.first, self.len) = (start, self.len + len);
        }
    }
}

impl<M: Object> Deref for Batch<'_, M> {
    type Target = [M];

    #[inline]
    fn deref(&self) -> &[M] {
        // SAFETY: `len` objects lie there, which this batch owns.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

impl<M: Object> DerefMut for Batch<'_, M> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [M] {
        // SAFETY: as above, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.len) }
    }
}

impl<M: Object> Drop for Batch<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if self.len > 0 {
            drop_all(self);
        }
    }
}

/// Out of line, because a node usually sends all objects.
#[cold]
fn drop_all<M: Object>(batch: &mut Batch<'_, M>) {
    batch.dropped.set(batch.dropped.get() + batch.len as u64);
    let objects: *mut [M] = &raw mut **batch;
    batch.len = 0; // First: should a drop panic, the others leak and none is dropped twice.
    // SAFETY: these are the objects that the batch owned and no longer counts.
    unsafe { objects.drop_in_place() };
}

/// The objects of a [`Batch`], one by one.
pub struct Drain<'b, M: Object>(Batch<'b, M>);

impl<M: Object> fmt::Debug for Drain<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("len", &self.0.len).finish_non_exhaustive()
    }
}

impl<M: Object> Iterator for Drain<'_, M> {
    type Item = M;

    #[inline]
    fn next(&mut self) -> Option<M> {
        self.0.take_array::<1>().map(|[object]| object)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len, Some(self.0.len))
    }
}

impl<M: Object> ExactSizeIterator for Drain<'_, M> {}

/// Memory for the objects that a source polls.
pub struct Room<'b, M: Object> {
    spare: &'b mut [MaybeUninit<M>],
    /// The first `len` slots are objects.
    len: usize,
    counters: &'b Counters,
}

impl<M: Object> fmt::Debug for Room<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("len", &self.len)
            .field("spare", &self.spare())
            .finish_non_exhaustive()
    }
}

/// Adds the objects made to the room's count, even after a panic.
struct Made<'r> {
    len: &'r mut usize,
    count: usize,
}

impl Drop for Made<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.len += self.count;
    }
}

impl<'b, M: Object> Room<'b, M> {
    #[inline]
    pub(crate) fn new(spare: &'b mut [MaybeUninit<M>], counters: &'b Counters) -> Self {
        Self { spare, len: 0, counters }
    }

    /// The number of objects that still fit.
    #[inline]
    #[must_use]
    pub fn spare(&self) -> usize {
        self.spare.len() - self.len
    }

    /// Appends an object.
    ///
    /// # Errors
    /// Gives it back if there is no room left.
    #[inline]
    pub fn push(&mut self, object: M) -> Result<(), M> {
        match self.spare.get_mut(self.len) {
            Some(slot) => {
                slot.write(object);
                self.len += 1;
                Ok(())
            }
            None => Err(object),
        }
    }

    /// Appends objects from an iterator until it ends or there is no room left. Objects without
    /// room stay in the iterator.
    #[inline]
    pub fn fill(&mut self, objects: &mut impl Iterator<Item = M>) {
        for slot in &mut self.spare[self.len..] {
            let Some(object) = objects.next() else { break };
            slot.write(object);
            self.len += 1;
        }
    }

    /// Appends `count` objects, or as many as there is room for, and returns the number: `make`
    /// gets their indexes, from 0 on. Faster than [`fill`](Self::fill), because the number is known
    /// before.
    #[inline]
    pub fn fill_with(&mut self, count: usize, mut make: impl FnMut(usize) -> M) -> usize {
        let count = count.min(self.spare());
        // If `make` panics, the objects made so far are dropped with the room.
        let mut made = Made { len: &mut self.len, count: 0 };
        let spare = &mut self.spare[*made.len..];
        for (at, slot) in spare.iter_mut().take(count).enumerate() {
            slot.write(make(at));
            made.count = at + 1;
        }
        count
    }

    /// The memory after the objects, for a function that writes there itself.
    #[inline]
    pub fn spare_mut(&mut self) -> &mut [MaybeUninit<M>] {
        &mut self.spare[self.len..]
    }

    /// Adds `n` to the number of objects.
    ///
    /// # Safety
    /// The first `n` slots of [`spare_mut`](Self::spare_mut) hold objects, which nobody else owns.
    #[inline]
    pub unsafe fn assume_pushed(&mut self, n: usize) {
        debug_assert!(n <= self.spare());
        self.len += n;
    }

    /// The batch of objects, to be sent on.
    #[inline]
    #[must_use = "objects that are not sent are dropped"]
    pub fn into_batch(self) -> Batch<'b, M> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the room is not used after this.
        unsafe { this.give_up() }
    }

    /// # Safety
    /// The room is not used afterwards.
    #[inline]
    unsafe fn give_up(&mut self) -> Batch<'b, M> {
        self.counters.objects.set(self.counters.objects.get() + self.len as u64);
        // SAFETY: the first `len` places were written; this room owned them. Its borrow of the memory,
        // for 'b, goes over to the batch.
        unsafe { Batch::new(self.spare.as_mut_ptr().cast(), self.len, &self.counters.dropped) }
    }
}

impl<'m> Room<'_, Mbuf<'m>> {
    /// Polls a receive queue once, for as many packets as there is room for. Returns the number
    /// received.
    #[inline]
    pub fn receive<'port: 'm>(&mut self, queue: &mut RxQueue<'port>) -> usize {
        let received = queue.receive_into(self.spare_mut());
        // SAFETY: so many packets lie there now, which nobody else owns.
        unsafe { self.assume_pushed(received) };
        received
    }
}

impl<M: Object> Drop for Room<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: a room that is being dropped is not used again.
        drop(unsafe { self.give_up() });
    }
}
