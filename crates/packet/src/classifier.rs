// SPDX-License-Identifier: BSD-3-Clause
//! Frames told apart by header bytes, for flows whose frames have no room for a signature.
//!
//! A [`Rule`] is a mask and a value over the first bytes of a frame, and bounds of fields whose values
//! are a range. [`FrameSpec::rule`] makes it of the fields of a flow's frames that devices on the way leave alone.
//! A [`Classifier`] finds the rule of a frame by tuple space search (Srinivasan, Suri and Varghese,
//! "Packet classification using tuple space search", SIGCOMM 1999, doi:10.1145/316188.316216): one
//! hash table for each different mask. So the search takes as long as there are masks, however many
//! rules there are.
//!
//! [`FrameSpec::rule`]: crate::frame::FrameSpec::rule

use std::fmt;

/// A mask and a value over the first bytes of a frame, and bounds of fields.
#[derive(Clone, PartialEq, Eq)]
pub struct Rule {
    /// Bytes that a frame must have.
    len: usize,
    /// The words of 8 bytes, big-endian, whose mask is not 0.
    words: Box<[Word]>,
    /// Fields whose values have bounds that the words do not tell.
    ranges: Vec<Range>,
}

/// A field of at most 64 bits with bounds. It ends at most 64 bits after the start of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    /// The field's first byte.
    at: usize,
    /// Bits after the field in the 8 bytes from `at` on.
    shift: u32,
    /// The largest value of the field, all of whose bits are ones.
    max: u64,
    low: u64,
    high: u64,
}

impl Range {
    /// The field's value in a frame.
    #[inline]
    fn value(&self, frame: &[u8]) -> u64 {
        bytes(frame, self.at) >> self.shift & self.max
    }

    /// Whether a frame's value is within the bounds.
    #[inline]
    fn matches(&self, frame: &[u8]) -> bool {
        (self.low..=self.high).contains(&self.value(frame))
    }

    /// Whether some value within the bounds has these bits where the mask has ones.
    fn has(&self, mask: u64, value: u64) -> bool {
        let (mask, value) = (mask & self.max, value & mask & self.max);
        // The least such number from `low` on.
        let near = self.low & !mask | value;
        let below = |bit: u64| bit.wrapping_sub(1);
        let least = match near ^ self.low {
            0 => Some(near),
            differ => {
                let bit = 1 << differ.ilog2();
                if near & bit != 0 {
                    Some(near & !(below(bit) & !mask))
                } else {
                    // Carry into the lowest free bit above that is 0.
                    let free = !mask & !self.low & self.max & !below(bit) & !bit;
                    let carry = free & free.wrapping_neg();
                    (carry != 0).then_some((near | carry) & !(below(carry) & !mask))
                }
            }
        };
        least.is_some_and(|least| least <= self.high)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Word {
    /// Which of the frame's words it is.
    at: usize,
    mask: u64,
    /// 0 wherever the mask is.
    value: u64,
}

/// Word `at` of a frame; bytes behind its end are 0.
#[inline]
fn word(frame: &[u8], at: usize) -> u64 {
    bytes(frame, at * 8)
}

/// The 8 bytes of a frame from `at` on; those behind its end are 0.
#[inline]
fn bytes(frame: &[u8], at: usize) -> u64 {
    let rest = frame.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => {
            rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
                << (64 - 8 * rest.len()).min(63)
        }
    }
}

impl Rule {
    /// The rule that the bits of `mask` in the first bytes of a frame are those of `value`. The shorter of the
    /// two is continued with zeros.
    ///
    /// ```
    /// use packet::classifier::Rule;
    /// let rule = Rule::new(&[0, 0xf0], &[0, 0x45]);
    /// assert!(rule.matches(&[7, 0x4f, 9]));
    /// assert!(!rule.matches(&[7, 0x5f, 9]) && !rule.matches(&[7]));
    /// ```
    pub fn new(mask: &[u8], value: &[u8]) -> Self {
        let word = |at| {
            let mask = word(mask, at);
            Word { at, mask, value: word(value, at) & mask }
        };
        let words = (0..mask.len().div_ceil(8)).map(word).filter(|word| word.mask != 0).collect();
        let last = mask.iter().rposition(|byte| *byte != 0);
        Rule { len: last.map_or(0, |last| last + 1), words, ranges: Vec::new() }
    }

