// SPDX-License-Identifier: BSD-3-Clause
//! A TPACKET_V2 ring to send by: slots of one frame each, handed to the kernel one by one and sent by one
//! call for all.

use std::io;
use std::mem::offset_of;
use std::os::raw::c_int;
use std::sync::atomic::Ordering;

use super::mapping::Mapping;
use super::socket::{NotSent, PacketSocket, errno, not_sent};

/// Where a frame begins in its slot: behind the header, where the kernel looks unless it is told
/// otherwise.
const DATA: usize = libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>();
const STATUS: usize = offset_of!(libc::tpacket2_hdr, tp_status);
const LENGTH: usize = offset_of!(libc::tpacket2_hdr, tp_len);
/// Bytes of a block: what the kernel has to find in one piece.
const BLOCK: u32 = 1 << 16;

/// What came of slots that the kernel gave back.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

/// The sending ring of a socket.
pub(crate) struct TxRing {
    pub(crate) socket: PacketSocket,
    mapping: Mapping,
    slot: usize,
    slots: u32,
    /// The slot to be filled next.
    head: u32,
    /// The oldest slot that is under way.
    tail: u32,
    /// Slots that are under way.
    used: u32,
}

impl TxRing {
    /// Makes the ring of a socket that is not bound yet: `slots` frames of at most `longest` bytes, or
    /// some more.
    pub(crate) fn new(socket: PacketSocket, slots: u32, longest: usize) -> io::Result<Self> {
        let slot = ((DATA + longest) as u32).next_power_of_two();
        let block = BLOCK.max(slot);
        let blocks = slots.div_ceil(block / slot);
        let slots = blocks * (block / slot);
        socket.set(libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        let request = libc::tpacket_req {
            tp_block_size: block,
            tp_block_nr: blocks,
            tp_frame_size: slot,
            tp_frame_nr: slots,
        };
        // A frame that it would not send does not hold up those behind it; lanes see to it that none is.
        socket.set(libc::PACKET_LOSS, &1 as &c_int)?;
        socket.set(libc::PACKET_TX_RING, &request)?;
        let mapping = Mapping::new(&socket, block as usize * blocks as usize)?;
        Ok(Self { socket, mapping, slot: slot as usize, slots, head: 0, tail: 0, used: 0 })
    }

    /// The bytes of the next slot, to be filled; none when all are under way.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        if self.used == self.slots {
            return None;
        }
        let at = self.head as usize * self.slot;
        // SAFETY: a slot that is not under way is the program's: `reclaim` saw the kernel give it back.
        Some(unsafe { self.mapping.bytes_mut(at + DATA, self.slot - DATA) })
    }

    /// Hands the next slot to the kernel, filled with a frame of `length` bytes. Only after
    /// [`room`](Self::room) gave it.
    pub(crate) fn push(&mut self, length: usize) {
        let at = self.head as usize * self.slot;
        // SAFETY: as in `room`.
        unsafe { self.mapping.write(at + LENGTH, length as u32) };
        self.mapping.status(at + STATUS).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.head = (self.head + 1) % self.slots;
        self.used += 1;
    }

    /// Has the kernel send what was pushed.
    ///
    /// # Errors
    /// Why it did not, other than for want of room: then what is left is sent by a later call.
    pub(crate) fn kick(&self) -> Result<(), (c_int, NotSent)> {
        // SAFETY: no memory of ours but the ring is read.
        let code =
            unsafe { libc::send(self.socket.raw(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
        if code >= 0 {
            return Ok(());
        }
        let errno = errno();
        match not_sent(errno) {
            NotSent::Full => Ok(()),
            other => Err((errno, other)),
        }
    }

    /// Takes slots back that the kernel is done with.
    pub(crate) fn reclaim(&mut self) -> Done {
        let mut done = Done::default();
        while self.used > 0 {
            let at = self.tail as usize * self.slot;
            let status = self.mapping.status(at + STATUS).load(Ordering::Acquire);
            if status != libc::TP_STATUS_AVAILABLE {
                break;
            }
            done.frames += 1;
            // SAFETY: the slot was given back.
            done.bytes += u64::from(unsafe { self.mapping.read::<u32>(at + LENGTH) });
            self.tail = (self.tail + 1) % self.slots;
            self.used -= 1;
        }
        done
    }

    /// Takes the slots back that the kernel has not begun with, and says how many they were.
    pub(crate) fn abandon(&mut self) -> u64 {
        let mut abandoned = 0;
        while self.used > 0 {
            let last = (self.head + self.slots - 1) % self.slots;
            let status = self.mapping.status(last as usize * self.slot + STATUS);
            let asked = libc::TP_STATUS_SEND_REQUEST;
            let taken = status.compare_exchange(
                asked,
                libc::TP_STATUS_AVAILABLE,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if taken.is_err() {
                break;
            }
            self.head = last;
            self.used -= 1;
            abandoned += 1;
        }
        abandoned
    }

    /// Slots that are under way.
    pub(crate) fn under_way(&self) -> u32 {
        self.used
    }
}
