// SPDX-License-Identifier: BSD-3-Clause
//! An arm: a cell done in one of the ways that are compared. This is the work that is timed.

use std::ptr::NonNull;

use crate::cell::{Cell, MOST};
use crate::nodes::Make;
use crate::packet::{Packet, seed};
use crate::shape::{Place, Split};
use crate::topologies::{Places, Worker};

/// Walks a graph.
pub trait Arm {
    /// Walks it this many times.
    fn walk(&mut self, walks: u64);
    /// The number of objects that have reached a sink, which grows while the arm is walked.
    fn sunk(&mut self) -> u64;
}

/// The packets of all sources. One arm uses them at a time.
pub struct Packets(NonNull<Packet>, usize);

impl Packets {
    /// Enough for the shape with the most sources.
    pub fn new() -> Self {
        const SOURCES: u32 = 4;
        let all: Vec<Packet> =
            (0..SOURCES * u32::from(MOST)).map(|n| Packet::new(n % u32::from(MOST))).collect();
        let all = all.leak();
        Self(NonNull::from(&mut *all).cast(), all.len())
    }

    /// The first packets of a source.
    pub fn of(&self, source: usize) -> *mut Packet {
        assert!((source + 1) * usize::from(MOST) <= self.1, "no packets for source {source}");
        // SAFETY: inside, as just seen.
        unsafe { self.0.add(source * usize::from(MOST)).as_ptr() }
    }

    /// All packets; only while no arm uses them.
    fn all(&mut self) -> &mut [Packet] {
        // SAFETY: so many were made, and arms are walked only between two borrows of this.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), self.1) }
    }

    /// Sets them back to their state before any node saw them.
    pub fn reset(&mut self) {
        self.all().iter_mut().for_each(Packet::reset);
    }

    /// A digest (FNV-1a) of what the nodes have left in them.
    pub fn digest(&mut self) -> u64 {
        self.all().iter().fold(0xcbf2_9ce4_8422_2325, |digest, packet| {
            let (hash, touched) = packet.left();
            [hash, touched].iter().fold(digest, |digest, word| {
                (digest ^ u64::from(*word)).wrapping_mul(0x100_0000_01b3)
            })
        })
    }
}

/// Makes nodes for a cell.
pub struct Parts<'p> {
    pub cell: Cell,
    pub places: Vec<Place>,
    pub packets: &'p Packets,
}

impl<'p> Parts<'p> {
    pub fn new(cell: Cell, packets: &'p Packets) -> Self {
        Self { cell, places: cell.shape.places(), packets }
    }

    /// How the node at this place splits its batches.
    pub fn split(&self, place: usize) -> Split {
        Split::of(self.cell.batch, &self.places[place])
    }
}

impl Places for Parts<'_> {
    fn source(&self, place: usize) -> Make {
        // SAFETY: packets live as long as the process, the arm that this is for is the only one meanwhile, and
        // sinks forget them.
        unsafe { Make::new(self.packets.of(place), self.cell.batch.into()) }
    }

    fn worker<W: Worker>(&self, place: usize) -> W {
        W::make(seed(place), self.split(place))
    }
}
