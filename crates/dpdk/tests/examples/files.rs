// SPDX-License-Identifier: BSD-3-Clause
//! Frames, and the files that net_pcap reads and writes.

use std::path::Path;

/// A frame of 60 bytes, without FCS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame(pub Vec<u8>);

impl Frame {
    pub fn udp(source: [u8; 4], from: u16, destination: [u8; 4], to: u16) -> Self {
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        bytes.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
        bytes.extend(source.into_iter().chain(destination));
        bytes.extend([from, to, 26, 0].into_iter().flat_map(u16::to_be_bytes));
        bytes.resize(60, 0);
        Self(bytes).summed()
    }

    pub fn arp() -> Self {
        let mut bytes = vec![0xff; 12];
        bytes.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        bytes.resize(60, 0);
        Self(bytes)
    }

    pub fn with_ttl(mut self, ttl: u8) -> Self {
        self.0[22] = ttl;
        self.summed()
    }

    /// The ones' complement sum of an IPv4 header: 0xffff if its checksum is correct.
    pub fn header_sum(&self) -> u16 {
        let words =
            self.0[14..34].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        (sum % 0xffff) as u16 + u16::from(sum % 0xffff == 0) * 0xffff
    }

    fn summed(mut self) -> Self {
        self.0[24..26].fill(0);
        let checksum = !self.header_sum();
        self.0[24..26].copy_from_slice(&checksum.to_be_bytes());
        self
    }
}

/// A file of Ethernet frames in native byte order, with time stamps in microseconds.
pub fn write(path: &Path, frames: &[Frame]) {
    let mut bytes = Vec::new();
    // Magic, version 2.4, zone, accuracy, snap length, Ethernet.
    for word in [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 65_535, 1] {
        bytes.extend(word.to_ne_bytes());
    }
    for Frame(frame) in frames {
        for word in [0, 0, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(frame);
    }
    std::fs::write(path, bytes).unwrap();
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

pub fn read(path: &Path) -> Vec<Frame> {
    let bytes = std::fs::read(path).unwrap();
    let (mut frames, mut at) = (Vec::new(), 24);
    while at < bytes.len() {
        let len = word(&bytes, at + 8);
        frames.push(Frame(bytes[at + 16..at + 16 + len].to_vec()));
        at += 16 + len;
    }
    frames
}

/// The lengths of packets, and of the captured parts.
pub fn read_pcapng(path: &Path) -> Vec<(usize, Vec<u8>)> {
    let bytes = std::fs::read(path).unwrap();
    let (mut packets, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        // An enhanced packet block: type, length, interface, time (8), captured, packet's length.
        if word(&bytes, at) == 6 {
            let captured = word(&bytes, at + 20);
            packets.push((word(&bytes, at + 24), bytes[at + 28..at + 28 + captured].to_vec()));
        }
        at += word(&bytes, at + 4);
    }
    packets
}
