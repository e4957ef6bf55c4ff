// SPDX-License-Identifier: BSD-3-Clause
//! Every frame is compared, byte for byte, with what a slow reference makes of the description.

mod known;
mod reference;

use super::*;
use crate::field::Pattern;
use crate::frame::{Checksum, FieldValue, Header, SignatureSpec};
use crate::headers::{self, HeaderKind, KINDS, PARTS};
use crate::signature::short::{self, ShortSignature};
use crate::signature::{self, Reading, Signature};
use proptest::prelude::*;
use proptest::sample::Index;

/// A buffer that keeps what it held, like one of a pool.
struct Held(Vec<u8>);

impl Buffer for Held {
    fn resize(&mut self, len: usize) -> Option<&mut [u8]> {
        self.0.get_mut(..len)
    }
}

fn pattern(bits: u32) -> impl Strategy<Value = Pattern> {
    let top = if bits == 0 { 0 } else { u128::MAX >> (128 - bits) };
    let counts = || prop_oneof![0u64..5, 28u64..36, 60u64..1000, Just(u64::MAX)];
    // Steps near the top are small steps down.
    let steps = || prop_oneof![0u128..4, any::<u128>(), (0u128..4).prop_map(u128::wrapping_neg)];
    let value = || prop_oneof![0..=top, Just(0), Just(top), any::<u128>()];
    prop_oneof![
        value().prop_map(Pattern::Value),
        prop::collection::vec(value(), 0..40).prop_map(Pattern::Values),
        (value(), steps(), counts()).prop_map(|(start, step, count)| Pattern::Increment {
            start,
            step,
            count
        }),
        (value(), steps(), counts()).prop_map(|(start, step, count)| Pattern::Decrement {
            start,
            step,
            count
        }),
        (0..=top, 0..=top, any::<u64>(), prop_oneof![0u64..90, Just(crate::field::MAX_DRAWN + 1)])
            .prop_map(|(a, b, seed, count)| Pattern::Random {
                min: a.min(b),
                max: a.max(b),
                seed,
                count
            }),
    ]
}

/// A value for a field that is chosen later: pattern by width, or a word for checksums.
#[derive(Clone, Debug)]
struct Wish {
    field: Index,
    patterns: [Pattern; 4],
    checksum: Option<Checksum>,
}

fn wish() -> impl Strategy<Value = Wish> {
    let checksum = prop_oneof![
        Just(None),
        Just(Some(Checksum::Good)),
        Just(Some(Checksum::Bad)),
        any::<u16>().prop_map(|value| Some(Checksum::Custom(value)))
    ];
    (any::<Index>(), [pattern(8), pattern(16), pattern(32), pattern(128)], checksum)
        .prop_map(|(field, patterns, checksum)| Wish { field, patterns, checksum })
}

fn header(kind: &'static HeaderKind, wishes: Vec<Wish>, options: Vec<u8>) -> Header {
    let mut header = Header::new(kind);
    for wish in wishes.iter().filter(|_| !kind.fields.is_empty()) {
        let field = wish.field.get(kind.fields);
        let flag = kind.optional.is_some_and(|optional| optional.flags.contains(&field.name));
        // Two changing fields must not share bits: of IPv4's overlapping ones only DSCP changes.
        // Checksums behind need to know whether there are segments left.
        let fixed = flag
            || field.name == "segments_left"
            || field.name.starts_with("priority.raw")
            || field.name.contains(".tos.");
        let [small, half, word, large] = &wish.patterns;
        let pattern = match field.bits {
            0..=8 => small,
            9..=16 => half,
            17..=32 => word,
            _ => large,
        };
        let value = match wish.checksum {
            Some(checksum) if field.is_checksum() => FieldValue::Checksum(checksum),
            _ if fixed => FieldValue::Pattern(Pattern::Value(pattern.first())),
            _ => FieldValue::Pattern(pattern.clone()),
        };
        header.set(field.name, value).unwrap();
    }
    let most = options.len().min(kind.max_options);
    header.set_options(&options[..most]);
    header
}

