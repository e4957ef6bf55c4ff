// SPDX-License-Identifier: BSD-3-Clause
//! Writes frames into a capture file, which other examples can read: `frames FILE`
//!
//! They belong to ten UDP flows, from ports 1000 to 1009 of 192.0.2.1 to port 53 of 198.51.100.1.
//! Needs no DPDK.
//!
//! ```text
//! $ frames dns.pcap
//! dns.pcap: 13 frames of UDP from 192.0.2.1 to port 53 of 198.51.100.1
//! ```

mod common;

use std::io::Write;
use std::process::ExitCode;

use common::Result;
use packet::field::Pattern;
use packet::frame::{FrameSpec, Header};
use packet::headers::{ETHERNET, IPV4, UDP};
use packet::payload::Payload;
use packet::size::Sizes;
use packet::writer::FrameWriter;

const SOURCE: [u8; 4] = [192, 0, 2, 1];
const DESTINATION: [u8; 4] = [198, 51, 100, 1];
/// The flows of successive frames: ten flows, one of which has two frames and another three.
const PORTS: [u128; 13] =
    [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1003, 1004, 1003];

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let number = |address| u128::from(u32::from_be_bytes(address));
    let spec = FrameSpec {
        headers: vec![
            Header::new(&ETHERNET)
                .with("dst", 0x0200_0000_0002_u128)?
                .with("src", 0x0200_0000_0001_u128)?,
            Header::new(&IPV4).with("src", number(SOURCE))?.with("dst", number(DESTINATION))?,
            Header::new(&UDP)
                .with("src_port", Pattern::Values(PORTS.to_vec()))?
                .with("dst_port", 53_u128)?,
        ],
        sizes: Sizes::Fixed(64), // with the FCS, which files do not hold
        payload: Payload::default(),
        signature: None,
    };
    let mut frames = vec![Vec::new(); PORTS.len()];
    FrameWriter::new(&spec, 0)?.write(&mut frames, 0, false);
    write(&path, &frames).map_err(|error| format!("{path}: {error}"))?;
    let ([a, b, c, d], [e, f, g, h]) = (SOURCE, DESTINATION);
    println!("{path}: 13 frames of UDP from {a}.{b}.{c}.{d} to port 53 of {e}.{f}.{g}.{h}");
    Ok(())
}

/// A file of Ethernet frames in native byte order.
fn write(path: &str, frames: &[Vec<u8>]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    // Magic, version 2.4, zone, accuracy, longest frame, Ethernet.
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 1] {
        file.write_all(&word.to_ne_bytes())?;
    }
    for frame in frames {
        // Seconds, microseconds, bytes in the file, bytes of the frame.
        for word in [0, 0, frame.len() as u32, frame.len() as u32] {
            file.write_all(&word.to_ne_bytes())?;
        }
        file.write_all(frame)?;
    }
    file.flush()
}