    /// Adds the rule that a field, given by its first bit and its width, has values from `low` to `high`, as far as the
    /// field can be read with one word and the mask does not say so already. Bits of the bounds above the field are left out.
    pub(crate) fn bound(&mut self, offset_bits: usize, bits: u32, low: u128, high: u128) {
        let (at, end) = (offset_bits / 8, offset_bits % 8 + bits as usize);
        if bits == 0 || end > 64 {
            return;
        }
        let max = u64::MAX >> (64 - bits);
        let (low, high) = (low as u64 & max, high as u64 & max);
        let range = Range { at, shift: 64 - end as u32, max, low, high };
        let (mask, value) = self.bits(&range);
        self.len = self.len.max(at + end.div_ceil(8));
        // All values that the mask allows.
        if (low, high) != (value, value | max & !mask) {
            self.ranges.push(range);
        }
    }

    /// The bits of a field that the words tell: mask and value.
    fn bits(&self, range: &Range) -> (u64, u64) {
        let word = |at: usize| self.words.iter().find(|word| word.at == at);
        let part = |of: fn(&Word) -> u64| {
            let [high, low] = [0, 1].map(|next| word(range.at / 8 + next).map_or(0, of));
            let both = u128::from(high) << 64 | u128::from(low);
            let there = both << (8 * (range.at % 8)) >> 64;
            there as u64 >> range.shift & range.max
        };
        (part(|word| word.mask), part(|word| word.value))
    }

    /// Whether a frame fits.
    #[inline]
    pub fn matches(&self, frame: &[u8]) -> bool {
        let differ =
            |found: u64, rule: &Word| found | (word(frame, rule.at) & rule.mask ^ rule.value);
        frame.len() >= self.len
            && self.words.iter().fold(0, differ) == 0
            && self.ranges.iter().all(|range| range.matches(frame))
    }

    /// Whether there can be a frame that fits both rules. `true` also where only fields which lie across each other
    /// rule that out.
    pub fn overlaps(&self, other: &Rule) -> bool {
        // Both are in the order of the frame.
        let mut others = other.words.iter().peekable();
        let words = self.words.iter().all(|own| {
            while others.next_if(|other| other.at < own.at).is_some() {}
            let other = others.peek().filter(|other| other.at == own.at);
            other.is_none_or(|other| own.mask & other.mask & (own.value ^ other.value) == 0)
        });
        let mut ranges = self.ranges.iter().chain(&other.ranges);
        words && ranges.all(|range| self.common(other, range))
    }

    /// Whether a field can have a value that fits both rules, whose words agree.
    fn common(&self, other: &Rule, range: &Range) -> bool {
        let same = |other: &&Range| {
            (other.at, other.shift, other.max) == (range.at, range.shift, range.max)
        };
        let both = self.ranges.iter().chain(&other.ranges).filter(same);
        let both = both.fold(*range, |both, one| Range {
            low: both.low.max(one.low),
            high: both.high.min(one.high),
            ..both
        });
        let ((mask, value), (others, other)) = (self.bits(range), other.bits(range));
        both.low <= both.high && both.has(mask | others, value | other)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words.iter().map(|word| (word.at * 8, (word.value, word.mask)));
        let ranges = self.ranges.iter().map(|range| (range.at, format!("{range:?}")));
        f.debug_map()
            .entries(words.map(|(at, (value, mask))| (at, format!("{value:016x}/{mask:016x}"))))
            .entries(ranges)
            .finish()
    }
}

/// Rules by number.
///
/// ```
/// use packet::classifier::{Classifier, Rule};
/// let rules = [(7, Rule::new(&[0xff], &[1])), (9, Rule::new(&[0xff], &[2]))];
/// let classifier = Classifier::new(rules);
/// assert_eq!(classifier.find(&[2, 3], |_| true), Some(9));
/// assert_eq!(classifier.find(&[2, 3], |number| number != 9), None);
/// assert!(classifier.matches(7, &[1]) && !classifier.matches(8, &[1]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    groups: Box<[Group]>,
    /// By number.
    rules: Box<[Option<Rule>]>,
}

/// The rules of one mask.
#[derive(Clone, Debug)]
struct Group {
    /// Bytes that a frame must have to fit any of them.
    len: usize,
    /// The mask's words, each with its place.
    masks: Box<[(usize, u64)]>,
    /// Numbers of rules by the low bits of their hash; a power of two.
    buckets: Box<[Vec<u16>]>,
}