fn any_header() -> impl Strategy<Value = Header> {
    let options = prop_oneof![
        4 => Just(Vec::new()),
        1 => prop::collection::vec(any::<u8>(), 0..45)
    ];
    (any::<Index>(), prop::collection::vec(wish(), 0..5), options).prop_map(
        |(kind, wishes, options)| {
            let all = [KINDS, PARTS].concat();
            header(all[kind.index(all.len())], wishes, options)
        },
    )
}

/// A kind of header or part.
fn kind(name: &str) -> &'static HeaderKind {
    KINDS.iter().chain(PARTS).find(|kind| kind.name == name).unwrap()
}

/// Lets the last hop receive another address than a header has, in its low bits.
fn receive_otherwise(header: &mut Header, received: u128) {
    let (field, sent) = match header.kind().name {
        "ipv6_segment" => ("segment", 0x0001_0002_u128),
        "ipv6" => ("dst", 0xffff_0000),
        _ => return,
    };
    header.set(field, Pattern::Increment { start: sent, step: 1 << 32, count: 5 }).unwrap();
    header.set_received(sent, received);
}

/// Stacks that people send, with their fields changing.
fn usual_headers() -> impl Strategy<Value = Vec<Header>> {
    const STACKS: [&[&str]; 12] = [
        &["ethernet", "ipv4", "udp"],
        &["ethernet", "vlan", "vlan", "ipv6", "udp"],
        &["ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "udp"],
        &["ethernet", "ipv6", "udp", "vxlan", "ethernet", "vlan", "ipv6", "tcp"],
        &["ethernet", "mpls", "mpls", "ipv4", "tcp"],
        &["ethernet", "ipv4", "gre", "ipv6", "icmpv6"],
        &["ethernet", "ipv4", "udp", "gtpv1", "ipv4", "icmp"],
        &["ethernet", "ipv6", "ipv6_extension_header", "ipv6_segment", "ipv6_segment", "udp"],
        &[
            "ethernet",
            "ipv6",
            "ipv6_extension_header",
            "ipv6_extension_header",
            "ipv6_segment",
            "ipv6_segment_pad",
            "ipv6_extension_header",
            "ipv6_segment",
            "tcp",
        ],
        &["custom", "ipv6", "ipv6_extension_header", "ipv6_segment", "ipv6_segment_pad", "icmpv6"],
        &["ethernet", "ipv4", "udp", "gtpv1", "gtpv1_short_extension", "gtpv1_extension", "ipv6"],
        &["custom", "ipv6", "udp", "custom", "ipv4", "gre", "ppp", "ipv4", "udp"],
    ];
    let wishes = prop::collection::vec(prop::collection::vec(wish(), 0..5), 9);
    let received = prop::option::of(any::<u32>());
    (any::<Index>(), wishes, prop::collection::vec(any::<u8>(), 0..4), received).prop_map(
        |(stack, wishes, bytes, received)| {
            let names = stack.get(&STACKS).iter().zip(wishes);
            let options = |name: &str| if name == "custom" { bytes.clone() } else { Vec::new() };
            let mut stack: Vec<Header> =
                names.map(|(name, wishes)| header(kind(name), wishes, options(name))).collect();
            for header in stack.iter_mut().filter(|_| received.is_some()) {
                receive_otherwise(header, received.unwrap_or(0).into());
            }
            stack
        },
    )
}

fn sizes(least: usize, kind: u8, more: usize, step: usize, seed: u64) -> Sizes {
    let most = (least + more).min(crate::size::MAX_LEN_WITH_FCS);
    match kind {
        0 | 1 => Sizes::Fixed(most),
        2 => Sizes::Increment { start: least, end: most, step },
        3 => Sizes::Random { min: least, max: most, seed },
        _ => Sizes::Weighted(vec![(least, 7.0), (most, 4.0), ((least + most) / 2, 1.0)]),
    }
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        Just(Payload::default()),
        (prop::collection::vec(any::<u8>(), 0..5), any::<bool>())
            .prop_map(|(pattern, repeat)| Payload::Fixed { pattern, repeat }),
        Just(Payload::IncrementByte),
        Just(Payload::DecrementByte),
        Just(Payload::IncrementWord),
        Just(Payload::DecrementWord),
    ]
}

