// SPDX-License-Identifier: BSD-3-Clause
//! The frames that all arms translate, and their expected contents afterwards.

use std::net::Ipv4Addr;

use packet::MacAddr;
use packet::ethernet::Ethernet;
use packet::ipv4::Ipv4;
use packet::udp::Udp;

/// Frames per sweep.
pub const COUNT: usize = 256;
/// Bytes from one frame to the next: no two share a cache line.
const SLOT: usize = 1536;

/// What is measured.
pub struct Cell {
    /// Its name in the output.
    pub name: &'static str,
    /// Length of the frames in bytes, without FCS.
    pub len: usize,
    /// True if the port changes too, and with it UDP's checksum; otherwise UDP has no checksum.
    pub ports: bool,
}

/// All cells.
pub const CELLS: &[Cell] = &[
    Cell { name: "address, 60 bytes", len: 60, ports: false },
    Cell { name: "address and port, 60 bytes", len: 60, ports: true },
    Cell { name: "address and port, 1514 bytes", len: 1514, ports: true },
];

/// The new addresses of a frame.
pub struct Nat {
    /// Ethernet destination.
    pub next_hop: [u8; 6],
    /// Ethernet source.
    pub own: [u8; 6],
    /// IPv4 destination.
    pub address: [u8; 4],
    /// UDP destination port, if that changes.
    pub port: u16,
}

impl Nat {
    /// Different in each sweep, so that every sweep changes the frames.
    pub fn of_sweep(sweep: u32) -> Self {
        let [_, a, b, c] = sweep.wrapping_mul(0x9e37_79b1).to_be_bytes();
        Nat {
            next_hop: [2, 0, 0, a, b, c],
            own: [2, 1, 0, c, b, a],
            address: [192, c, b, a],
            port: 1024 + sweep as u16 % 50_000,
        }
    }
}

/// An arm's copy of the frames.
pub struct Frames {
    bytes: Vec<u8>,
    len: usize,
}

impl Frames {
    /// The frames as they arrive.
    pub fn new(cell: &Cell) -> Self {
        let mut bytes = vec![0; COUNT * SLOT];
        for (n, slot) in bytes.chunks_exact_mut(SLOT).enumerate() {
            write(&mut slot[..cell.len], n as u32, cell.ports, &Nat::of_sweep(u32::MAX));
        }
        Frames { bytes, len: cell.len }
    }

    /// One slice per frame, like the packets of a burst.
    pub fn list(&mut self) -> Vec<&mut [u8]> {
        self.bytes.chunks_exact_mut(SLOT).map(|slot| &mut slot[..self.len]).collect()
    }

    /// Checks that the frames are the result of the last translation.
    pub fn check(&self, cell: &Cell, last: &Nat) -> Result<(), String> {
        let mut wanted = vec![0; cell.len];
        for (n, slot) in self.bytes.chunks_exact(SLOT).enumerate() {
            wanted.fill(0);
            write(&mut wanted, n as u32, cell.ports, last);
            if let Some(at) = (0..cell.len).find(|at| slot[*at] != wanted[*at]) {
                return Err(format!("frame {n}, byte {at}: {:#x} for {:#x}", slot[at], wanted[at]));
            }
        }
        Ok(())
    }
}

/// Writes frame `n` with these addresses, with all checksums computed from scratch.
fn write(frame: &mut [u8], n: u32, with_checksum: bool, nat: &Nat) {
    let len = frame.len() as u16;
    frame[14] = 0x45;
    let wrote = (|| {
        let (ethernet, packet) = Ethernet::split_mut(frame)?;
        ethernet.set_addresses(MacAddr(nat.next_hop), MacAddr(nat.own));
        ethernet.set_ether_type(packet::ethernet::ETHERTYPE_IPV4);
        let (ip, rest) = Ipv4::split_mut(packet)?;
        ip.set_total_len(len - 14);
        ip.set_identification(n as u16);
        ip.set_ttl(64);
        ip.set_protocol(packet::ipv4::PROTOCOL_UDP);
        ip.set_source(Ipv4Addr::from(0x0a00_0000 + n));
        ip.set_destination(nat.address.into());
        ip.fill_checksum();
        let pseudo = ip.pseudo_header(rest.len());
        let (udp, payload) = Udp::split_mut(rest)?;
        udp.set_source(10_000 + n as u16);
        udp.set_destination(if with_checksum { nat.port } else { 53 });
        udp.set_length(len - 34);
        payload
            .iter_mut()
            .zip((0..=255u8).cycle())
            .for_each(|(byte, value)| *byte = value ^ n as u8);
        if with_checksum {
            udp.fill_checksum(pseudo, payload);
        }
        Ok::<(), packet::Malformed>(())
    })();
    debug_assert_eq!(wrote, Ok(()));
}
