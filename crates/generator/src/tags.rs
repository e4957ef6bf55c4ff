// SPDX-License-Identifier: BSD-3-Clause
//! Metric tags: what tells the rows of a flow's tagged metrics apart.
//!
//! A tag is some bits of a header field, as they were sent or as they were received, or the port where
//! a frame arrived. What was sent follows from the frame's number, so that devices on the way may
//! rewrite it. What was received stands in the frame, at a place that follows from the headers that
//! the frame is said to have. Frames that do not have these headers count in a row without bits.

use packet::field::Course;

use crate::books::rows::{Key, WORDS};

/// Most rows of one flow. Frames that would need more count in one further row.
pub const MAX_ROWS: usize = 4096;
/// Most rows of all flows.
pub const MAX_ALL_ROWS: usize = 1 << 15;
/// Most bits of all tags of a flow.
pub const MAX_BITS: u32 = 64 * WORDS as u32;
/// The model's name for the port where frames arrived.
pub const RX_NAME: &str = "rx_name";

/// The tags of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tags {
    /// Bits of fields, at most [`MAX_BITS`] in all.
    pub fields: Vec<Tag>,
    /// What received frames must have for bits of theirs to be those of the fields.
    pub shape: Vec<Check>,
    /// True if the port where a frame arrived is a tag.
    pub rx_name: bool,
    /// Rows that there is memory for.
    pub rows: usize,
}

/// Bits of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// How many bits, 1 to 128.
    pub bits: u32,
    /// Where they are.
    pub place: Place,
}

/// Where the bits of a tag are.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// In what was sent: from this bit on of the field's values, the least significant being 0.
    Sent(Course, u32),
    /// In what is received: from this bit on, the most significant bit of a byte first.
    Received(usize),
}

/// Bits that received frames must have.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The first bit.
    pub first_bit: usize,
    /// How many.
    pub bits: u32,
    /// Their values: one of these.
    pub any_of: Vec<u128>,
}

/// `count` bits of a frame, at most 128, from bit `first` on; `None` if the frame is too short.
///
/// ```
/// use generator::tags::bits;
/// assert_eq!(bits(&[0x12, 0x34, 0x56], 4, 12), Some(0x234));
/// assert_eq!(bits(&[0x12, 0x34, 0x56], 16, 9), None);
/// ```
#[inline]
pub fn bits(frame: &[u8], first: usize, count: u32) -> Option<u128> {
    let end = first + count as usize;
    let (last, before) = frame.get(first / 8..end.div_ceil(8))?.split_last()?;
    let value = before.iter().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
    // Bits of the last byte that do not belong to the field.
    let spare = end.wrapping_neg() % 8;
    let value = value << (8 - spare) | u128::from(*last) >> spare;
    Some(value & low(count))
}

/// A number whose low `bits` bits are ones.
pub const fn low(bits: u32) -> u128 {
    match bits {
        0 => 0,
        bits => u128::MAX >> 128u32.saturating_sub(bits),
    }
}

impl Tags {
    /// The names of the tags, in the order of a row.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter().map(|tag| tag.name.as_str());
        fields.chain(self.rx_name.then_some(RX_NAME))
    }

    /// Returns true if nothing but ports tells rows apart.
    pub fn only_ports(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns true if the number of a frame is needed.
    pub fn need_numbers(&self) -> bool {
        self.fields.iter().any(|tag| matches!(tag.place, Place::Sent(..)))
    }

    /// Returns true if rows are known when frames are sent.
    pub fn count_sent(&self) -> bool {
        let received = |tag: &Tag| matches!(tag.place, Place::Received(_));
        !self.fields.is_empty() && !self.rx_name && !self.fields.iter().any(received)
    }

    /// The row of frames that arrived at a port, for tags that are only ports.
    #[inline]
    pub fn at_port(&self, port: usize) -> Key {
        Key::default().at_port(port)
    }

    /// The row of the frame of this number, which arrived at a port.
    #[inline]
    pub fn received(&self, number: u64, frame: &[u8], port: usize) -> Key {
        let key = match self.shape.iter().all(|check| check.holds(frame)) {
            true => self.key(number, Some(frame)),
            false => self.key(number, None),
        };
        if self.rx_name { key.at_port(port) } else { key }
    }

    /// The row of the frame of this number, for tags of what was sent.
    #[inline]
    pub fn sent(&self, number: u64) -> Key {
        self.key(number, Some(&[]))
    }

    /// Without a frame, what is received has no bits.
    #[inline]
    fn key(&self, number: u64, frame: Option<&[u8]>) -> Key {
        let mut key = Key::default();
        for tag in &self.fields {
            let value = match &tag.place {
                Place::Sent(course, shift) => course.at(number) >> shift & low(tag.bits),
                Place::Received(first) => {
                    match frame.and_then(|frame| bits(frame, *first, tag.bits)) {
                        Some(value) => value,
                        // Then none of the others counts, so that such frames have one row.
                        None if frame.is_some() => return self.key(number, None),
                        None => {
                            key.absent = true;
                            0
                        }
                    }
                }
            };
            key.push(value, tag.bits);
        }
        key
    }

    /// The values of a key's fields; `None` for those that the frames do not have.
    pub fn values(&self, key: &Key) -> Vec<Option<u128>> {
        let mut key = *key;
        let mut values: Vec<Option<u128>> = self
            .fields
            .iter()
            .rev()
            .map(|tag| {
                let value = key.pop(tag.bits);
                (!key.absent || matches!(tag.place, Place::Sent(..))).then_some(value)
            })
            .collect();
        values.reverse();
        values
    }

    /// How many values are kept for fields whose values follow no rule, 16 bytes each.
    pub fn kept_values(&self) -> usize {
        let kept = |tag: &Tag| match &tag.place {
            Place::Sent(Course::List(values), _) if values.len() > 1 => values.len(),
            _ => 0,
        };
        self.fields.iter().map(kept).sum()
    }

    /// How many rows there may be when a frame arrives at one of so many ports.
    pub fn most_rows(&self, ports: usize) -> u128 {
        let received = |tag: &&Tag| matches!(tag.place, Place::Received(_));
        let any: u128 = self
            .fields
            .iter()
            .filter(received)
            .map(|tag| low(tag.bits).saturating_add(1))
            .fold(1, u128::saturating_mul);
        // With received fields, frames that do not have them count as well.
        let absent = u128::from(any > 1);
        self.most_sent(ports).saturating_mul(any.saturating_add(absent))
    }

    /// How many rows there may be by the values that are sent and the ports alone.
    pub fn most_sent(&self, ports: usize) -> u128 {
        let values = |tag: &Tag| match &tag.place {
            Place::Sent(course, _) => low(tag.bits).saturating_add(1).min(course.period().into()),
            Place::Received(_) => 1,
        };
        let ports = if self.rx_name { ports as u128 } else { 1 };
        self.fields.iter().map(values).fold(ports, u128::saturating_mul)
    }
}

