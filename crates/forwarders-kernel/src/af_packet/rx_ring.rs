// SPDX-License-Identifier: BSD-3-Clause
//! A TPACKET_V3 ring: blocks that the kernel fills with frames and passes on when they are full or
//! after a timeout.

use std::io;
use std::mem::offset_of;
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::mapping::Mapping;
use super::socket::PacketSocket;
use crate::frame::{self, Tag};

/// Milliseconds after which the kernel passes on a block that is not full.
///
/// The smallest possible value: at low rates frames wait for it.
const RETIRE_MS: u32 = 1;

/// Offsets of a block's fields.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);
const HEADER: usize = offset_of!(libc::tpacket_block_desc, hdr);
/// Offset of a frame's address after its header.
const ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// Bytes of the smallest block that holds a whole frame of `longest` bytes: besides the frame there
/// are the block's header, the frame's header and its address, with room to align the headers.
pub(crate) fn least_block(longest: usize) -> usize {
    let beside = size_of::<libc::tpacket_block_desc>() + libc::TPACKET3_HDRLEN;
    (beside + 2 * libc::TPACKET_ALIGNMENT + longest).next_power_of_two()
}

/// Sizes of a ring, in bytes and blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocks {
    pub(crate) size: u32,
    pub(crate) count: u32,
}

/// A frame in a block that was passed to the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The offset of its bytes in the ring.
    at: usize,
    pub(crate) length: usize,
    pub(crate) tag: Option<Tag>,
    pub(crate) checksum_left: bool,
    /// True if only its beginning is there.
    pub(crate) truncated: bool,
    /// True for a frame that another program of this machine sends: not to be forwarded.
    pub(crate) outgoing: bool,
}

/// The RX ring of a socket.
pub(crate) struct RxRing {
    pub(crate) socket: Arc<PacketSocket>,
    mapping: Mapping,
    blocks: Blocks,
    /// The block that the program has, or gets next.
    block: u32,
    /// The number of its frames that have not been taken, and the offset of the first. None: the
    /// kernel has the block.
    left: Option<(u32, usize)>,
}

impl RxRing {
    /// Makes the ring of a socket that is not bound yet.
    pub(crate) fn new(socket: Arc<PacketSocket>, blocks: Blocks) -> io::Result<Self> {
        socket.set(libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))?;
        let request = libc::tpacket_req3 {
            tp_block_size: blocks.size,
            tp_block_nr: blocks.count,
            // Frames of V3 have variable sizes; the kernel only checks that these numbers are
            // consistent.
            tp_frame_size: 2048,
            tp_frame_nr: blocks.size / 2048 * blocks.count,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket.set(libc::PACKET_RX_RING, &request)?;
        let mapping = Mapping::new(&socket, blocks.size as usize * blocks.count as usize)?;
        Ok(Self { socket, mapping, blocks, block: 0, left: None })
    }

    /// Takes up to `most` frames of one block. The program may use them until
    /// [`release`](Self::release).
    pub(crate) fn take(&mut self, most: usize, mut each: impl FnMut(Frame)) {
        let block = self.block as usize * self.blocks.size as usize;
        let (mut count, mut at) = match self.left {
            Some(left) => left,
            None => {
                let status = self.mapping.status(block + STATUS).load(Ordering::Acquire);
                if status & libc::TP_STATUS_USER == 0 {
                    return;
                }
                // SAFETY: the kernel has handed the block over; all its fields are numbers.
                let header: libc::tpacket_hdr_v1 = unsafe { self.mapping.read(block + HEADER) };
                (header.num_pkts, block + header.offset_to_first_pkt as usize)
            }
        };
        let taken = count.min(most as u32);
        for _ in 0..taken {
            // SAFETY: the block is the program's.
            let (header, address): (libc::tpacket3_hdr, libc::sockaddr_ll) =
                unsafe { (self.mapping.read(at), self.mapping.read(at + ADDRESS)) };
            each(Frame {
                at: at + usize::from(header.tp_mac),
                length: header.tp_snaplen as usize,
                tag: frame::tag(
                    header.tp_status,
                    header.hv1.tp_vlan_tci as u16,
                    header.hv1.tp_vlan_tpid,
                ),
                checksum_left: header.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0,
                truncated: header.tp_snaplen < header.tp_len,
                outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            });
            at += header.tp_next_offset as usize;
        }
        count -= taken;
        self.left = Some((count, at));
    }

    /// The bytes of a frame.
    ///
    /// # Safety
    /// It was taken from this ring, which was not released since then.
    pub(crate) unsafe fn bytes(&self, frame: &Frame) -> &[u8] {
        // SAFETY: the frame's block is the program's until it is released, which wants the ring for itself.
        unsafe { self.mapping.bytes(frame.at, frame.length) }
    }

    /// Passes the block back, once all its frames have been taken. Frames taken before are invalid
    /// then.
    pub(crate) fn release(&mut self) {
        if let Some((0, _)) = self.left {
            let block = self.block as usize * self.blocks.size as usize;
            self.mapping.status(block + STATUS).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.left = None;
            self.block = (self.block + 1) % self.blocks.count;
        }
    }
}
