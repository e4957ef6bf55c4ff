// SPDX-License-Identifier: BSD-3-Clause
//! The frame check sequence (FCS) of Ethernet: CRC-32 (IEEE 802.3, clause 3.2.9).

/// Bytes of an FCS.
pub const FCS_LEN: usize = 4;

/// The polynomial, least significant bit first as on the wire.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// By `k` and a byte: what the byte leaves behind when `k` zero bytes follow it. Eight bytes are thus taken at a time.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        tables[0][byte] = rest;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            tables[k][byte] = next(&tables[0], tables[k - 1][byte], 0);
            byte += 1;
        }
        k += 1;
    }
    tables
}

const fn next(table: &[u32; 256], rest: u32, byte: u8) -> u32 {
    rest >> 8 ^ table[(rest as u8 ^ byte) as usize]
}

/// The FCS of a frame whose bytes come in parts, as it stands at the end of the frame.
///
/// ```
/// assert_eq!(capture_file::fcs(&[b"1234", b"56789"]), 0xcbf4_3926_u32.to_le_bytes());
/// ```
#[must_use]
pub fn fcs(parts: &[&[u8]]) -> [u8; 4] {
    let rest = parts.iter().fold(u32::MAX, |rest, part| after(rest, part));
    (!rest).to_le_bytes()
}

/// What is left after some more bytes.
fn after(rest: u32, bytes: &[u8]) -> u32 {
    let eights = bytes.chunks_exact(8);
    let last = eights.remainder();
    let rest = eights.fold(rest, |rest, eight| {
        let [r0, r1, r2, r3] = rest.to_le_bytes();
        let [b0, b1, b2, b3, b4, b5, b6, b7] = *eight else { return rest };
        let mixed = [b0 ^ r0, b1 ^ r1, b2 ^ r2, b3 ^ r3, b4, b5, b6, b7];
        mixed
            .iter()
            .zip(TABLES.iter().rev())
            .fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)])
    });
    last.iter().fold(rest, |rest, byte| next(&TABLES[0], rest, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bit by bit, as the standard describes it.
    fn by_bits(bytes: &[u8]) -> [u8; 4] {
        let mut rest = u32::MAX;
        for bit in bytes.iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1)) {
            let odd = rest & 1 != u32::from(bit);
            rest = rest >> 1 ^ if odd { POLYNOMIAL } else { 0 };
        }
        (!rest).to_le_bytes()
    }

    proptest! {
        #[test]
        fn eight_bytes_at_a_time_are_as_bit_by_bit(
            frame in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(),
        ) {
            let (one, two) = frame.split_at(at.index(frame.len() + 1));
            prop_assert_eq!(fcs(&[one, two]), by_bits(&frame));
            // Whoever computes it over a frame and its FCS finds always the same.
            prop_assert_eq!(fcs(&[&frame, &by_bits(&frame)]), 0x2144_df1c_u32.to_le_bytes());
        }
    }
}
