// SPDX-License-Identifier: BSD-3-Clause
//! The object that travels through a graph, and the work that nodes do on it.

/// An object, laid out like `struct packet` in C.
#[repr(C, align(64))]
#[derive(Clone, Default)]
pub struct Packet {
    addresses: u64,
    ports: u64,
    hash: u32,
    touched: u32,
    /// Its index in its source's batch.
    pub lane: u32,
}

/// Nodes that touch no object.
pub const NOTHING: u8 = 0;
/// Nodes that write one cache line of each.
pub const LINE: u8 = 1;
/// Nodes that hash its five-tuple.
pub const HASH5: u8 = 2;

impl Packet {
    /// Makes the object with this index of a batch.
    pub fn new(lane: u32) -> Self {
        let lane64 = u64::from(lane);
        Self { addresses: lane64 * 77 + 5, ports: lane64 * 13 + 9, lane, ..Self::default() }
    }

    /// Sets it back to its state before any node saw it.
    pub fn reset(&mut self) {
        (self.hash, self.touched) = (0, 0);
    }

    /// The result that nodes have left in it.
    pub fn left(&self) -> (u32, u32) {
        (self.hash, self.touched)
    }

    /// Does the work of one node.
    #[inline(always)]
    pub fn work<const WORK: u8>(&mut self, seed: u64) {
        match WORK {
            LINE => self.touched = self.touched.wrapping_add(1),
            HASH5 => self.hash = self.hash.wrapping_add(self.hash5(seed)),
            _ => {}
        }
    }

    #[inline(always)]
    fn hash5(&self, seed: u64) -> u32 {
        let half = fold(self.addresses ^ 0xa076_1d64_78bd_642f, self.ports ^ seed);
        fold(half, 0xe703_7ed1_a0b4_28db) as u32
    }
}

/// Multiplies to 128 bits and folds the halves.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The seed of the node at this place of a shape.
pub const fn seed(node: usize) -> u64 {
    (node as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