/// The hash of masked words. It need not withstand those who look for collisions: rules are the user's own.
#[inline]
fn hash(words: impl Iterator<Item = u64>) -> usize {
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    };
    words.fold(0, mix) as usize
}

impl Classifier {
    /// A classifier of these rules. Of two rules with one number the later counts.
    pub fn new(rules: impl IntoIterator<Item = (u16, Rule)>) -> Self {
        let mut by_number: Vec<Option<Rule>> = Vec::new();
        for (number, rule) in rules {
            let at = usize::from(number);
            by_number.resize(by_number.len().max(at + 1), None);
            if let Some(place) = by_number.get_mut(at) {
                *place = Some(rule);
            }
        }
        let masks = |rule: &Rule| rule.words.iter().map(|word| (word.at, word.mask)).collect();
        let known =
            || by_number.iter().enumerate().filter_map(|(at, rule)| Some((at, rule.as_ref()?)));
        let mut groups: Vec<(Group, usize)> = Vec::new();
        for (_, rule) in known() {
            let masks: Box<[(usize, u64)]> = masks(rule);
            match groups.iter_mut().find(|(group, _)| group.masks == masks) {
                Some((group, count)) => {
                    group.len = group.len.min(rule.len);
                    *count += 1;
                }
                None => groups.push((Group { len: rule.len, masks, buckets: Box::default() }, 1)),
            }
        }
        for (group, count) in &mut groups {
            group.buckets = vec![Vec::new(); (2 * *count).next_power_of_two()].into();
        }
        let mut groups: Box<[Group]> = groups.into_iter().map(|(group, _)| group).collect();
        for (number, rule) in known() {
            let masks: Box<[(usize, u64)]> = masks(rule);
            let at = hash(rule.words.iter().map(|word| word.value));
            let group = groups.iter_mut().find(|group| group.masks == masks);
            let bucket = group.and_then(|group| {
                let last = group.buckets.len() - 1;
                group.buckets.get_mut(at & last)
            });
            bucket.into_iter().for_each(|bucket| bucket.push(number as u16));
        }
        Classifier { groups, rules: by_number.into() }
    }

    /// The number of a rule that a frame fits and that is `wanted`.
    #[inline]
    pub fn find(&self, frame: &[u8], mut wanted: impl FnMut(u16) -> bool) -> Option<u16> {
        self.groups.iter().filter(|group| frame.len() >= group.len).find_map(|group| {
            let at = hash(group.masks.iter().map(|(at, mask)| word(frame, *at) & mask));
            let bucket = group.buckets.get(at & (group.buckets.len() - 1))?;
            bucket.iter().copied().find(|number| self.matches(*number, frame) && wanted(*number))
        })
    }

