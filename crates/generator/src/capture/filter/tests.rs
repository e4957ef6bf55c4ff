// SPDX-License-Identifier: BSD-3-Clause

use super::*;
use proptest::prelude::*;

/// Ethernet, tags, IPv4 (with options) or IPv6, and a payload that counts.
fn frame(tags: &[u16], version: u8, options: usize) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];
    for (i, tag) in tags.iter().enumerate() {
        frame
            .extend([if i == 0 { 0x88a8u16 } else { 0x8100 }, *tag].map(u16::to_be_bytes).concat());
    }
    let header: Vec<u8> = if version == 4 {
        frame.extend([0x08, 0x00]);
        let mut header = vec![0x45 + options as u8, 0x12, 0, 99, 0xab, 0xcd, 0x40, 0, 64, 17, 1, 2];
        header.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        header.extend(vec![1; options * 4]);
        header
    } else {
        frame.extend([0x86, 0xdd]);
        let mut header = vec![0x61, 0x2a, 0xbc, 0xde, 0, 50, 6, 63];
        header.extend((0..32).map(|i| 0x20 + i));
        header
    };
    frame.extend(header);
    frame.extend(100..150);
    frame
}

fn filter(list: impl FnOnce(&mut FilterBuilder) -> Result<(), FilterError>) -> Filter {
    let mut builder = FilterBuilder::default();
    list(&mut builder).unwrap();
    builder.build()
}

fn masked(value: &[u8], mask: &[u8], negate: bool) -> Wanted {
    Wanted { value: value.to_vec(), mask: mask.to_vec(), negate }
}

#[test]
fn every_field_is_where_the_protocol_has_it() {
    let (v4, v6, tagged) = (frame(&[], 4, 0), frame(&[], 6, 0), frame(&[0xb064], 4, 0));
    let cases: &[(&Vec<u8>, Layer, &str, &[u8])] = &[
        (&v4, Layer::Ethernet, "dst", &[2, 0, 0, 0, 0, 1]),
        (&v4, Layer::Ethernet, "src", &[2, 0, 0, 0, 0, 2]),
        (&v4, Layer::Ethernet, "ether_type", &[8, 0]),
        (&tagged, Layer::Ethernet, "ether_type", &[0x88, 0xa8]),
        (&tagged, Layer::Vlan, "priority", &[5]),
        (&tagged, Layer::Vlan, "cfi", &[1]),
        (&tagged, Layer::Vlan, "id", &[0x64]),
        (&tagged, Layer::Vlan, "protocol", &[8, 0]),
        (&v4, Layer::Ipv4, "version", &[4]),
        (&v4, Layer::Ipv4, "header_length", &[5]),
        (&v4, Layer::Ipv4, "priority", &[0x12]),
        (&v4, Layer::Ipv4, "total_length", &[99]),
        (&v4, Layer::Ipv4, "identification", &[0xab, 0xcd]),
        (&v4, Layer::Ipv4, "dont_fragment", &[1]),
        (&v4, Layer::Ipv4, "time_to_live", &[64]),
        (&v4, Layer::Ipv4, "protocol", &[17]),
        (&v4, Layer::Ipv4, "header_checksum", &[1, 2]),
        (&v4, Layer::Ipv4, "src", &[10, 0, 0, 1]),
        (&tagged, Layer::Ipv4, "dst", &[10, 0, 0, 2]),
        (&v6, Layer::Ipv6, "version", &[6]),
        (&v6, Layer::Ipv6, "traffic_class", &[0x12]),
        (&v6, Layer::Ipv6, "flow_label", &[0x0a, 0xbc, 0xde]),
        (&v6, Layer::Ipv6, "payload_length", &[50]),
        (&v6, Layer::Ipv6, "next_header", &[6]),
        (&v6, Layer::Ipv6, "hop_limit", &[63]),
        (&v6, Layer::Ipv6, "src", &v6[22..38]),
        (&v6, Layer::Ipv6, "dst", &v6[38..54]),
    ];
    for (frame, layer, name, value) in cases {
        for negate in [false, true] {
            let filter = filter(|list| {
                list.header(*layer)?;
                list.field(name, &Wanted { negate, ..Wanted::exactly(value) })
            });
            assert_eq!(filter.matches(frame), !negate, "{layer:?} {name} {negate}");
        }
        // A value that differs in one bit.
        let mut other = value.to_vec();
        *other.last_mut().unwrap() ^= 1;
        let mut list = FilterBuilder::default();
        list.header(*layer).unwrap();
        list.field(name, &masked(&other, value_mask(*layer, name).as_slice(), false)).unwrap();
        assert!(!list.build().matches(frame), "{layer:?} {name}");
    }
    for (name, mask) in [("reserved", 1), ("more_fragments", 1), ("fragment_offset", 0xff)] {
        let zero = filter(|list| {
            list.header(Layer::Ipv4)?;
            list.field(name, &masked(&[0], &[mask], false))
        });
        assert!(zero.matches(&v4), "{name}");
    }
}

