// SPDX-License-Identifier: BSD-3-Clause
//! Capture files written here byte by byte, and what the reader makes of them.

use super::*;

mod properties;
mod reading;

/// Writes numbers in a given byte order.
#[derive(Clone, Copy, Debug)]
struct Order(bool);

impl Order {
    fn u16(self, n: u16) -> [u8; 2] {
        if self.0 { n.to_be_bytes() } else { n.to_le_bytes() }
    }
    fn u32(self, n: u32) -> [u8; 4] {
        if self.0 { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    /// A pcap file of frames, each with seconds, fractions of a second, captured bytes and length.
    fn pcap(self, nano: bool, link: u32, frames: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
        let magic = if nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut file = self.u32(magic).to_vec();
        file.extend([self.u16(2), self.u16(4)].concat());
        file.extend([0, 0, 65_535, link].map(|n| self.u32(n)).concat());
        for (seconds, parts, bytes, len) in frames {
            file.extend([*seconds, *parts, bytes.len() as u32, *len].map(|n| self.u32(n)).concat());
            file.extend_from_slice(bytes);
        }
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let len = self.u32(body.len() as u32 + 12);
        [&self.u32(kind), &len, &body[..], &len].concat()
    }

    fn section(self) -> Vec<u8> {
        let version = [self.u16(1), self.u16(0)].concat();
        self.block(0x0a0d_0d0a, &[&self.u32(0x1a2b_3c4d), &version[..], &[0xff; 8]].concat())
    }

    fn options(self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let one = |(code, value): &(u16, &[u8])| {
            let mut bytes = [self.u16(*code), self.u16(value.len() as u16)].concat();
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        [options.iter().flat_map(one).collect(), vec![0; 4]].concat()
    }

    fn interface(self, link: u16, snap: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let head = [self.u16(link), [0; 2]].concat();
        self.block(1, &[&head[..], &self.u32(snap), &self.options(options)].concat())
    }

    fn enhanced(
        self,
        interface: u32,
        time: u64,
        bytes: &[u8],
        options: &[(u16, &[u8])],
    ) -> Vec<u8> {
        let words =
            [interface, (time >> 32) as u32, time as u32, bytes.len() as u32, bytes.len() as u32];
        let mut body = words.map(|n| self.u32(n)).concat();
        body.extend_from_slice(bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        self.block(6, &[body, self.options(options)].concat())
    }

    fn simple(self, bytes: &[u8], len: u32) -> Vec<u8> {
        self.block(3, &[&self.u32(len), bytes].concat())
    }
}

const LITTLE: Order = Order(false);
const BIG: Order = Order(true);

fn read(data: &[u8]) -> Result<Frames, ReplayError> {
    read_within(data, Limits::default())
}

fn read_within(data: &[u8], limits: Limits) -> Result<Frames, ReplayError> {
    Frames::read(Path::new("a/file"), data, limits)
}

fn message(data: &[u8]) -> String {
    read(data).map(|frames| frames.len()).unwrap_err().to_string()
}

fn all(frames: &Frames) -> Vec<(u64, Vec<u8>)> {
    (0..frames.len())
        .map(|i| (frames.offset(i).unwrap(), frames.get(i).unwrap().to_vec()))
        .collect()
}

fn offsets(frames: &Frames) -> Vec<u64> {
    (0..frames.len()).map(|i| frames.offset(i).unwrap()).collect()
}

#[test]
fn frames_are_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // The pipe has no writer: reading it would block.
    for (path, what) in [(pipe.as_path(), "a pipe"), (Path::new("/dev/zero"), "a device")] {
        let error = Frames::open(path, Limits::default()).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {what}, not a regular file", path.display()));
    }
}
