// SPDX-License-Identifier: BSD-3-Clause
//! Cells: one combination of shape, passing, work, statistics and batch, in which arms are compared.

use std::fmt;

use crate::packet::{HASH5, LINE, NOTHING};
use crate::shape::{self, Shape};

/// Ways to pass objects on, with their numbers on the C side.
pub const WAYS: [&str; 13] = [
    "swap",
    "copy1",
    "copy4",
    "copy8",
    "copy16",
    "copy32",
    "copy64",
    "copy128",
    "copy256",
    "assign1",
    "assign2",
    "assign4",
    "speculate",
];
/// Kinds of work, by their numbers.
pub const WORKS: [&str; 3] = ["none", "line", "hash5"];
/// The most objects of one source.
pub const MOST: u16 = 512;

/// The numbers of [`WAYS`].
pub const SWAP: u8 = 0;
pub const COPY1: u8 = 1;
pub const COPY8: u8 = 3;
pub const COPY256: u8 = 8;
pub const ASSIGN1: u8 = 9;
pub const ASSIGN2: u8 = 10;
pub const ASSIGN4: u8 = 11;
pub const SPECULATE: u8 = 12;

/// SHAPE/PASS/WORK/STATS/BATCH.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    pub shape: Shape,
    pub way: u8,
    pub work: u8,
    pub stats: bool,
    pub batch: u16,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = if self.stats { "stats" } else { "nostats" };
        let (way, work) = (WAYS[usize::from(self.way)], WORKS[usize::from(self.work)]);
        write!(f, "{}/{way}/{work}/{stats}/{}", self.shape.name(), self.batch)
    }
}

/// All cells, varying one factor at a time from chain4/swap/hash5/nostats/256.
pub fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |shape, way, work, stats, batch| {
        let cell = Cell { shape, way, work, stats, batch };
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    };
    let all_works = [NOTHING, LINE, HASH5];
    for way in 0..WAYS.len() as u8 {
        for work in all_works {
            for stats in [false, true] {
                add(Shape::Chain4, way, work, stats, 256);
            }
        }
    }
    for batch in [1, 8, 16, 32, 64, 128, 512] {
        for work in [NOTHING, HASH5] {
            add(Shape::Chain4, SWAP, work, false, batch);
        }
    }
    for shape in [Shape::Chain1, Shape::Split2, Shape::Split4, Shape::Split8] {
        for way in [SWAP, COPY8, ASSIGN1, SPECULATE] {
            for work in [NOTHING, HASH5] {
                add(shape, way, work, false, 256);
            }
        }
    }
    for shape in shape::SEVEN {
        for work in all_works {
            for stats in [false, true] {
                add(shape, SWAP, work, stats, 256);
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_point_is_among_them_and_none_is_twice() {
        let names: Vec<String> = all().iter().map(Cell::to_string).collect();
        assert!(names.contains(&"chain4/swap/hash5/nostats/256".to_owned()));
        let mut once = names.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), names.len());
        assert_eq!(WAYS[usize::from(SPECULATE)], "speculate");
        assert_eq!((WAYS[usize::from(COPY1)], WAYS[usize::from(COPY256)]), ("copy1", "copy256"));
        assert_eq!(WAYS[usize::from(ASSIGN4)], "assign4");
    }
}
