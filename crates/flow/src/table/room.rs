// SPDX-License-Identifier: BSD-3-Clause
//! Makes room in full buckets: each of their entries may move to its other bucket.

use super::FlowTable;
use super::bucket::{Bucket, PLACES};

/// The most buckets that are looked at for one insertion, which bounds its time.
const LOOKED_AT: usize = 256;

/// A bucket that is looked at. An entry of bucket `from` of the search, at `place`, can move here.
#[derive(Clone, Copy)]
struct Step {
    bucket: u32,
    from: u16,
    place: u8,
}

/// The `from` of the buckets that a search begins with.
const BEGIN: u16 = u16::MAX;

impl<K, V> FlowTable<K, V> {
    /// Returns an empty place in one of two buckets, the first if it has one. If neither has, entries are moved: the shortest chain
    /// of moves is searched breadth first. `None`, and nothing changed, if none is found in [`LOOKED_AT`] buckets.
    #[inline]
    pub(super) fn make_room(&mut self, buckets: [usize; 2]) -> Option<(usize, usize)> {
        let empty = buckets.into_iter().find_map(|b| Some((b, self.buckets[b].room()?)));
        empty.or_else(|| self.by_moving(buckets))
    }

    #[cold]
    fn by_moving(&mut self, buckets: [usize; 2]) -> Option<(usize, usize)> {
        let mask = self.buckets.len() - 1;
        let mut steps = [Step { bucket: 0, from: BEGIN, place: 0 }; LOOKED_AT];
        for (step, bucket) in steps.iter_mut().zip(buckets) {
            step.bucket = bucket as u32;
        }
        let mut len = buckets.len();
        let mut next = 0;
        while next < len {
            let bucket = steps[next].bucket as usize;
            if let Some(place) = self.buckets[bucket].room() {
                return Some(self.moved(&steps, next, place));
            }
            for place in 0..PLACES {
                if len == LOOKED_AT {
                    break;
                }
                let other = bucket ^ Bucket::distance(self.buckets[bucket].tag_at(place)) as usize;
                let other = (other & mask) as u32;
                steps[len] = Step { bucket: other, from: next as u16, place: place as u8 };
                len += 1;
            }
            next += 1;
        }
        None
    }

    /// Moves the entries of a chain, from its end with an empty place; returns the place that is then empty at its begin. Breadth
    /// first finds the shortest chain, in which no bucket is twice.
    fn moved(&mut self, steps: &[Step; LOOKED_AT], mut at: usize, place: usize) -> (usize, usize) {
        let (mut bucket, mut place) = (steps[at].bucket as usize, place);
        while steps[at].from != BEGIN {
            let (from, of) = (usize::from(steps[at].from), usize::from(steps[at].place));
            let source = steps[from].bucket as usize;
            let (tag, entry) = (self.buckets[source].tag_at(of), self.buckets[source].entry(of));
            self.buckets[bucket].put(place, tag, entry);
            (bucket, place, at) = (source, of, from);
        }
        (bucket, place)
    }
}
