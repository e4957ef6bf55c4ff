// SPDX-License-Identifier: BSD-3-Clause
//! Where entries are looked for: eight places that share a cache line.

/// Places of a bucket.
pub(super) const PLACES: usize = 8;

/// What a place knows of its entry's hash; 0 if the place is empty.
pub(super) type Tag = u16;

/// Eight places. A tag that fits is no proof: the entry has the key.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Bucket {
    tags: [Tag; PLACES],
    entries: [u32; PLACES],
}

impl Bucket {
    /// The tag of a hash, never 0.
    #[inline(always)]
    pub(super) fn tag(hash: u32) -> Tag {
        ((hash >> 16) as Tag).max(1)
    }

    /// The difference between the numbers of the two buckets of a tag. It depends on the tag alone, so an entry can be moved from
    /// one to the other without a look at its key.
    #[inline(always)]
    pub(super) fn distance(tag: Tag) -> u32 {
        // Knuth's multiplier; the product's upper bits first, because the lower ones of many tags are 0.
        u32::from(tag).wrapping_mul(0x9e37_79b1).rotate_left(16) | 1
    }

    /// The places with this tag: bit `n` is place `n`.
    #[inline(always)]
    pub(super) fn with(&self, tag: Tag) -> u32 {
        let mut places = 0;
        for (place, other) in self.tags.iter().enumerate() {
            places |= u32::from(*other == tag) << place;
        }
        places
    }

    /// The entry at the first place with this tag, or some entry if there is none.
    #[inline(always)]
    pub(super) fn first_with(&self, tag: Tag) -> u32 {
        self.entries[self.with(tag).trailing_zeros() as usize % PLACES]
    }

    /// The entry at a place.
    #[inline]
    pub(super) fn entry(&self, place: usize) -> u32 {
        self.entries[place]
    }

    /// The tag at a place.
    #[inline]
    pub(super) fn tag_at(&self, place: usize) -> Tag {
        self.tags[place]
    }

    /// The entries with this tag, in order.
    #[inline]
    pub(super) fn entries_with(&self, tag: Tag) -> impl Iterator<Item = u32> {
        let mut places = self.with(tag);
        std::iter::from_fn(move || {
            let place = (places != 0).then(|| places.trailing_zeros())? as usize;
            places &= places - 1;
            Some(self.entries[place])
        })
    }

    /// The first empty place.
    #[inline]
    pub(super) fn room(&self) -> Option<usize> {
        let empty = self.with(0);
        (empty != 0).then(|| empty.trailing_zeros() as usize)
    }

    /// Fills a place.
    #[inline]
    pub(super) fn put(&mut self, place: usize, tag: Tag, entry: u32) {
        self.tags[place] = tag;
        self.entries[place] = entry;
    }

    /// Empties the place of an entry; returns false if it is not here.
    #[inline]
    pub(super) fn take(&mut self, tag: Tag, entry: u32) -> bool {
        let mut places = self.with(tag);
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            if self.entries[place] == entry {
                self.tags[place] = 0;
                return true;
            }
            places &= places - 1;
        }
        false
    }
}

const _: () = assert!(size_of::<Bucket>() == 64);
