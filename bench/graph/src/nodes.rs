// SPDX-License-Identifier: BSD-3-Clause
//! The nodes in Rust, one type for each way to pass objects on and each kind of work.

use std::mem::ManuallyDrop;

use graph::{Batch, EachNode, Next, Node, Nowhere, Outlet, Room, Source};

use crate::cell::{ASSIGN1, ASSIGN2, ASSIGN4, COPY1, COPY256, SPECULATE};
use crate::packet::{NOTHING, Packet};
use crate::shape::Split;

/// The object that nodes pass on.
pub type Object = &'static mut Packet;

graph::edges! { pub enum One { A } }
graph::edges! { pub enum Two { A, B } }
graph::edges! { pub enum Four { A, B, C, D } }
graph::edges! { pub enum Eight { A, B, C, D, E, F, G, H } }

/// An edge, by its number.
pub trait Ways: Next {
    const ALL: &'static [Self];

    /// Returns the edge with this number. A number without an edge ends the program; C would follow it anywhere.
    fn at(edge: u32) -> Self;
}

/// Converts by a `match`, which the compiler reduces to the number itself. A table would be read for each object.
macro_rules! ways {
    ($($edges:ident { $($number:literal => $edge:ident),+ })+) => {
        $(impl Ways for $edges {
            const ALL: &'static [Self] = &[$(Self::$edge),+];

            #[inline(always)]
            fn at(edge: u32) -> Self {
                match edge {
                    $($number => Self::$edge,)+
                    _ => std::process::abort(),
                }
            }
        })+
    };
}

ways! {
    One { 0 => A }
    Two { 0 => A, 1 => B }
    Four { 0 => A, 1 => B, 2 => C, 3 => D }
    Eight { 0 => A, 1 => B, 2 => C, 3 => D, 4 => E, 5 => F, 6 => G, 7 => H }
}

/// Hands out the same objects in every walk.
pub struct Make {
    first: *mut Packet,
    batch: usize,
}

// SAFETY: the packets are used by one graph at a time, on the thread that walks it.
unsafe impl Send for Make {}

impl Make {
    /// # Safety
    /// That many packets lie there for as long as the source lives. Only its graph uses them, and its sinks forget
    /// them before the source is polled again.
    pub unsafe fn new(first: *mut Packet, batch: usize) -> Self {
        Self { first, batch }
    }
}

impl Source<Object> for Make {
    type Next = One;

    // Inlined, because the C node's function is one piece, too.
    #[inline(always)]
    fn poll<O: Outlet<Object, One>>(&mut self, mut room: Room<'_, Object>, out: &mut O) {
        let first = self.first;
        // SAFETY: the contract of `new`; each packet is handed out once in a walk.
        room.fill_with(self.batch, |at| unsafe { &mut *first.add(at) });
        out.forward(One::A, room.into_batch());
    }
}

/// Counts objects and forgets them.
#[derive(Default)]
pub struct Sink(pub u64);

impl Node<Object> for Sink {
    type Next = Nowhere;

    #[inline]
    fn process<O: Outlet<Object, Nowhere>>(&mut self, batch: Batch<'_, Object>, _: &mut O) {
        self.0 += batch.len() as u64;
        let _ = ManuallyDrop::new(batch);
    }
}

/// A worker that gets whole batches.
pub struct Worker<X, const WAY: u8, const WORK: u8> {
    seed: u64,
    split: Split,
    edges: std::marker::PhantomData<fn() -> X>,
}

impl<X, const WAY: u8, const WORK: u8> Worker<X, WAY, WORK> {
    pub fn new(seed: u64, split: Split) -> Self {
        Self { seed, split, edges: std::marker::PhantomData }
    }

    #[inline(always)]
    fn work_on(&self, batch: &mut Batch<'_, Object>) {
        if WORK != NOTHING {
            for packet in batch.iter_mut() {
                packet.work::<WORK>(self.seed);
            }
        }
    }