impl Check {
    #[inline]
    fn holds(&self, frame: &[u8]) -> bool {
        bits(frame, self.first_bit, self.bits).is_some_and(|found| self.any_of.contains(&found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::field::Pattern;
    use proptest::prelude::*;

    fn sent(values: &[u128], shift: u32, bits: u32) -> Tag {
        let course = Pattern::Values(values.to_vec()).course(u128::MAX).unwrap();
        Tag { name: "s".into(), bits, place: Place::Sent(course, shift) }
    }

    fn received(first: usize, bits: u32) -> Tag {
        Tag { name: "r".into(), bits, place: Place::Received(first) }
    }

    proptest! {
        #[test]
        fn bits_are_those_of_a_number(frame in prop::collection::vec(any::<u8>(), 0..40), first in 0usize..330, count in 1u32..129) {
            let all: String = frame.iter().map(|byte| format!("{byte:08b}")).collect();
            let wanted = all.get(first..first + count as usize).map(|bits| u128::from_str_radix(bits, 2).unwrap());
            prop_assert_eq!(bits(&frame, first, count), wanted);
        }

        #[test]
        fn a_key_gives_its_values_back(values in prop::collection::vec((any::<u128>(), 1u32..65), 0..5), port in 0usize..16) {
            let fields = values.iter().map(|(value, bits)| sent(&[*value], 0, *bits)).collect();
            let tags = Tags { fields, rx_name: true, ..Tags::default() };
            let key = tags.received(9, &[], port);
            let wanted: Vec<_> = values.iter().map(|(value, bits)| Some(value & low(*bits))).collect();
            prop_assert_eq!(tags.values(&key), wanted);
            prop_assert_eq!(key.port, port as u64 + 1);
        }
    }

    #[test]
    fn two_addresses_of_ipv6_have_room() {
        let tags = Tags {
            fields: vec![sent(&[u128::MAX], 0, 128), sent(&[7], 0, 128)],
            ..Tags::default()
        };
        assert_eq!(tags.values(&tags.sent(0)), [Some(u128::MAX), Some(7)]);
        assert_eq!(tags.fields.iter().map(|tag| tag.bits).sum::<u32>(), MAX_BITS);
    }

    #[test]
    fn what_was_sent_follows_from_the_number_and_what_is_received_from_the_frame() {
        let tags = Tags {
            fields: vec![sent(&[0x120, 0x345], 4, 4), received(8, 8)],
            shape: vec![Check { first_bit: 0, bits: 8, any_of: vec![0x81, 0x88] }],
            ..Tags::default()
        };
        let values = |number, frame: &[u8]| tags.values(&tags.received(number, frame, 0));
        assert_eq!(values(0, &[0x81, 9]), [Some(2), Some(9)]);
        assert_eq!(values(3, &[0x88, 10]), [Some(4), Some(10)]);
        // Another shape, or too short.
        assert_eq!(values(3, &[0x80, 10]), [Some(4), None]);
        assert_eq!(values(2, &[0x81]), [Some(2), None]);
        assert!(tags.need_numbers() && !tags.count_sent());
        // 2 values sent, and with each 256 received, or none.
        assert_eq!((tags.most_rows(3), tags.most_sent(3)), (514, 2));
        let by_port = Tags { rx_name: true, ..tags };
        assert_eq!((by_port.most_rows(3), by_port.most_sent(3)), (1542, 6));
    }
}