/// A mask over the whole field, so that the value 0 can be matched.
fn value_mask(layer: Layer, name: &str) -> Vec<u8> {
    let bits = layer.table().iter().find(|(field, ..)| *field == name).unwrap().2 as usize;
    let mut mask = vec![0xff; bits.div_ceil(8)];
    mask[0] >>= bits.div_ceil(8) * 8 - bits;
    mask
}

#[test]
fn a_header_alone_selects_frames_that_have_it() {
    let frames = [frame(&[], 4, 0), frame(&[], 6, 0), frame(&[1], 4, 0), frame(&[1, 2], 6, 0)];
    for (headers, expected) in [
        (&[][..], [true, true, true, true]),
        (&[Layer::Ethernet], [true, true, true, true]),
        (&[Layer::Vlan], [false, false, true, true]),
        (&[Layer::Vlan, Layer::Vlan], [false, false, false, true]),
        (&[Layer::Ethernet, Layer::Ipv4], [true, false, true, false]),
        (&[Layer::Ipv6], [false, true, false, true]),
        (&[Layer::Vlan, Layer::Ipv6], [false, false, false, true]),
    ] {
        let filter = filter(|list| headers.iter().try_for_each(|layer| list.header(*layer)));
        assert_eq!(frames.each_ref().map(|frame| filter.matches(frame)), expected, "{headers:?}");
        assert_eq!(filter.is_empty(), headers.is_empty());
    }
}

#[test]
fn all_filters_of_a_list_must_match() {
    let both = filter(|list| {
        list.header(Layer::Vlan)?;
        list.field("id", &Wanted::exactly(&[7]))?;
        list.header(Layer::Vlan)?;
        list.field("id", &Wanted::exactly(&[8]))?;
        list.header(Layer::Ipv4)?;
        list.field("dst", &masked(&[10, 0, 0, 0], &[0xff, 0xff, 0, 0], false))
    });
    assert!(both.matches(&frame(&[7, 8], 4, 0)));
    assert!(!both.matches(&frame(&[8, 7], 4, 0)));
    assert!(!both.matches(&frame(&[7], 4, 0)));
    assert!(!both.matches(&frame(&[7, 8], 6, 0)));
}

#[test]
fn negation_is_no_substitute_for_a_header() {
    let not = filter(|list| {
        list.header(Layer::Ipv4)?;
        list.field("dst", &Wanted { negate: true, ..Wanted::exactly(&[1, 2, 3, 4]) })
    });
    assert!(not.matches(&frame(&[], 4, 0)));
    assert!(!not.matches(&frame(&[], 6, 0)));
    assert!(!not.matches(&frame(&[], 4, 0)[..33]), "a header cut short");
}

