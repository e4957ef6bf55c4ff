// SPDX-License-Identifier: BSD-3-Clause
//! The signature by which a generator knows its own frames, in the last bytes of the payload.
//!
//! It stands at the end, so that a forwarder may rewrite, add or remove headers. All numbers are
//! big-endian. It starts at an even offset of the frame (one byte of an odd frame stays behind
//! it), so that its words add to the UDP checksum without a shift. A 64-byte frame (60 without
//! FCS) has 18 payload bytes, and the signature takes exactly these:
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0..3 | magic | [`MAGIC`], three bytes |
//! | 3 | run | counts the starts of the flow, modulo 256: a frame of an earlier run is stale |
//! | 4..6 | flow | index of the flow in the configuration |
//! | 6..10 | sequence | number of the frame in its flow and run, modulo 2^32 |
//! | 10..18 | stamp | raw TSC at sending; 0 means that the frame carries no stamp |

/// Length of a signature in bytes.
pub const LEN: usize = 18;
/// The first three bytes of every signature.
pub const MAGIC: u32 = 0x004c_529d;

/// What a frame says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Which run of the flow sent it, modulo 256.
    pub run: u8,
    /// Index of the flow.
    pub flow: u16,
    /// Number of the frame in its flow and run, modulo 2^32.
    pub sequence: u32,
    /// Raw TSC at sending, 0 for none.
    pub stamp: u64,
}

/// Where the signature of a frame of `frame_len` bytes starts; `None` when it is too short.
#[inline]
pub const fn offset(frame_len: usize) -> Option<usize> {
    match frame_len.checked_sub(LEN) {
        Some(offset) => Some(offset & !1),
        None => None,
    }
}

impl Signature {
    /// The signature of a frame; `None` when it has none.
    ///
    /// ```
    /// use packet::signature::Signature;
    /// let mut frame = [0u8; 60];
    /// assert_eq!(Signature::read(&frame), None);
    /// let ours = Signature { run: 1, flow: 2, sequence: 3, stamp: 0 };
    /// ours.write(&mut frame);
    /// assert_eq!(Signature::read(&frame), Some(ours));
    /// ```
    #[inline]
    pub fn read(frame: &[u8]) -> Option<Self> {
        let tail: &[u8; LEN] = frame.get(offset(frame.len())?..)?.first_chunk()?;
        let word = u32::from_be_bytes([tail[0], tail[1], tail[2], tail[3]]);
        if word >> 8 != MAGIC {
            return None;
        }
        Some(Signature {
            run: tail[3],
            flow: u16::from_be_bytes([tail[4], tail[5]]),
            sequence: u32::from_be_bytes([tail[6], tail[7], tail[8], tail[9]]),
            stamp: u64::from_be_bytes([
                tail[10], tail[11], tail[12], tail[13], tail[14], tail[15], tail[16], tail[17],
            ]),
        })
    }

    /// The signature as bytes.
    #[inline]
    pub fn to_bytes(self) -> [u8; LEN] {
        let mut tail = [0u8; LEN];
        tail[..4].copy_from_slice(&(MAGIC << 8 | u32::from(self.run)).to_be_bytes());
        tail[4..6].copy_from_slice(&self.flow.to_be_bytes());
        tail[6..10].copy_from_slice(&self.sequence.to_be_bytes());
        tail[10..].copy_from_slice(&self.stamp.to_be_bytes());
        tail
    }

    /// Writes the signature into a frame and says whether the frame had room for it.
    #[inline]
    pub fn write(self, frame: &mut [u8]) -> bool {
        let place =
            offset(frame.len()).and_then(|at| frame.get_mut(at..)?.first_chunk_mut::<LEN>());
        match place {
            Some(tail) => {
                *tail = self.to_bytes();
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips_at_every_length(len in LEN..1600, run: u8, flow: u16, sequence: u32, stamp: u64) {
            let signature = Signature { run, flow, sequence, stamp };
            let mut frame = vec![0xee; len];
            prop_assert!(signature.write(&mut frame));
            prop_assert_eq!(Signature::read(&frame), Some(signature));
            prop_assert_eq!(frame.iter().take_while(|b| **b == 0xee).count(), (len - LEN) & !1);
        }

        #[test]
        fn short_frames_have_none(len in 0..LEN) {
            let mut frame = vec![0; len];
            let signature = Signature { run: 0, flow: 0, sequence: 0, stamp: 0 };
            prop_assert!(!signature.write(&mut frame));
            prop_assert_eq!(Signature::read(&frame), None);
        }
    }
}
