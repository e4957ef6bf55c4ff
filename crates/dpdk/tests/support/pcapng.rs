// SPDX-License-Identifier: BSD-3-Clause
//! Reads captured files and checks their structure: those parts of draft-ietf-opsawg-pcapng that
//! tests need.
#![allow(dead_code)] // No test uses all of it.

/// The parts of a block that tests use.
#[derive(Debug, PartialEq)]
pub enum Block {
    Section { application: String, comment: Option<String> },
    Interface { name: String, mac: Option<[u8; 6]>, bits: Option<u64> },
    Packet(Packet),
    Statistics { interface: u32, seen: u64, dropped: u64, from: u64, to: u64 },
}

/// An enhanced packet.
#[derive(Debug, PartialEq)]
pub struct Packet {
    pub interface: u32,
    pub nanoseconds: u64,
    pub len: usize,
    pub bytes: Vec<u8>,
    /// From epb_flags: 1 is inbound, 2 outbound.
    pub way: u32,
    pub queue: u32,
    /// epb_dropcount.
    pub lost: u64,
}

/// The blocks of a file in this machine's byte order.
pub fn blocks(mut file: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let len = word(file, 4) as usize;
        assert!(len >= 12 && len % 4 == 0, "a block of {len} bytes");
        let (block, rest) = file.split_at(len);
        assert_eq!(word(block, len - 4) as usize, len, "the length at its end");
        blocks.push(read(word(block, 0), &block[8..len - 4]));
        file = rest;
    }
    blocks
}

fn read(kind: u32, body: &[u8]) -> Block {
    match kind {
        0x0a0d_0d0a => {
            assert_eq!(word(body, 0), 0x1a2b_3c4d);
            assert_eq!((word(body, 4), body[8..16].to_vec()), (1, vec![0xff; 8]));
            let options = options(&body[16..]);
            let text = |code| find(&options, code).map(|text| String::from_utf8(text).unwrap());
            Block::Section { application: text(4).unwrap(), comment: text(1) }
        }
        1 => {
            assert_eq!(word(body, 0), 1, "Ethernet");
            let options = options(&body[8..]);
            assert_eq!(find(&options, 9), Some(vec![9]), "nanoseconds");
            Block::Interface {
                name: String::from_utf8(find(&options, 2).unwrap()).unwrap(),
                mac: find(&options, 6).map(|mac| mac.try_into().unwrap()),
                bits: find(&options, 8).map(|bits| u64::from_ne_bytes(bits.try_into().unwrap())),
            }
        }
        5 => {
            let options = options(&body[12..]);
            let number =
                |code| u64::from_ne_bytes(find(&options, code).unwrap().try_into().unwrap());
            let time = |code| stamp(&find(&options, code).unwrap());
            Block::Statistics {
                interface: word(body, 0),
                seen: number(4),
                dropped: number(5),
                from: time(2),
                to: time(3),
            }
        }
        6 => {
            let captured = word(body, 12) as usize;
            let padded = captured.next_multiple_of(4);
            let options = options(&body[20 + padded..]);
            let number = |code| find(&options, code).map(|bytes| word(&bytes, 0));
            Block::Packet(Packet {
                interface: word(body, 0),
                nanoseconds: stamp(&body[4..]),
                len: word(body, 16) as usize,
                bytes: body[20..20 + captured].to_vec(),
                way: number(2).unwrap_or(0),
                queue: number(6).unwrap(),
                lost: find(&options, 4)
                    .map_or(0, |lost| u64::from_ne_bytes(lost.try_into().unwrap())),
            })
        }
        _ => panic!("a block of type {kind}"),
    }
}

fn options(mut rest: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut options = Vec::new();
    // A writer may omit the end-of-options option: the block's length is sufficient.
    while !rest.is_empty() {
        let half = |at: usize| u16::from_ne_bytes(rest[at..at + 2].try_into().unwrap());
        let (code, len) = (half(0), usize::from(half(2)));
        if code == 0 {
            assert_eq!((len, rest.len()), (0, 4), "nothing behind the end");
            break;
        }
        options.push((code, rest[4..4 + len].to_vec()));
        rest = &rest[4 + len.next_multiple_of(4)..];
    }
    options
}

fn find(options: &[(u16, Vec<u8>)], code: u16) -> Option<Vec<u8>> {
    options.iter().find(|(of, _)| *of == code).map(|(_, value)| value.clone())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn stamp(bytes: &[u8]) -> u64 {
    u64::from(word(bytes, 0)) << 32 | u64::from(word(bytes, 4))
}