#[test]
fn custom_offsets_count_from_the_end_of_the_filter_before() {
    // From the frame's start, then from the end of the previous filter.
    let two = filter(|list| {
        list.custom(0, 48, &Wanted::exactly(&[2, 0, 0, 0, 0, 1]))?;
        list.custom(0, 48, &Wanted::exactly(&[2, 0, 0, 0, 0, 2]))?;
        list.custom(16 + 4, 4, &Wanted::exactly(&[5]))
    });
    assert!(two.matches(&frame(&[], 4, 0)));
    assert!(!two.matches(&frame(&[], 6, 0)));
    // After IPv4 with and without options and tags: the payload's third byte.
    let behind = |layer| {
        filter(|list| {
            list.header(layer)?;
            list.custom(16, 8, &Wanted::exactly(&[102]))
        })
    };
    for (tags, options) in [(&[][..], 0), (&[1, 2], 0), (&[], 10), (&[1], 3)] {
        assert!(behind(Layer::Ipv4).matches(&frame(tags, 4, options)), "{tags:?} {options}");
        assert!(behind(Layer::Ipv6).matches(&frame(tags, 6, 0)), "{tags:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let mut list = FilterBuilder::default();
    assert_eq!(list.field("dst", &Wanted::default()), Err(FilterError::NoHeader));
    list.header(Layer::Vlan).unwrap();
    assert!(matches!(list.field("dst", &Wanted::default()), Err(FilterError::NoField { .. })));
    let field = |wanted| list.clone().field("priority", &wanted);
    assert_eq!(
        field(Wanted::exactly(&[8])),
        Err(FilterError::TooWide { what: "value", has: 4, bits: 3 })
    );
    assert_eq!(
        field(masked(&[1], &[1, 0], false)),
        Err(FilterError::TooWide { what: "mask", has: 9, bits: 3 })
    );
    assert_eq!(field(masked(&[6], &[4], false)), Err(FilterError::OutsideMask));
    assert_eq!(field(masked(&[0], &[0], true)), Err(FilterError::NegatesNothing));
    assert_eq!(field(masked(&[0, 0, 1], &[], false)), Ok(()));
    for (offset, bits) in [(0, 0), (0, MAX_CUSTOM_BITS + 1), (MAX_CUSTOM_OFFSET, 8), (u32::MAX, 8)]
    {
        let custom = list.clone().custom(offset, bits, &Wanted::default());
        assert_eq!(custom, Err(FilterError::CustomRange));
    }
    list.header(Layer::Ipv4).unwrap();
    assert_eq!(list.header(Layer::Ipv6), Err(FilterError::Contradiction));
    for _ in 1..MAX_TAGS {
        list.header(Layer::Vlan).unwrap();
    }
    assert_eq!(list.header(Layer::Vlan), Err(FilterError::TooManyTags));
}

/// The meaning of a custom filter, bit by bit.
fn by_bits(frame: &[u8], offset: u32, bits: u32, wanted: &Wanted) -> bool {
    if (offset + bits).div_ceil(8) as usize > frame.len() {
        return false;
    }
    let everything = significant(&wanted.mask) == 0;
    let same = (0..bits).all(|i| {
        let at = offset + bits - 1 - i;
        let there = frame[at as usize / 8] >> (7 - at % 8) & 1 == 1;
        !(everything || bit(&wanted.mask, i)) || there == bit(&wanted.value, i)
    });
    same != wanted.negate
}

proptest! {
    #[test]
    fn custom_filters_compare_as_bit_by_bit(
        bytes in prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x80, 0xff]), 0..24),
        offset in 0u32..70, bits in 1u32..90,
        value in prop::collection::vec(any::<u8>(), 0..12),
        mask in prop::collection::vec(any::<u8>(), 0..12),
        copied in any::<bool>(), negate in any::<bool>(),
    ) {
        let mut wanted = masked(&value, &mask, negate);
        if copied {
            // Match the bytes that are there, as far as the frame goes.
            let at = |i: u32| bytes.get(i as usize / 8).map_or(0, |byte| byte >> (7 - i % 8) & 1);
            let number = (0..bits).fold(0u128, |number, i| number << 1 | u128::from(at(offset + i)));
            wanted = masked(&number.to_be_bytes(), &[], negate);
        }
        let mut list = FilterBuilder::default();
        if list.custom(offset, bits, &wanted).is_ok() && significant(&wanted.value) > 0 {
            let filter = list.build();
            prop_assert_eq!(filter.matches(&bytes), by_bits(&bytes, offset, bits, &wanted));
        }
    }

    // Random bytes, with headers that make the walk go far, and random filters: never a panic.
    #[test]
    fn nothing_that_arrives_can_hurt(
        mut bytes in prop::collection::vec(any::<u8>(), 0..120),
        tags in 0usize..10, kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 5]),
        steps in prop::collection::vec((0usize..5, 0u32..600, 1u32..200), 0..8),
    ) {
        for i in 0..=tags {
            let wanted = if i == tags { kind } else { 0x8100 };
            if let Some(place) = bytes.get_mut(12 + i * 4..14 + i * 4) {
                place.copy_from_slice(&wanted.to_be_bytes());
            }
        }
        let mut list = FilterBuilder::default();
        for (step, offset, bits) in steps {
            let layers = [Layer::Ethernet, Layer::Vlan, Layer::Ipv4, Layer::Ipv6];
            let _ = match layers.get(step) {
                Some(layer) => list.header(*layer).and_then(|()| {
                    let field = layer.fields().nth(offset as usize % 3).unwrap_or_default();
                    list.field(field, &Wanted { negate: bits % 2 == 0, ..Wanted::exactly(&[1]) })
                }),
                None => list.custom(offset, bits, &Wanted { negate: true, ..Wanted::exactly(&[1]) }),
            };
        }
        let filter = list.build();
        for end in 0..=bytes.len() {
            filter.matches(&bytes[..end]);
        }
    }
}
