// SPDX-License-Identifier: BSD-3-Clause
//! What stands between the headers and the signature: the payloads of OTG's `FlowPayload`.

/// The bytes of a payload, counted from the end of the headers and the same in every frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Payload {
    /// The bytes of a pattern; an empty one is zeros.
    Fixed {
        /// The pattern.
        pattern: Vec<u8>,
        /// Over and over; otherwise once, and zeros after it.
        repeat: bool,
    },
    /// 00 01 02 ... ff 00 ...
    IncrementByte,
    /// ff fe fd ... 00 ff ...
    DecrementByte,
    /// 0000 0001 0002 ... as big-endian words of 16 bits.
    IncrementWord,
    /// ffff fffe fffd ... as big-endian words of 16 bits.
    DecrementWord,
}

impl Default for Payload {
    /// Zeros.
    fn default() -> Self {
        Payload::Fixed { pattern: vec![0], repeat: true }
    }
}

impl Payload {
    /// Byte number `at` of the payload.
    ///
    /// ```
    /// use packet::payload::Payload;
    /// let bytes: Vec<u8> = (0..5).map(|at| Payload::DecrementWord.byte(at)).collect();
    /// assert_eq!(bytes, [0xff, 0xff, 0xff, 0xfe, 0xff]);
    /// ```
    pub fn byte(&self, at: usize) -> u8 {
        let half = |word: u16| word.to_be_bytes()[at % 2];
        match self {
            Payload::Fixed { pattern, repeat } => {
                let at = if *repeat { at % pattern.len().max(1) } else { at };
                pattern.get(at).copied().unwrap_or(0)
            }
            Payload::IncrementByte => at as u8,
            Payload::DecrementByte => !(at as u8),
            Payload::IncrementWord => half((at / 2) as u16),
            Payload::DecrementWord => half(!((at / 2) as u16)),
        }
    }

    /// The first `len` bytes.
    pub fn bytes(&self, len: usize) -> Vec<u8> {
        (0..len).map(|at| self.byte(at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_starts_as_it_should() {
        let fixed = |pattern: &[u8], repeat| Payload::Fixed { pattern: pattern.to_vec(), repeat };
        assert_eq!(fixed(&[1, 2], true).bytes(5), [1, 2, 1, 2, 1]);
        assert_eq!(fixed(&[1, 2], false).bytes(5), [1, 2, 0, 0, 0]);
        assert_eq!(fixed(&[], true).bytes(2), [0, 0]);
        assert_eq!(Payload::IncrementByte.bytes(258)[254..], [254, 255, 0, 1]);
        assert_eq!(Payload::DecrementByte.bytes(258)[254..], [1, 0, 255, 254]);
        assert_eq!(Payload::IncrementWord.bytes(516)[510..], [0, 255, 1, 0, 1, 1]);
        assert_eq!(Payload::DecrementWord.bytes(516)[510..], [255, 0, 254, 255, 254, 254]);
    }
}
