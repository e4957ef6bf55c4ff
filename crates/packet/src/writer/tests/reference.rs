// SPDX-License-Identifier: BSD-3-Clause
//! Builds one frame by its number: fields as bits, lengths and checksums from the finished bytes.
//! Shares nothing with the writer but the tables and the numbers that are drawn.

use crate::field::Pattern;
use crate::frame::{Checksum, FieldValue, FrameSpec, Header, SignatureSpec};
use crate::headers::{Auto, Cover, FieldKind};
use crate::payload::Payload;
use crate::random::Random;
use crate::size::{Sizes, Walk};

fn value(pattern: &Pattern, frame: u32) -> u128 {
    let turn = |count: u64| u128::from(u64::from(frame) % count.max(1));
    match pattern {
        Pattern::Value(value) => *value,
        Pattern::Values(values) if values.is_empty() => 0,
        Pattern::Values(values) => values[frame as usize % values.len()],
        Pattern::Increment { start, step, count } => {
            start.wrapping_add(step.wrapping_mul(turn(*count)))
        }
        Pattern::Decrement { start, step, count } => {
            start.wrapping_sub(step.wrapping_mul(turn(*count)))
        }
        Pattern::Random { min, max, seed, count } => {
            let mut random = Random::new(*seed);
            for _ in 0..turn(*count) {
                random.between(*min, *max);
            }
            random.between(*min, *max)
        }
    }
}

fn len(sizes: &Sizes, frame: u32) -> usize {
    match sizes {
        Sizes::Fixed(size) => size - 4,
        Sizes::Increment { start, step: 0, .. } => start - 4,
        Sizes::Increment { start, end, step } => {
            let round = (end - start) / step + 1;
            start + frame as usize % round * step - 4
        }
        // Which mix comes in which order is tested where it is made.
        _ => {
            let mut lens = vec![0; frame as usize + 1];
            Walk::new(sizes).fill(&mut lens);
            lens[frame as usize] as usize
        }
    }
}

fn payload_byte(payload: &Payload, at: usize) -> u8 {
    match payload {
        Payload::Fixed { pattern, .. } if pattern.is_empty() => 0,
        Payload::Fixed { pattern, repeat: true } => pattern[at % pattern.len()],
        Payload::Fixed { pattern, repeat: false } => *pattern.get(at).unwrap_or(&0),
        Payload::IncrementByte => (at % 256) as u8,
        Payload::DecrementByte => (255 - at % 256) as u8,
        Payload::IncrementWord => [(at / 2 / 256 % 256) as u8, (at / 2 % 256) as u8][at % 2],
        Payload::DecrementWord => {
            [255 - (at / 2 / 256 % 256) as u8, 255 - (at / 2 % 256) as u8][at % 2]
        }
    }
}

/// The internet checksum, word by word.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) * 256 + u32::from(*pair.get(1).unwrap_or(&0));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    !(sum as u16)
}

fn set(bits: &mut [bool], at: usize, field: &FieldKind, value: u128) {
    for i in 0..field.bits as usize {
        bits[at * 8 + field.offset_bits + i] = value >> (field.bits as usize - 1 - i) & 1 == 1;
    }
}

fn bytes(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8).map(|byte| byte.iter().fold(0, |sum, bit| sum * 2 + u8::from(*bit))).collect()
}

fn last<'a>(header: &'a Header, field: &FieldKind) -> &'a FieldValue {
    let mut found = &FieldValue::Auto;
    for (kind, value) in &header.fields {
        if kind.name == field.name {
            found = value;
        }
    }
    found
}