    /// Sends `K` at a time.
    #[inline(always)]
    fn assign<const K: usize, O: Outlet<Object, X>>(
        &self,
        next: X,
        mut batch: Batch<'_, Object>,
        out: &mut O,
    ) where
        X: Ways,
    {
        if K > 1 {
            while let Some(mut some) = batch.take_array::<K>() {
                some.iter_mut().for_each(|packet| packet.work::<WORK>(self.seed));
                out.send_array(next, some);
            }
        }
        for packet in batch.drain() {
            packet.work::<WORK>(self.seed);
            out.send(next, packet);
        }
    }

    #[inline(always)]
    fn copy<const K: usize, O: Outlet<Object, X>>(
        &self,
        next: X,
        mut batch: Batch<'_, Object>,
        out: &mut O,
    ) where
        X: Ways,
    {
        self.work_on(&mut batch);
        while out.send_front::<K>(next, &mut batch) {}
        if !batch.is_empty() {
            out.send_batch(next, batch);
        }
    }

    /// Sends all of these to one edge.
    #[inline(always)]
    fn to<O: Outlet<Object, X>>(&self, next: X, mut batch: Batch<'_, Object>, out: &mut O)
    where
        X: Ways,
    {
        match WAY {
            COPY1..=COPY256 => {
                match 1_usize << [0, 2, 3, 4, 5, 6, 7, 8][usize::from(WAY - COPY1)] {
                    1 => self.copy::<1, O>(next, batch, out),
                    4 => self.copy::<4, O>(next, batch, out),
                    8 => self.copy::<8, O>(next, batch, out),
                    16 => self.copy::<16, O>(next, batch, out),
                    32 => self.copy::<32, O>(next, batch, out),
                    64 => self.copy::<64, O>(next, batch, out),
                    128 => self.copy::<128, O>(next, batch, out),
                    _ => self.copy::<256, O>(next, batch, out),
                }
            }
            ASSIGN1 => self.assign::<1, O>(next, batch, out),
            ASSIGN2 => self.assign::<2, O>(next, batch, out),
            ASSIGN4 => self.assign::<4, O>(next, batch, out),
            _ => {
                self.work_on(&mut batch);
                out.forward(next, batch);
            }
        }
    }
}

impl<X: Ways, const WAY: u8, const WORK: u8> Node<Object> for Worker<X, WAY, WORK> {
    type Next = X;

    #[inline(always)]
    fn process<O: Outlet<Object, X>>(&mut self, mut batch: Batch<'_, Object>, out: &mut O) {
        if WAY == SPECULATE {
            let (seed, Split { shift, mask }) = (self.seed, self.split);
            out.sort(batch, |packet| {
                packet.work::<WORK>(seed);
                X::at(packet.lane >> shift & u32::from(mask))
            });
        } else if X::ALL.len() == 1 {
            self.to(X::ALL[0], batch, out);
        } else {
            // Each edge gets an equal run of neighbouring objects.
            let (all, mut sent) = (batch.len(), 0);
            for (edge, next) in (1..).zip(X::ALL) {
                let part = all * edge / X::ALL.len() - sent;
                sent += part;
                let part = batch.split_front(part);
                if !part.is_empty() {
                    self.to(*next, part, out);
                }
            }
        }
    }
}

/// A worker that gets one object at a time. `LOOK`: it reads the object's lane even where there is only one edge.
pub struct Each<X, const LOOK: bool, const WORK: u8> {
    seed: u64,
    split: Split,
    edges: std::marker::PhantomData<fn() -> X>,
}

impl<X, const LOOK: bool, const WORK: u8> Each<X, LOOK, WORK> {
    pub fn new(seed: u64, split: Split) -> Self {
        Self { seed, split, edges: std::marker::PhantomData }
    }
}

impl<X: Ways, const LOOK: bool, const WORK: u8> EachNode<Object> for Each<X, LOOK, WORK> {
    type Next = X;

    #[inline(always)]
    fn each(&mut self, packet: &mut Object) -> X {
        packet.work::<WORK>(self.seed);
        if X::ALL.len() == 1 && !LOOK {
            return X::ALL[0];
        }
        X::at(packet.lane >> self.split.shift & u32::from(self.split.mask))
    }
}
