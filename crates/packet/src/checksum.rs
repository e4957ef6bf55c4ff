// SPDX-License-Identifier: BSD-3-Clause
//! The internet checksum (RFC 1071), whole and incremental (RFC 1624).
//!
//! A *sum* is the plain sum of big-endian 16-bit words, not yet folded; sums of parts that start
//! at even offsets add up. A *checksum* is the folded sum's complement, as headers carry it.

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

/// Folds a sum into 16 bits with end-around carry.
#[inline]
pub const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

/// Folds a sum that has 65 bits: `carry` is the highest.
#[inline]
pub(crate) const fn fold_wide(sum: u64, carry: bool) -> u16 {
    // Two halves and a carry still fit 64 bits; 2^32 and 2^64 are 1 modulo 2^16 - 1.
    fold((sum >> 32) + (sum & 0xffff_ffff) + carry as u64)
}

/// The checksum of `bytes`, whose own checksum field must be zero. Of bytes with a right checksum
/// in place the result is 0.
///
/// ```
/// // The worked example of RFC 1071, section 3: the sum is ddf2.
/// let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
/// assert_eq!(packet::checksum::checksum(&bytes), !0xddf2);
/// ```
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folds_the_largest_sum() {
        assert_eq!(fold(u64::MAX), 0xffff);
        assert_eq!(fold(0), 0);
        assert_eq!(fold(0x1_0000), 1);
    }

    proptest! {
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
        fn sums_of_parts_add_up(bytes in prop::collection::vec(any::<u8>(), 0..200), cut: prop::sample::Index) {
            let cut = cut.index(bytes.len() + 1) & !1;
            prop_assert_eq!(sum(&bytes[..cut]) + sum(&bytes[cut..]), sum(&bytes));
        }
    }
}
