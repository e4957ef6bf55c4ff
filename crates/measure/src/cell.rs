// SPDX-License-Identifier: BSD-3-Clause
//! The number that all statistics here are made of.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number with one writer and any number of readers. Adding is only a load and a store.
///
/// ```
/// let frames = measure::Cell::default();
/// frames.add(32);
/// assert_eq!(frames.get(), 32);
/// ```
#[derive(Debug, Default)]
pub struct Cell(AtomicU64);

impl Cell {
    /// Makes a cell that holds `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Cell(AtomicU64::new(value))
    }

    /// The current number.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Sets the number. Only the writer may call this.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds to the number, modulo 2^64. Only the writer may call this.
    #[inline(always)]
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }
}
