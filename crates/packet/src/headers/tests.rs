// SPDX-License-Identifier: BSD-3-Clause
use super::*;

#[test]
fn tables_are_sound() {
    for kind in KINDS.iter().chain(PARTS) {
        let most = kind.len + kind.optional.map_or(0, |optional| optional.len);
        for (i, field) in kind.fields.iter().enumerate() {
            let name = format!("{}.{}", kind.name, field.name);
            assert!(field.end_bits() <= most * 8, "{name} fits");
            assert!(field.default <= field.max(), "{name} has a default that fits");
            // What the writer can do: any bits of at most 16 whole bytes.
            assert!(field.end_bits().div_ceil(8) - field.offset_bits / 8 <= 16, "{name}");
            if field.is_checksum() {
                assert_eq!((field.bits, field.offset_bits % 16), (16, 0), "{name}");
            }
            let optional = field.end_bits() > kind.len * 8;
            assert!(!optional || field.offset_bits >= kind.len * 8, "{name} is whole");
            let same = kind.fields[i + 1..].iter().any(|other| other.name == field.name);
            assert!(!same, "{name} is there once");
        }
        for flag in kind.optional.iter().flat_map(|optional| optional.flags) {
            assert!(kind.field(flag).is_some_and(|flag| flag.end_bits() <= kind.len * 8));
        }
        assert_eq!(super::kind(kind.name), (!kind.is_part()).then_some(*kind));
        assert_eq!(kind.is_part(), !KINDS.contains(kind));
        assert_eq!(kind.max_options % 4, 0);
    }
    assert_eq!(kind("carrier_pigeon"), None);
}

#[test]
fn every_bit_has_a_field() {
    for kind in KINDS.iter().chain(PARTS) {
        let most = kind.len + kind.optional.map_or(0, |optional| optional.len);
        let mut bits = vec![false; most * 8];
        kind.fields.iter().for_each(|f| bits[f.offset_bits..f.end_bits()].fill(true));
        let free: Vec<usize> = (0..bits.len()).filter(|i| !bits[*i]).collect();
        // Reserved in TCP, the urgent pointer (which OTG does not have), VXLAN has its own names.
        let known: Vec<usize> = match kind.name {
            "tcp" => (100..103).chain(144..160).collect(),
            _ => Vec::new(),
        };
        assert_eq!(free, known, "{}", kind.name);
    }
}
