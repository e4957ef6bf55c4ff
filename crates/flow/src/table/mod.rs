// SPDX-License-Identifier: BSD-3-Clause
//! Flows by key: found in bulk, with the time at which each was last seen, and aged a bounded part at a time.
//!
//! # Keys and values
//! A key is plain data without padding, as `zerocopy` knows it: integers, arrays of them, or a struct with
//! `#[derive(IntoBytes, Immutable)]`. A value is anything. Both stay where they are until the flow is removed, so a [`Slot`] says
//! where, and may be the index of counters that the program keeps elsewhere.
//!
//! # Threads
//! A table has one owner: there are no locks. Each lcore has a table of its own, because RSS brings the packets of a flow to one
//! lcore.
//!
//! # Time
//! Times are `u32` numbers of the program's choice, such as `(tsc::now() >> 20) as u32`. They may wrap around: a flow's age is
//! right as long as it is less than 2^32.
//!
//! # How it works
//! Each flow is in one of two buckets of eight places, which its hash names (cuckoo hashing with partial keys: Fan, Andersen,
//! Kaminsky, "MemC3", NSDI 2013). A place has 16 bits of the hash and the number of an entry. A lookup in bulk reads the buckets of
//! all keys before it compares any key, so that the processor waits for many cache lines at once.
//!
//! ```
//! use flow::FlowTable;
//!
//! /// Addresses, ports and protocol.
//! type Key = [u32; 4];
//!
//! let mut sessions: FlowTable<Key, u64> = FlowTable::new(100_000)?;
//! let keys = [[1, 2, 80, 6], [3, 4, 53, 17]];
//! sessions.insert(keys[0], 0, 1000)?;
//!
//! // A burst at time 1010: count bytes of flows that are known.
//! let mut found = [flow::Found::default(); 2];
//! sessions.find_bulk(&keys, &mut found);
//! for found in found {
//!     if let Some(bytes) = found.slot().and_then(|slot| sessions.see(slot, 1010)) {
//!         *bytes += 64;
//!     }
//! }
//! assert_eq!(sessions.get(&keys[0]), Some(&64));
//!
//! // Between bursts: who was not seen for 60, among the next 1024 of 100,000 entries.
//! let gone = sessions.expire(1070, 60, 1024, |key, bytes| println!("{key:?}: {bytes} bytes"));
//! assert_eq!((gone, sessions.len()), (1, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bucket;
mod room;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU32;

use zerocopy::{Immutable, IntoBytes};

use crate::hash::Seed;
use bucket::{Bucket, PLACES};

/// The most flows of a table.
pub const MOST: usize = 1 << 28;

/// Where a flow is in its table. It is the flow's until the flow is removed; then it may become another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u32);

impl Slot {
    /// A number below the table's capacity.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The result of a lookup: where the flow is, and the hash of its key, for [`FlowTable::insert_found`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// `NOWHERE` if it was not found.
    slot: u32,
    hash: u32,
}

/// No table has so many flows.
const NOWHERE: u32 = u32::MAX;

impl Default for Found {
    /// Nothing was found.
    fn default() -> Self {
        Self { slot: NOWHERE, hash: 0 }
    }
}

impl Found {
    /// Where the flow is; `None` if the table does not have it.
    #[inline]
    #[must_use]
    pub fn slot(self) -> Option<Slot> {
        (self.slot != NOWHERE).then_some(Slot(self.slot))
    }
}

/// A table has no room for so many flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// 0, or more than [`MOST`].
    #[error("a table has room for 1 to {MOST} flows, not {0}")]
    Range(usize),
    /// There is not so much memory.
    #[error("no memory for a table of {0} flows")]
    Memory(usize),
}

/// The table has no room for a flow. The value comes back.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the table is full: let flows expire, or make it larger")]
pub struct Full<V>(pub V);

impl<V> fmt::Debug for Full<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").finish_non_exhaustive()
    }
}

struct Entry<K, V> {
    key: K,
    /// Never 0, so that an empty place needs no byte more.
    hash: NonZeroU32,
    seen: u32,
    value: V,
}

/// A table of flows. See the [module](self).
pub struct FlowTable<K, V> {
    /// A power of two.
    buckets: Box<[Bucket]>,
    entries: Box<[Option<Entry<K, V>>]>,
    /// Entries without a flow.
    free: Vec<u32>,
    seed: Seed,
    /// The entry that `expire` looks at next.
    cursor: usize,
}

