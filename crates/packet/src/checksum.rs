// SPDX-License-Identifier: BSD-3-Clause
//! The internet checksum (RFC 1071), whole and incremental (RFC 1624).
//!
//! A *sum* is the plain sum of big-endian 16-bit words, not yet folded; sums of parts that start
//! at even offsets add up. A *checksum* is the folded sum's complement, as headers carry it. A
//! [`Change`] is what a checksum has to be told of a field that it covers.

/// The sum of the big-endian 16-bit words of `bytes`; an odd last byte is the upper half of a word.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(2);
    let mut sum: u64 =
        chunks.by_ref().map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    if let [last] = chunks.remainder() {
        sum += u64::from(*last) << 8;
    }
    sum
}

/// `fold(sum(bytes))`, four bytes at a time and as they lie in memory: the sum of swapped words is the swapped sum (RFC 1071, section
/// 2 B), and 2^16 is 1 modulo 2^16 - 1. The sum of less than 16 GiB fits 64 bits.
#[inline]
fn folded(bytes: &[u8]) -> u16 {
    let mut words = bytes.chunks_exact(4);
    let mut sum: u64 = words
        .by_ref()
        .map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]])))
        .sum();
    let mut halves = words.remainder().chunks_exact(2);
    if let Some(half) = halves.next() {
        sum += u64::from(u16::from_ne_bytes([half[0], half[1]]));
    }
    if let [last] = halves.remainder() {
        sum += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    u16::from_be_bytes(fold(sum).to_ne_bytes())
}

/// Folds a sum into 16 bits with end-around carry.
#[inline]
pub const fn fold(sum: u64) -> u16 {
    // Added to itself with its halves swapped, a number has the sum of its halves, with the carry from the other
    // half, in its upper one.
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// Folds a sum that has 65 bits: `carry` is the highest.
#[inline]
pub(crate) const fn fold_wide(sum: u64, carry: bool) -> u16 {
    // Two halves and a carry still fit 64 bits; 2^32 and 2^64 are 1 modulo 2^16 - 1.
    fold((sum >> 32) + (sum & 0xffff_ffff) + carry as u64)
}

/// The checksum of `bytes` (the complement of `rte_raw_cksum`), whose own checksum field must be zero. Of bytes with a right checksum
/// in place the result is 0.
///
/// ```
/// // The worked example of RFC 1071, section 3: the sum is ddf2.
/// let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
/// assert_eq!(packet::checksum::checksum(&bytes), !0xddf2);
/// ```
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    !folded(bytes)
}

/// The checksum after one 16-bit word changed from `old` to `new`: HC' = ~(~HC + ~m + m'),
/// equation 3 of RFC 1624.
///
/// ```
/// // The worked example of RFC 1624, section 4.
/// assert_eq!(packet::checksum::update(0xdd2f, 0x5555, 0x3285), 0x0000);
/// ```
#[inline]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}

/// The checksum after an even-aligned 32-bit field, such as an address, changed.
#[inline]
pub const fn update32(checksum: u16, old: u32, new: u32) -> u16 {
    update(update(checksum, (old >> 16) as u16, (new >> 16) as u16), old as u16, new as u16)
}

/// The two halves of an even-aligned 32-bit field, as a sum.
#[inline]
pub const fn sum32(value: u32) -> u64 {
    (value >> 16) as u64 + (value & 0xffff) as u64
}

/// What changed in the bytes that checksums cover.
///
/// Headers return one from setters of fields that other headers' checksums cover, too, as those of addresses are
/// by UDP and TCP: hand it to their `update_checksum`.
///
/// ```
/// use packet::checksum::{Change, checksum};
/// let mut bytes = [0, 1, 2, 3, 4, 5];
/// let before = checksum(&bytes);
/// let change = Change::of([2, 3], [9, 9]).and(Change::of([4, 5], [7, 7]));
/// bytes[2..].copy_from_slice(&[9, 9, 7, 7]);
/// assert_eq!(change.applied_to(before), checksum(&bytes));
/// ```
#[must_use = "checksums that cover what changed are wrong until they are told"]
#[derive(Clone, Copy, Debug)]
pub struct Change(
    /// The sum of ~m and m' (RFC 1624) of all words, as they lie in memory: the sum of swapped words is the swapped
    /// sum (RFC 1071, section 2 B), so that nothing is swapped on the way.
    u64,
);

impl Change {
    /// Nothing changed.
    pub const NONE: Self = Change(0);

