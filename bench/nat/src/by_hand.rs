// SPDX-License-Identifier: BSD-3-Clause
//! What a user of a library without incremental checksums must write: RFC 1624, equation 3, word by
//! word.

/// Returns the checksum after words at even offsets have changed.
#[inline]
pub fn updated<const N: usize>(checksum: u16, old: [u16; N], new: [u16; N]) -> u16 {
    let mut sum = u32::from(!checksum);
    for word in 0..N {
        sum += u32::from(!old[word]) + u32::from(new[word]);
    }
    sum = (sum >> 16) + (sum & 0xffff);
    !(((sum >> 16) + (sum & 0xffff)) as u16)
}

/// An address as two words.
#[inline]
pub fn words([a, b, c, d]: [u8; 4]) -> [u16; 2] {
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

/// UDP's checksum: none stays none, and 0 is written as all ones.
#[inline]
pub fn updated_udp(checksum: u16, old: ([u8; 4], u16), new: ([u8; 4], u16)) -> u16 {
    if checksum == 0 {
        return 0;
    }
    let all = |(address, port): ([u8; 4], u16)| {
        let [a, b] = words(address);
        [a, b, port]
    };
    match updated(checksum, all(old), all(new)) {
        0 => 0xffff,
        other => other,
    }
}