impl<K, V> fmt::Debug for FlowTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowTable")
            .field("len", &self.len())
            .field("capacity", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// Returns a slice of this length.
fn filled<T>(len: usize, mut make: impl FnMut() -> T) -> Option<Box<[T]>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(len).ok()?;
    memory.resize_with(len, &mut make);
    Some(memory.into())
}

impl<K, V> FlowTable<K, V> {
    /// An empty table for `capacity` flows, with a random seed. All its memory is allocated, and written once, here.
    ///
    /// # Errors
    /// See [`CapacityError`].
    pub fn new(capacity: usize) -> Result<Self, CapacityError> {
        Self::with_seed(capacity, Seed::random())
    }

    /// [`new`](Self::new), with this seed.
    ///
    /// # Errors
    /// See [`CapacityError`].
    pub fn with_seed(capacity: usize, seed: Seed) -> Result<Self, CapacityError> {
        if !(1..=MOST).contains(&capacity) {
            return Err(CapacityError::Range(capacity));
        }
        // Three quarters of the places at most: nearly all flows are then in the first of their two buckets.
        let buckets = (capacity * 4).div_ceil(PLACES * 3).next_power_of_two();
        let memory = || {
            let mut free = Vec::new();
            free.try_reserve_exact(capacity).ok()?;
            free.extend((0..capacity as u32).rev());
            Some((filled(buckets, Bucket::default)?, filled(capacity, || None)?, free))
        };
        let (buckets, entries, free) = memory().ok_or(CapacityError::Memory(capacity))?;
        Ok(Self { buckets, entries, free, seed, cursor: 0 })
    }

    /// The number of flows in the table.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns true if it is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of flows that it has room for.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// A flow by its slot; `None` if there is none any more.
    #[inline]
    #[must_use]
    pub fn at(&self, slot: Slot) -> Option<(&K, &V)> {
        let entry = self.entries.get(slot.index())?.as_ref()?;
        Some((&entry.key, &entry.value))
    }

    /// The value of a flow by its slot, which is seen now; `None` if there is none any more.
    #[inline(always)]
    pub fn see(&mut self, slot: Slot, now: u32) -> Option<&mut V> {
        let entry = self.entries.get_mut(slot.index())?.as_mut()?;
        entry.seen = now;
        Some(&mut entry.value)
    }

    /// Removes the flow of a slot.
    pub fn remove_at(&mut self, slot: Slot) -> Option<(K, V)> {
        let entry = self.entries.get_mut(slot.index())?.take()?;
        let hash = entry.hash.get();
        let (tag, [first, second]) = (Bucket::tag(hash), self.places(hash));
        let taken = self.buckets[first].take(tag, slot.0) || self.buckets[second].take(tag, slot.0);
        debug_assert!(taken, "an entry is in one of its two buckets");
        self.free.push(slot.0);
        Some((entry.key, entry.value))
    }

    /// Looks at the next `look_at` entries, in a circle, and removes the flows that were last seen `idle` or more before `now`.
    /// `gone` gets each. Returns their number. A call's time depends on `look_at` and not on the size of the table: call it between
    /// bursts.
    pub fn expire(
        &mut self,
        now: u32,
        idle: u32,
        look_at: usize,
        mut gone: impl FnMut(K, V),
    ) -> usize {
        let before = self.free.len();
        for _ in 0..look_at.min(self.entries.len()) {
            // No remainder, which is a division.
            let slot = if self.cursor < self.entries.len() { self.cursor } else { 0 };
            self.cursor = slot + 1;
            let is_idle = |entry: &Entry<K, V>| now.wrapping_sub(entry.seen) >= idle;
            if !self.entries[slot].as_ref().is_some_and(is_idle) {
                continue;
            }
            if let Some((key, value)) = self.remove_at(Slot(slot as u32)) {
                gone(key, value);
            }
        }
        self.free.len() - before
    }

    /// Removes the flows for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        for slot in 0..self.entries.len() {
            if self.entries[slot].as_mut().is_some_and(|entry| !keep(&entry.key, &mut entry.value))
            {
                self.remove_at(Slot(slot as u32));
            }
        }
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// The flows, in no order: where each is, its key and its value.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &K, &V)> {
        self.entries.iter().enumerate().filter_map(|(slot, entry)| {
            let entry = entry.as_ref()?;
            Some((Slot(slot as u32), &entry.key, &entry.value))
        })
    }

    /// The numbers of the two buckets of a hash.
    #[inline(always)]
    fn places(&self, hash: u32) -> [usize; 2] {
        let other = hash ^ Bucket::distance(Bucket::tag(hash));
        [hash, other].map(|number| number as usize & (self.buckets.len() - 1))
    }
}