    /// Bytes at an even offset became others. `N` is 2, 4, 8 or 16.
    #[inline]
    pub fn of<const N: usize>(old: [u8; N], new: [u8; N]) -> Self {
        const { assert!(matches!(N, 2 | 4 | 8 | 16), "checksums are made of words of 16 bits") };
        let sum = |bytes: [u8; N], invert: u8| -> u64 {
            // Words of 16 and 32 bits are summed alike: 2^16 and 2^32 are 1 modulo 2^16 - 1.
            if N == 2 {
                return u64::from(u16::from_ne_bytes([bytes[0] ^ invert, bytes[1] ^ invert]));
            }
            let word = |w: &[u8]| u32::from_ne_bytes([w[0], w[1], w[2], w[3]].map(|b| b ^ invert));
            bytes.chunks_exact(4).map(|bytes| u64::from(word(bytes))).sum()
        };
        Change(sum(old, 0xff) + sum(new, 0))
    }

    /// A 16-bit field became another, in host order.
    #[inline]
    pub fn of_word(old: u16, new: u16) -> Self {
        Self::of(old.to_be_bytes(), new.to_be_bytes())
    }

    /// Both changes.
    #[inline]
    pub const fn and(self, other: Self) -> Self {
        // The top is kept free by folding; more than 2^30 changes at once do not occur.
        Change(self.0 + other.0)
    }

    /// What a checksum, in host order, is after the change (RFC 1624, equation 3).
    #[inline]
    pub const fn applied_to(self, checksum: u16) -> u16 {
        let memory = u16::from_ne_bytes(checksum.to_be_bytes());
        u16::from_be_bytes((!fold(self.0 + !memory as u64)).to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folds_the_largest_sum() {
        assert_eq!(fold(u64::MAX), 0xffff);
        assert_eq!(fold(0), 0);
        assert_eq!(fold(0x1_0000), 1);
        assert_eq!(fold(0xffff), 0xffff);
        assert_eq!(fold(0xffff_0000_0000_ffff), 0xffff);
    }

    proptest! {
        #[test]
        fn folding_is_the_remainder(sum: u64) {
            // Of 2^16 - 1; of its two zeros only the sum 0 has the one of zeros.
            let rest = (sum % 0xffff) as u16;
            prop_assert_eq!(fold(sum), if rest == 0 && sum > 0 { 0xffff } else { rest });
        }

        #[test]
        fn changes_are_whole_checksums(mut bytes: [u8; 32], two: [u8; 2], four: [u8; 4], eight: [u8; 8], sixteen: [u8; 16]) {
            // Never all zeros, as above.
            bytes[0] |= 1;
            let before = checksum(&bytes);
            let mut change = Change::NONE;
            let array = |bytes: &[u8]| <[u8; 2]>::try_from(bytes).unwrap();
            change = change.and(Change::of(array(&bytes[2..4]), two));
            change = change.and(Change::of(<[u8; 4]>::try_from(&bytes[4..8]).unwrap(), four));
            change = change.and(Change::of(<[u8; 8]>::try_from(&bytes[8..16]).unwrap(), eight));
            change = change.and(Change::of(<[u8; 16]>::try_from(&bytes[16..]).unwrap(), sixteen));
            bytes[2..4].copy_from_slice(&two);
            bytes[4..8].copy_from_slice(&four);
            bytes[8..16].copy_from_slice(&eight);
            bytes[16..].copy_from_slice(&sixteen);
            prop_assert_eq!(change.applied_to(before), checksum(&bytes));
        }

        #[test]
        fn incremental_is_whole(mut bytes in prop::collection::vec(any::<u8>(), 4..64), at: prop::sample::Index, new: u32) {
            bytes.truncate(bytes.len() & !1);
            // A header is never all zero words, which is where RFC 1624's two zeros differ.
            bytes[0] |= 1;
            let at = (2 + at.index(bytes.len() - 2)) & !1;
            let before = checksum(&bytes);
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&(new as u16).to_be_bytes());
            prop_assert_eq!(update(before, old, new as u16), checksum(&bytes));
            if at + 4 <= bytes.len() {
                let before = checksum(&bytes);
                let old = u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
                bytes[at..at + 4].copy_from_slice(&new.to_be_bytes());
                prop_assert_eq!(update32(before, old, new), checksum(&bytes));
            }
        }

        #[test]
        fn checksums_are_those_of_words(mut bytes in prop::collection::vec(any::<u8>(), 0..200), same: Option<bool>) {
            if let Some(ones) = same {
                bytes.fill(if ones { 0xff } else { 0 });
            }
            prop_assert_eq!(checksum(&bytes), !fold(sum(&bytes)));
        }

        #[test]
        fn sums_of_parts_add_up(bytes in prop::collection::vec(any::<u8>(), 0..200), cut: prop::sample::Index) {
            let cut = cut.index(bytes.len() + 1) & !1;
            prop_assert_eq!(sum(&bytes[..cut]) + sum(&bytes[cut..]), sum(&bytes));
        }
    }
}