/// Frame number `frame` of a description.
pub fn frame(spec: &FrameSpec, flow: u16, run: u8, stamp: u64, frame: u32) -> Vec<u8> {
    let len = len(&spec.sizes, frame);
    let starts: Vec<usize> = spec
        .headers
        .iter()
        .scan(0, |at, header| {
            *at += header.len();
            Some(*at - header.len())
        })
        .collect();
    let headers_len: usize = spec.headers.iter().map(Header::len).sum();
    let mut bits = vec![false; headers_len * 8];
    // Patterns win over constants, later constants over earlier, set fields over unset ones.
    for turn in 0..3 {
        for (i, header) in spec.headers.iter().enumerate() {
            // They belong to the header before them.
            let names =
                ["ipv6_segment", "ipv6_segment_pad", "gtpv1_extension", "gtpv1_short_extension"];
            let behind = &spec.headers[i + 1..];
            let parts = behind.iter().position(|part| !names.contains(&part.kind.name));
            let parts = &behind[..parts.unwrap_or(behind.len())];
            let next = behind.get(parts.len()).map(|next| next.kind);
            let segments = parts.iter().position(|part| part.kind.name != "ipv6_segment");
            let segments = segments.unwrap_or(parts.len()) as u128;
            let with_parts = header.len() + parts.iter().map(Header::len).sum::<usize>();
            let set_order: Vec<&FieldKind> = match turn {
                0 => header.kind.fields.iter().collect(),
                _ => header.fields.iter().map(|(kind, _)| *kind).collect(),
            };
            for (n, field) in set_order.iter().enumerate() {
                let there = field.offset_bits + field.bits as usize
                    <= (header.len() - header.options.len()) * 8;
                let again = set_order[n + 1..].iter().any(|other| other.name == field.name);
                if !there || again {
                    continue;
                }
                let given = last(header, field);
                let auto = match field.auto {
                    Auto::Default => None,
                    Auto::EtherType => next.and_then(|n| n.numbers.ether_type).map(u128::from),
                    Auto::IpProtocol => next.and_then(|n| n.numbers.ip_protocol).map(u128::from),
                    Auto::PppProtocol => next.and_then(|n| n.numbers.ppp_protocol).map(u128::from),
                    Auto::UdpPort => next.and_then(|n| n.numbers.udp_port).map(u128::from),
                    Auto::BottomOfStack => Some(u128::from(next.is_none_or(|n| n.name != "mpls"))),
                    Auto::HeaderWords => Some(header.len() as u128 / 4),
                    Auto::ExtensionWords => Some((with_parts as u128 / 8).max(1) - 1),
                    Auto::Segments(less) => Some(segments.max(less.into()) - u128::from(less)),
                    Auto::PadLength => Some(header.len() as u128 - 2),
                    Auto::Length(from) => Some((len - starts[i]).saturating_sub(from) as u128),
                    Auto::Checksum(_) => Some(0),
                };
                let auto = auto.unwrap_or(field.default);
                let (wanted, value) = match given {
                    FieldValue::Auto => (0, auto),
                    FieldValue::Checksum(Checksum::Custom(value)) => (1, u128::from(*value)),
                    FieldValue::Checksum(_) => (0, 0),
                    FieldValue::Pattern(Pattern::Value(value))
                        if field.default_is_auto && *value == field.default =>
                    {
                        (1, auto)
                    }
                    FieldValue::Pattern(pattern) => {
                        (if pattern.is_constant() { 1 } else { 2 }, value(pattern, frame))
                    }
                };
                if turn == wanted {
                    set(&mut bits, starts[i], field, value);
                }
            }
        }
    }
    let mut out = bytes(&bits);
    for (header, start) in spec.headers.iter().zip(&starts) {
        let end = start + header.len();
        out[end - header.options.len()..end].copy_from_slice(&header.options);
    }
    behind(spec, flow, run, stamp, frame, len, &mut out);
    for (i, header) in spec.headers.iter().enumerate().rev() {
        for field in header.kind.fields {
            let Auto::Checksum(cover) = field.auto else { continue };
            let bad = match last(header, field) {
                FieldValue::Auto | FieldValue::Checksum(Checksum::Good) => false,
                FieldValue::Checksum(Checksum::Bad) => true,
                _ => continue,
            };
            let at = starts[i] + field.offset_bits / 8;
            if field.offset_bits + 16 > (header.len() - header.options.len()) * 8 {
                continue;
            }
            let mut covered = match cover {
                Cover::Header => out[starts[i]..starts[i] + header.len()].to_vec(),
                _ => out[starts[i]..].to_vec(),
            };
            if cover == Cover::RestAndPseudoHeader {
                covered = [pseudo(spec, &starts, i, &out), covered].concat();
            }
            let udp = header.kind.name == "udp";
            let or_ones = |sum: u16| if udp && sum == 0 { 0xffff } else { sum };
            let right = or_ones(checksum(&covered));
            let sum = if bad { or_ones(!(!checksum(&covered)) ^ 1) } else { right };
            if bad {
                assert_ne!(sum, right);
            }
            out[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
    }
    out
}

/// The pseudo-header: addresses of the nearest IP header, zero, protocol, length.
fn pseudo(spec: &FrameSpec, starts: &[usize], i: usize, out: &[u8]) -> Vec<u8> {
    let protocol = match spec.headers[i].kind.name {
        "udp" => 17,
        "tcp" => 6,
        "icmpv6" => 58,
        other => panic!("{other} has no pseudo-header"),
    };
    let mut bytes = Vec::new();
    for j in (0..i).rev() {
        let addresses = match spec.headers[j].kind.name {
            "ipv4" => 12..20,
            "ipv6" => 8..40,
            _ => continue,
        };
        let mut addresses = out[starts[j]..][addresses].to_vec();
        if spec.headers[j].kind.name == "ipv6" {
            let segment = (j + 1..i).rev().find(|k| {
                let list = &spec.headers[k - 1];
                spec.headers[*k].kind.name == "ipv6_segment"
                    && list.kind.name == "ipv6_extension_header"
                    && out[starts[k - 1] + 3] > 0
            });
            if let Some(segment) = segment {
                addresses[16..].copy_from_slice(&out[starts[segment]..][..16]);
            }
            if let Some((sent, received)) = spec.headers[segment.unwrap_or(j)].received {
                let found = u128::from_be_bytes(addresses[16..].try_into().unwrap());
                let found = (found - sent + received).to_be_bytes();
                addresses[16..].copy_from_slice(&found);
            }
        }
        bytes.extend(addresses);
        break;
    }
    bytes.extend([0, protocol]);
    bytes.extend(((out.len() - starts[i]) as u32).to_be_bytes());
    bytes
}

/// Payload, extension and signature.
fn behind(
    spec: &FrameSpec,
    flow: u16,
    run: u8,
    stamp: u64,
    frame: u32,
    len: usize,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let Some(signature) = spec.signature else {
        out.extend((0..len - start).map(|at| payload_byte(&spec.payload, at)));
        return;
    };
    let (stamped, integrity) = match signature {
        SignatureSpec::Full { stamped, integrity } => (stamped, integrity),
        SignatureSpec::Short => {
            let at = (len - 8) / 2 * 2;
            out.extend((0..at - start).map(|at| payload_byte(&spec.payload, at)));
            let mut tail = (u16::from(run % 4) << 14 | flow).to_be_bytes().to_vec();
            tail.extend(frame.to_be_bytes());
            let check = checksum(&[&tail[..], &[0x4c, 0x52]].concat());
            out.extend(tail);
            out.extend(check.to_be_bytes());
            out.resize(len, 0);
            return;
        }
    };
    let at = (len - 18) / 2 * 2;
    let end = if integrity { at - 4 } else { at };
    out.extend((0..end - start).map(|at| payload_byte(&spec.payload, at)));
    if integrity {
        let length = (end - start) as u16;
        // Words of the payload are counted from the frame's start.
        let mut covered = vec![0; start % 2];
        covered.extend(&out[start..]);
        covered.extend(length.to_be_bytes());
        out.extend(length.to_be_bytes());
        out.extend(checksum(&covered).to_be_bytes());
    }
    let stamp = match (stamped, stamp % (1 << 48)) {
        (false, _) => 0,
        (true, 0) => 1,
        (true, stamp) => stamp,
    };
    let flow = if integrity { flow + 0x8000 } else { flow };
    let mut tail = vec![0x4c, 0x52, 0x9d, run];
    tail.extend(flow.to_be_bytes());
    tail.extend(frame.to_be_bytes());
    tail.extend(&stamp.to_be_bytes()[2..]);
    let check = checksum(&tail);
    out.extend(tail);
    out.extend(check.to_be_bytes());
    out.resize(len, 0);
}
