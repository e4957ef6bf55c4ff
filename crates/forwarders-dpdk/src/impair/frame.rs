// SPDX-License-Identifier: BSD-3-Clause
//! The operations of the effects on a frame. A trait, so that they can be tested on plain bytes.

use dpdk::{Mbuf, Mempool};

/// A frame that can be copied and damaged.
pub(super) trait Frame: Sized {
    /// Where copies come from.
    type Spare;

    /// A copy with bytes of its own; `None` when there is no room for one.
    fn copy(&self, spare: &Self::Spare) -> Option<Self>;

    /// Flips the lowest bit of the byte at `offset`, counted from the end if negative (-1 is the
    /// last).
    fn flip(self, offset: i32, spare: &Self::Spare) -> Flipped<Self>;
}

/// The result of corrupting a frame.
pub(super) enum Flipped<F> {
    /// One bit was changed.
    Done(F),
    /// It has no such byte, and is unchanged.
    TooShort(F),
    /// Its bytes have other owners, and there was no room for a copy: it was dropped.
    Lost,
}

/// The index of the byte at `offset` in `len` bytes.
pub(super) fn place(offset: i32, len: usize) -> Option<usize> {
    let back = offset.unsigned_abs() as usize;
    let place = if offset < 0 { len.checked_sub(back)? } else { back };
    (place < len).then_some(place)
}

impl<'m> Frame for Mbuf<'m> {
    type Spare = Mempool<'m>;

    fn copy(&self, spare: &Mempool<'m>) -> Option<Self> {
        self.copy_into(spare).ok()
    }

    fn flip(mut self, offset: i32, spare: &Mempool<'m>) -> Flipped<Self> {
        // The sum of the segments' lengths: a driver may report a longer packet.
        let len = self.segment_data().map(<[u8]>::len).sum();
        let Some(place) = place(offset, len) else { return Flipped::TooShort(self) };
        if flip_at(&mut self, place) {
            return Flipped::Done(self);
        }
        let Ok(mut copy) = self.copy_into(spare) else { return Flipped::Lost };
        if flip_at(&mut copy, place) { Flipped::Done(copy) } else { Flipped::Lost }
    }
}

/// Flips a bit of the packet's byte at `place`; `false` if that byte has other owners.
fn flip_at(mbuf: &mut Mbuf<'_>, mut place: usize) -> bool {
    let lengths = mbuf.segment_data().map(<[u8]>::len);
    let mut segment = 0;
    for len in lengths {
        if place < len {
            break;
        }
        place -= len;
        segment += 1;
    }
    match mbuf.segment_data_mut().nth(segment).flatten().and_then(|bytes| bytes.get_mut(place)) {
        Some(byte) => {
            *byte ^= 1;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn offsets_count_from_either_end() {
        assert_eq!(place(0, 4), Some(0));
        assert_eq!(place(3, 4), Some(3));
        assert_eq!(place(4, 4), None);
        assert_eq!(place(-1, 4), Some(3));
        assert_eq!(place(-4, 4), Some(0));
        assert_eq!(place(-5, 4), None);
        assert_eq!(place(0, 0), None);
        assert_eq!(place(i32::MIN, 4), None);
    }
}