prop_compose! {
    fn specs()(
        headers in prop_oneof![prop::collection::vec(any_header(), 0..9), usual_headers()],
        payload in payload(),
        signature in prop::option::of((any::<bool>(), any::<bool>(), 0..3)),
        size in (0u8..5, 0usize..300, 0usize..20, any::<u64>()),
    ) -> FrameSpec {
        let signature = signature.map(|(stamped, integrity, kind)| match kind {
            0 => SignatureSpec::Short,
            _ => SignatureSpec::Full { stamped, integrity },
        });
        let mut spec = FrameSpec { headers, sizes: Sizes::Fixed(64), payload, signature };
        let (kind, more, step, seed) = size;
        spec.sizes = sizes(spec.min_len_with_fcs(), kind, more, step, seed);
        spec
    }
}

/// Writes bursts of these lengths and compares each frame with the reference.
fn check(spec: &FrameSpec, flow: u16, run: u8, stamp: u64, bursts: &[usize], resident: bool) {
    let mut writer = FrameWriter::new(spec, flow).unwrap();
    writer.restart(run);
    let resident = resident && writer.still_part().is_some();
    let longest = longest(&spec.sizes);
    let mut sequence = 0u32;
    for n in bursts {
        let mut frames: Vec<Held> = (0..*n).map(|_| Held(vec![0xa5; longest])).collect();
        if resident {
            frames.iter_mut().for_each(|frame| writer.write_still(&mut frame.0));
        }
        assert_eq!(writer.sequence(), sequence);
        let first = writer.peek_len();
        writer.write(&mut frames, stamp, resident);
        for (i, frame) in frames.iter().enumerate() {
            let wanted = reference::frame(spec, flow, run, stamp, sequence);
            if i == 0 {
                assert_eq!(first, wanted.len());
            }
            assert_eq!(hex(&frame.0[..wanted.len()]), hex(&wanted), "frame {sequence} of {spec:?}");
            assert!(frame.0[wanted.len()..].iter().all(|byte| *byte == 0xa5));
            match spec.signature {
                None => {}
                Some(SignatureSpec::Short) => {
                    let ours = ShortSignature { run: run & (short::RUNS - 1), flow, sequence };
                    assert_eq!(ShortSignature::read(&wanted), Some(ours));
                }
                Some(SignatureSpec::Full { stamped, integrity }) => {
                    let stamp = if stamped { signature::stamp_of(stamp) } else { 0 };
                    let ours = Signature { run, flow, sequence, stamp };
                    assert_eq!(Signature::inspect(&wanted), Reading::Ours(ours));
                    let intact = integrity.then_some(true);
                    assert_eq!(signature::payload_is_intact(&frame.0[..wanted.len()]), intact);
                }
            }
            sequence += 1;
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn frames_are_those_of_the_reference(
        spec in specs(), flow in 0..signature::MAX_FLOWS, run: u8, stamp: u64,
        bursts in prop::collection::vec(0usize..70, 1..4), resident: bool,
    ) {
        let flow = flow % spec.signature.unwrap_or_default().max_flows();
        check(&spec, flow, run, stamp, &bursts, resident);
    }

    #[test]
    fn other_sizes_go_on_with_the_fields(spec in specs(), more in 0usize..99, n in 1usize..70) {
        let mut writer = FrameWriter::new(&spec, 1).unwrap();
        let mut frames = vec![Vec::new(); n];
        writer.write(&mut frames, 7, false);
        let sizes = Sizes::Fixed(spec.min_len_with_fcs() + more);
        let spec = FrameSpec { sizes, ..spec };
        let mut old = std::mem::replace(&mut writer, FrameWriter::new(&spec, 1).unwrap());
        writer.go_on_from(&mut old);
        writer.write(&mut frames, 7, false);
        for (i, frame) in (n as u32..).zip(&frames) {
            prop_assert_eq!(hex(frame), hex(&reference::frame(&spec, 1, 0, 7, i)));
        }
        // Again from the first frame.
        writer.restart(3);
        writer.write(&mut frames[..1], 7, false);
        prop_assert_eq!(hex(&frames[0]), hex(&reference::frame(&spec, 1, 3, 7, 0)));
    }
}

#[test]
fn flows_have_fifteen_bits_and_fourteen_in_short_signatures() {
    let error =
        |spec: &FrameSpec, flow| FrameWriter::new(spec, flow).map(drop).map_err(|e| e.to_string());
    let spec = known::udp(64);
    assert_eq!(error(&spec, 0x7fff), Ok(()));
    let wanted = "flow number 32768: choose one below 32768";
    assert_eq!(error(&spec, 0x8000), Err(wanted.to_owned()));
    let spec = FrameSpec { signature: Some(SignatureSpec::Short), ..spec };
    assert_eq!(error(&spec, 0x3fff), Ok(()));
    let wanted = "flow number 16384: choose one below 16384";
    assert_eq!(error(&spec, 0x4000), Err(wanted.to_owned()));
}

#[test]
fn two_changing_fields_must_not_share_bits() {
    let count = Pattern::Increment { start: 0, step: 1, count: 4 };
    let mut spec = known::udp(64);
    spec.headers[1].set("priority.raw", count.clone()).unwrap();
    spec.headers[1].set("priority.dscp.ecn", count).unwrap();
    let error = FrameWriter::new(&spec, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ipv4.priority.raw and ipv4.priority.dscp.ecn share bits; let only one of them change"
    );
}

#[test]
fn a_udp_checksum_is_never_zero() {
    // One of all source ports makes the sum all ones.
    let mut spec = known::udp(64);
    let ports = Pattern::Increment { start: 0, step: 1, count: 65_536 };
    spec.headers[2].set("src_port", ports).unwrap();
    let mut writer = FrameWriter::new(&spec, 0).unwrap();
    let mut frames = vec![Vec::new(); 65_536];
    writer.write(&mut frames, 0, false);
    let ones = frames.iter().filter(|frame| frame[40..42] == [0xff, 0xff]).count();
    assert_eq!(ones, 1);
    assert!(frames.iter().all(|frame| frame[40..42] != [0, 0]));
}

#[test]
fn a_buffer_that_refuses_is_left_out() {
    struct Short([u8; 59]);
    impl Buffer for Short {
        fn resize(&mut self, len: usize) -> Option<&mut [u8]> {
            self.0.get_mut(..len)
        }
    }
    let mut writer = FrameWriter::new(&known::udp(64), 0).unwrap();
    let mut short = [Short([0xa5; 59])];
    writer.write(&mut short, 0, false);
    assert_eq!((short[0].0, writer.sequence()), ([0xa5; 59], 1));
}

#[test]
fn buffers_are_shared_by_equal_payloads_only() {
    let still = |spec: &FrameSpec| FrameWriter::new(spec, 0).unwrap().still_part();
    let spec = known::udp(128);
    let other = FrameSpec { payload: Payload::IncrementByte, ..spec.clone() };
    assert_eq!(still(&spec), still(&spec));
    assert_ne!(still(&spec), still(&other));
    assert_ne!(still(&spec), still(&known::udp(129)));
    assert_eq!(still(&FrameSpec { sizes: Sizes::preset("imix").unwrap(), ..spec }), None);
}