    /// Whether a frame fits the rule of a number.
    #[inline]
    pub fn matches(&self, number: u16, frame: &[u8]) -> bool {
        matches!(self.rules.get(usize::from(number)), Some(Some(rule)) if rule.matches(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Pattern;
    use crate::frame::{FrameSpec, Header};
    use crate::headers;
    use crate::payload::Payload;
    use crate::size::Sizes;
    use crate::writer::FrameWriter;
    use proptest::prelude::*;

    fn bits(mask: &[u8], value: &[u8], frame: &[u8]) -> bool {
        let fits = |(at, mask): (usize, &u8)| {
            let value = value.get(at).copied().unwrap_or(0);
            *mask == 0 || frame.get(at).is_some_and(|byte| byte & mask == value & mask)
        };
        mask.iter().enumerate().all(fits)
    }

    fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
        // Few different bytes, so that rules match and collide.
        prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xff)], 0..most)
    }

    /// Bounds of fields: first bit, width, and two numbers.
    fn ranges() -> impl Strategy<Value = Vec<(usize, u32, u64, u64)>> {
        let number = || prop_oneof![0u64..4, 250u64..260, any::<u64>()];
        let range = (0usize..60, 1u32..=64, number(), number());
        prop::collection::vec(range, 0..3)
    }

    /// A rule, and whether bits that are looked at one by one fit it.
    fn bounded(
        (mask, value): (&[u8], &[u8]),
        ranges: &[(usize, u32, u64, u64)],
    ) -> (Rule, impl Fn(&[u8]) -> bool + use<>) {
        let mut rule = Rule::new(mask, value);
        let max = |bits: u32| u64::MAX >> (64 - bits);
        let ranges: Vec<_> = ranges
            .iter()
            .filter(|(offset, bits, ..)| offset % 8 + *bits as usize <= 64)
            .map(|(offset, bits, one, other)| {
                let [one, other] = [one, other].map(|bound| bound & max(*bits));
                (*offset, *bits, one.min(other), one.max(other))
            })
            .collect();
        for (offset, bits, low, high) in &ranges {
            rule.bound(*offset, *bits, u128::from(*low), u128::from(*high));
        }
        let (mask, value) = (mask.to_vec(), value.to_vec());
        let fits = move |frame: &[u8]| {
            let field = |offset: usize, bits: u32| {
                (offset..offset + bits as usize).try_fold(0u64, |number, bit| {
                    Some(number << 1 | u64::from(frame.get(bit / 8)? >> (7 - bit % 8) & 1))
                })
            };
            self::bits(&mask, &value, frame)
                && ranges.iter().all(|(offset, bits, low, high)| {
                    field(*offset, *bits).is_some_and(|number| (*low..=*high).contains(&number))
                })
        };
        (rule, fits)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]
        #[test]
        fn bounds_match_bit_by_bit(
            mask in bytes(20), value in bytes(20), ranges in ranges(), frames in prop::collection::vec(bytes(24), 1..20),
        ) {
            let (rule, fits) = bounded((&mask, &value), &ranges);
            for frame in &frames {
                prop_assert_eq!(rule.matches(frame), fits(frame), "{:?} {:?}", rule, frame);
            }
        }

        #[test]
        fn bounded_fields_overlap_where_a_number_fits_both(
            masks: [u8; 2], values: [u8; 2], bounds: [(u8, u8); 2], narrow: [u8; 2],
        ) {
            // A field of 8 bits, all of whose values are tried.
            let masks = [masks[0] & narrow[0], masks[1] & narrow[1]];
            let rule = |i: usize| {
                let (one, other) = (u64::from(bounds[i].0), u64::from(bounds[i].1));
                bounded((&[0, masks[i]], &[0, values[i]]), &[(8, 8, one, other)])
            };
            let ((a, fits_a), (b, fits_b)) = (rule(0), rule(1));
            let both = (0..=255).any(|byte| fits_a(&[0, byte]) && fits_b(&[0, byte]));
            prop_assert_eq!(a.overlaps(&b), both, "{:?} {:?}", a, b);
            prop_assert_eq!(b.overlaps(&a), both);
        }

        #[test]
        fn rules_that_a_frame_fits_both_overlap(
            a in (bytes(6), bytes(6), ranges()), b in (bytes(6), bytes(6), ranges()), frames in prop::collection::vec(bytes(16), 1..20),
        ) {
            let ((a, _), (b, _)) = (bounded((&a.0, &a.1), &a.2), bounded((&b.0, &b.1), &b.2));
            for frame in &frames {
                prop_assert!(!(a.matches(frame) && b.matches(frame)) || a.overlaps(&b), "{:?} {:?}", a, b);
            }
        }

        #[test]
        fn rules_match_bit_by_bit(mask in bytes(20), value in bytes(20), frame in bytes(24)) {
            prop_assert_eq!(Rule::new(&mask, &value).matches(&frame), bits(&mask, &value, &frame));
        }

        #[test]
        fn rules_overlap_where_a_frame_fits_both(a in (bytes(10), bytes(10)), b in (bytes(10), bytes(10))) {
            let rules = [Rule::new(&a.0, &a.1), Rule::new(&b.0, &b.1)];
            // The frame that takes each bit from whoever looks at it.
            let byte = |bytes: &[u8], at: usize| bytes.get(at).copied().unwrap_or(0);
            let frame: Vec<u8> = (0..24).map(|at| {
                byte(&a.1, at) & byte(&a.0, at) | byte(&b.1, at) & byte(&b.0, at) & !byte(&a.0, at)
            }).collect();
            let both = rules.iter().all(|rule| rule.matches(&frame));
            prop_assert_eq!(rules[0].overlaps(&rules[1]), both);
            prop_assert_eq!(rules[1].overlaps(&rules[0]), both);
        }

        #[test]
        fn a_classifier_finds_what_a_list_finds(
            rules in prop::collection::vec((bytes(12), bytes(12), ranges()), 0..40), frames in prop::collection::vec(bytes(20), 1..20), unwanted in 0u16..40,
        ) {
            let rules: Vec<(u16, Rule)> = rules.iter().enumerate()
                .map(|(number, (mask, value, ranges))| (number as u16, bounded((mask, value), ranges).0)).collect();
            let classifier = Classifier::new(rules.clone());
            for frame in frames {
                let fit = |number: u16| number != unwanted && rules.iter().any(|(own, rule)| *own == number && rule.matches(&frame));
                match classifier.find(&frame, |number| number != unwanted) {
                    Some(found) => prop_assert!(fit(found)),
                    None => prop_assert!(!(0..40).any(fit)),
                }
            }
        }
    }

    fn kind(name: &str) -> &'static headers::HeaderKind {
        let mut all = headers::KINDS.iter().chain(headers::PARTS);
        all.find(|kind| kind.name == name).unwrap()
    }

    fn stack(names: &[&str]) -> FrameSpec {
        FrameSpec {
            headers: names.iter().map(|name| Header::new(kind(name))).collect(),
            sizes: Sizes::Fixed(200),
            payload: Payload::default(),
            signature: None,
        }
    }

    fn set(mut spec: FrameSpec, header: usize, field: &str, pattern: Pattern) -> FrameSpec {
        spec.headers[header].set(field, pattern).unwrap();
        spec
    }

    fn frames(spec: &FrameSpec, n: usize) -> Vec<Vec<u8>> {
        let mut frames = vec![Vec::new(); n];
        FrameWriter::new(spec, 0).unwrap().write(&mut frames, 0, false);
        frames
    }

    #[test]
    fn every_frame_of_a_flow_fits_its_rule() {
        let count = |start| Pattern::Increment { start, step: 3, count: 700 };
        for names in [
            &["ethernet", "vlan", "ipv4", "tcp"][..],
            &["ethernet", "ipv6"],
            &["ethernet", "mpls", "mpls", "ipv4", "udp"],
            &["ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv6", "tcp"],
            &["ethernet", "ipv4", "gre", "ipv4", "icmp"],
            &[
                "ethernet",
                "ipv6",
                "ipv6_extension_header",
                "ipv6_segment",
                "ipv6_segment_pad",
                "tcp",
            ],
            &["ethernet", "arp"],
            &["ethernetpause"],
        ] {
            let plain = stack(names);
            for header in 0..names.len() {
                for field in
                    plain.headers[header].kind().fields.iter().filter(|field| field.bits > 0)
                {
                    let spec = set(plain.clone(), header, field.name, count(field.default));
                    if FrameWriter::new(&spec, 0).is_err() {
                        continue;
                    }
                    for rule in [spec.rule(false), spec.rule(true)] {
                        assert!(
                            frames(&spec, 40).iter().all(|frame| rule.matches(frame)),
                            "{names:?} {field:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_routers_change_is_in_no_rule() {
        let spec = stack(&["ethernet", "vlan", "ipv4", "tcp"]);
        let rule = spec.rule(false);
        for (header, field, value, told) in [
            (0, "dst", 1, false),
            (0, "src", 1, false),
            (1, "priority", 1, false),
            (1, "id", 1, true),
            (0, "ether_type", 0x88a8, false),
            (1, "ether_type", 0x88a8, true),
            (2, "priority.dscp.phb", 1, false),
            (2, "priority.dscp.ecn", 1, false),
            (2, "time_to_live", 63, false),
            (2, "identification", 1, true),
            (2, "src", 1, true),
            (2, "dst", 1, true),
            (3, "dst_port", 1, true),
            (3, "seq_num", 1, true),
        ] {
            let other = set(spec.clone(), header, field, Pattern::Value(value));
            assert_eq!(rule.overlaps(&other.rule(false)), !told, "{field}");
            assert_eq!(frames(&other, 1).iter().any(|frame| rule.matches(frame)), !told, "{field}");
        }
        // Addresses of the link count if they are asked for; hop limits and marks of congestion never do.
        let other = |header, field, value| {
            set(spec.clone(), header, field, Pattern::Value(value)).rule(true)
        };
        assert!(!spec.rule(true).overlaps(&other(0, "dst", 1)));
        assert!(!spec.rule(true).overlaps(&other(2, "priority.dscp.phb", 1)));
        assert!(spec.rule(true).overlaps(&other(2, "priority.dscp.ecn", 1)));
        assert!(spec.rule(true).overlaps(&other(2, "time_to_live", 1)));
    }

    #[test]
    fn what_segment_endpoints_change_is_in_no_rule() {
        let list =
            ["ethernet", "ipv6", "ipv6_extension_header", "ipv6_segment", "ipv6_segment", "udp"];
        let spec = stack(&list);
        for (header, field, told) in [
            (1, "src", true),
            (1, "dst", false),
            (2, "segments_left", false),
            (2, "last_entry", true),
            (2, "tag", true),
            (3, "segment", true),
            (4, "segment", true),
            (5, "dst_port", true),
        ] {
            let other = set(spec.clone(), header, field, Pattern::Value(7));
            assert_eq!(spec.rule(false).overlaps(&other.rule(false)), !told, "{field}");
        }
        let other = set(spec.clone(), 1, "dst", Pattern::Value(7));
        assert!(!spec.rule(true).overlaps(&other.rule(true)));
        // Without segments the destination stays, and so it does in a packet inside; not where it has several CSIDs itself.
        let to =
            |names: &[&str], header, dst| set(stack(names), header, "dst", Pattern::Value(dst));
        let pair = |names: &[&str], header| [1, 2].map(|dst| to(names, header, dst).rule(false));
        let inner = ["ethernet", "ipv6", "ipv6", "ipv6_extension_header", "ipv6_segment"];
        for (names, header, told) in
            [(&["ethernet", "ipv6", "udp"][..], 1, true), (&inner, 1, true), (&inner, 2, false)]
        {
            let [one, other] = pair(names, header);
            assert_eq!(one.overlaps(&other), !told, "{names:?} {header}");
        }
        let [one, other] = [1, 2].map(|dst| {
            let mut spec = to(&["ethernet", "ipv6", "udp"], 1, dst);
            spec.headers[1].set_received(dst, 0);
            spec.rule(false)
        });
        assert!(one.overlaps(&other));
    }

    #[test]
    fn ranges_tell_flows_apart() {
        let range = |start| Pattern::Increment { start, step: 1, count: 256 };
        let spec = |start| {
            set(stack(&["ethernet", "ipv4", "tcp"]), 2, "dst_port", range(start)).rule(false)
        };
        assert!(!spec(0).overlaps(&spec(256)));
        assert!(!spec(0).overlaps(&spec(0x8000)));
        assert!(!spec(1000).overlaps(&spec(1256)));
        assert!(spec(1000).overlaps(&spec(1255)));
        let port = |port| {
            set(stack(&["ethernet", "ipv4", "tcp"]), 2, "dst_port", Pattern::Value(port))
                .rule(false)
        };
        assert!(!spec(1000).overlaps(&port(999)) && !spec(1000).overlaps(&port(1256)));
        assert!(spec(1000).overlaps(&port(1000)) && spec(1000).overlaps(&port(1255)));
        let spec = |start| set(stack(&["ethernet", "ipv6"]), 1, "dst", range(start)).rule(false);
        assert!(!spec(0).overlaps(&spec(256)));
        assert!(!spec(1 << 64).overlaps(&spec(2 << 64)));
        assert!(!spec(1000).overlaps(&spec(1256)) && spec(1000).overlaps(&spec(1255)));
        // Odd and even numbers, and lists.
        let spec = |pattern| set(stack(&["ethernet", "ipv4"]), 1, "src", pattern).rule(false);
        let steps = |start| Pattern::Increment { start, step: 6, count: 3000 };
        assert!(!spec(steps(4)).overlaps(&spec(steps(5))));
        assert!(spec(steps(4)).overlaps(&spec(steps(6))));
        let list = |values: &[u128]| Pattern::Values(values.to_vec());
        assert!(!spec(list(&[5, 9, 7])).overlaps(&spec(list(&[10, 100]))));
        assert!(spec(list(&[5, 10, 7])).overlaps(&spec(list(&[8, 100]))));
        // Numbers that wrap around are anywhere.
        assert!(
            spec(Pattern::Increment { start: 0xffff_fff0, step: 1, count: 32 })
                .overlaps(&spec(list(&[5000, 6000])))
        );
    }
}