impl<K: IntoBytes + Immutable, V> FlowTable<K, V> {
    #[inline(always)]
    fn hash(&self, key: &K) -> u32 {
        // Never 0, which an entry cannot keep: its buckets are found again by the hash that it keeps.
        (self.seed.hash(key) as u32).max(1)
    }

    /// Returns true if an entry is the flow of this key.
    #[inline(always)]
    fn is(&self, entry: u32, key: &K) -> bool {
        match self.entries.get(entry as usize) {
            Some(Some(entry)) => entry.key.as_bytes() == key.as_bytes(),
            _ => false,
        }
    }

    /// Where a flow is.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &K) -> Option<Slot> {
        self.find_hashed(key, self.hash(key))
    }

    fn find_hashed(&self, key: &K, hash: u32) -> Option<Slot> {
        let tag = Bucket::tag(hash);
        self.places(hash)
            .into_iter()
            .flat_map(|bucket| self.buckets[bucket].entries_with(tag))
            .find(|entry| self.is(*entry, key))
            .map(Slot)
    }

    /// Finds the flows of many keys: several times faster than [`find`](Self::find) if the table is larger than the cache. There is
    /// a result for each key, in order; the lengths are equal.
    ///
    /// # Panics
    /// If they are not.
    #[inline]
    pub fn find_bulk(&self, keys: &[K], found: &mut [Found]) {
        assert_eq!(keys.len(), found.len(), "as many results as keys");
        // Two loops without branches that depend on what is read, so that reads of many keys are under way together.
        for (key, found) in keys.iter().zip(found.iter_mut()) {
            let hash = self.hash(key);
            let [first, _] = self.places(hash);
            *found = Found { slot: self.buckets[first].first_with(Bucket::tag(hash)), hash };
        }
        for (key, found) in keys.iter().zip(found) {
            if !self.is(found.slot, key) {
                found.slot = self.further(key, found.hash);
            }
        }
    }

    /// Where a flow is that is not at the first place with its tag.
    #[inline(never)]
    fn further(&self, key: &K, hash: u32) -> u32 {
        self.find_hashed(key, hash).map_or(NOWHERE, |slot| slot.0)
    }

    /// The value of a flow.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        Some(self.at(self.find(key)?)?.1)
    }

    /// The value of a flow, to be changed. The time at which it was seen stays; [`see`](Self::see) sets it.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let slot = self.find(key)?;
        Some(&mut self.entries.get_mut(slot.index())?.as_mut()?.value)
    }

    /// Adds a flow, seen now, or gives it another value. Returns where it is.
    ///
    /// # Errors
    /// [`Full`], with the value. Nothing is changed.
    pub fn insert(&mut self, key: K, value: V, now: u32) -> Result<Slot, Full<V>> {
        let hash = self.hash(&key);
        self.insert_hashed(key, hash, value, now)
    }

    /// [`insert`](Self::insert) of a key that was looked up, without computing its hash again.
    ///
    /// # Errors
    /// [`Full`], with the value. Nothing is changed.
    pub fn insert_found(
        &mut self,
        key: K,
        found: Found,
        value: V,
        now: u32,
    ) -> Result<Slot, Full<V>> {
        debug_assert_eq!(found.hash, self.hash(&key), "the result of another key");
        self.insert_hashed(key, found.hash, value, now)
    }

    fn insert_hashed(&mut self, key: K, hash: u32, value: V, now: u32) -> Result<Slot, Full<V>> {
        // It may have been added after it was looked up: by an earlier packet of the burst.
        if let Some(slot) = self.find_hashed(&key, hash) {
            if let Some(entry) = &mut self.entries[slot.index()] {
                (entry.value, entry.seen) = (value, now);
            }
            return Ok(slot);
        }
        let places = self.places(hash);
        let Some(&slot) = self.free.last() else { return Err(Full(value)) };
        let Some((bucket, place)) = self.make_room(places) else { return Err(Full(value)) };
        self.free.pop();
        self.buckets[bucket].put(place, Bucket::tag(hash), slot);
        let hash = NonZeroU32::new(hash).unwrap_or(NonZeroU32::MIN);
        self.entries[slot as usize] = Some(Entry { key, hash, seen: now, value });
        Ok(Slot(slot))
    }

    /// Removes a flow; returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let slot = self.find(key)?;
        Some(self.remove_at(slot)?.1)
    }
}
