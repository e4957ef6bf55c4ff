// SPDX-License-Identifier: BSD-3-Clause
//! A TPACKET_V2 ring for sending: slots of one frame each, passed to the kernel one by one and sent
//! by one call for all.

use std::io;
use std::mem::offset_of;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::Mapping;
use super::socket::{NotSent, PacketSocket, errno, not_sent};

/// The offset of a frame in its slot: after the header, where the kernel expects it by default.
const DATA: usize = libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>();
const STATUS: usize = offset_of!(libc::tpacket2_hdr, tp_status);
const LENGTH: usize = offset_of!(libc::tpacket2_hdr, tp_len);
/// Bytes of a block, which the kernel must allocate contiguously.
const BLOCK: u32 = 1 << 16;

/// Sizes of a ring, in bytes and numbers.
struct Slots {
    slot: u32,
    block: u32,
    blocks: u32,
}

impl Slots {
    /// Room for at least `count` frames of at most `longest` bytes.
    fn new(count: u32, longest: usize) -> Self {
        let slot = ((DATA + longest) as u32).next_power_of_two();
        let block = BLOCK.max(slot);
        Self { slot, block, blocks: count.div_ceil(block / slot) }
    }

    fn count(&self) -> u32 {
        self.blocks * (self.block / self.slot)
    }

    fn bytes(&self) -> usize {
        self.block as usize * self.blocks as usize
    }
}

/// Bytes of a ring for `count` frames of at most `longest` bytes.
pub(crate) fn bytes(count: u32, longest: usize) -> usize {
    Slots::new(count, longest).bytes()
}

/// Counts of the slots that the kernel passed back.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

/// The TX ring of a socket.
pub(crate) struct TxRing {
    pub(crate) socket: PacketSocket,
    mapping: Mapping,
    slot: usize,
    slots: u32,
    /// The slot to be filled next.
    head: u32,
    /// The oldest slot that the kernel has.
    tail: u32,
    /// The number of slots that the kernel has.
    used: u32,
}

impl TxRing {
    /// Makes the ring of a socket that is not bound yet, for at least `slots` frames of at most
    /// `longest` bytes.
    pub(crate) fn new(socket: PacketSocket, slots: u32, longest: usize) -> io::Result<Self> {
        let sizes = Slots::new(slots, longest);
        let (slot, slots) = (sizes.slot as usize, sizes.count());
        socket.set(libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        let request = libc::tpacket_req {
            tp_block_size: sizes.block,
            tp_block_nr: sizes.blocks,
            tp_frame_size: sizes.slot,
            tp_frame_nr: slots,
        };
        // Without PACKET_LOSS, with which the kernel would pass refused frames back as if they were
        // sent. Now it stops there, and `take_out` finds which one it was.
        socket.set(libc::PACKET_TX_RING, &request)?;
        let mapping = Mapping::new(&socket, sizes.bytes())?;
        Ok(Self { socket, mapping, slot, slots, head: 0, tail: 0, used: 0 })
    }

    /// The bytes of the next slot, to be filled; none if the kernel has all slots.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        if self.used == self.slots {
            return None;
        }
        let at = self.head as usize * self.slot;
        // SAFETY: a slot that the kernel does not have is the program's: `reclaim` saw the kernel
        // pass it back.
        Some(unsafe { self.mapping.bytes_mut(at + DATA, self.slot - DATA) })
    }

    /// Passes the next slot, filled with a frame of `length` bytes, to the kernel. Only after
    /// [`room`](Self::room) returned it.
    pub(crate) fn push(&mut self, length: usize) {
        let at = self.head as usize * self.slot;
        // SAFETY: as in `room`.
        unsafe { self.mapping.write(at + LENGTH, length as u32) };
        self.mapping.status(at + STATUS).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.head = (self.head + 1) % self.slots;
        self.used += 1;
    }

    /// Makes the kernel send the pushed frames.
    ///
    /// # Errors
    /// Why it stopped before the last frame, unless there was no room: then the rest is sent by a
    /// later call. A frame that it refuses blocks the ring until it is taken out.
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

    /// Takes slots back that the kernel has finished.
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

    /// Takes out the frame that the kernel refused, and those after it for which `keep` returns
    /// false; returns their number. The others move up, because the kernel continues where it
    /// stopped.
    pub(crate) fn take_out(&mut self, keep: impl Fn(&[u8]) -> bool) -> u64 {
        let slots = (0..self.used).map(|number| (self.tail + number) % self.slots);
        let waits = |slot: &u32| {
            let status = self.status(*slot).load(Ordering::Acquire);
            status == libc::TP_STATUS_SEND_REQUEST || status == libc::TP_STATUS_WRONG_FORMAT
        };
        let waiting: Vec<u32> = slots.skip_while(|slot| !waits(slot)).collect();
        let mut free = waiting.iter();
        let mut kept = 0;
        for slot in &waiting {
            let at = *slot as usize * self.slot;
            let refused =
                self.status(*slot).load(Ordering::Acquire) == libc::TP_STATUS_WRONG_FORMAT;
            // SAFETY: the kernel has not begun with the slot, and is called by this ring's owner alone.
            let stays = !refused
                && unsafe {
                    let length = self.mapping.read::<u32>(at + LENGTH) as usize;
                    keep(self.mapping.bytes(at + DATA, length.min(self.slot - DATA)))
                };
            if !stays {
                continue;
            }
            if let Some(to) = free.next().filter(|to| *to != slot) {
                // SAFETY: as above, of both slots.
                unsafe {
                    self.mapping.copy(
                        at + LENGTH,
                        *to as usize * self.slot + LENGTH,
                        self.slot - LENGTH,
                    )
                };
                self.status(*to).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
            }
            kept += 1;
        }
        let taken = &waiting[kept..];
        for slot in taken {
            self.status(*slot).store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
        }
        if let Some(first) = taken.first() {
            self.head = *first;
            self.used -= taken.len() as u32;
        }
        taken.len() as u64
    }

    fn status(&self, slot: u32) -> &AtomicU32 {
        self.mapping.status(slot as usize * self.slot + STATUS)
    }

    /// Takes back the slots that the kernel has not begun to process, and returns their number.
    pub(crate) fn abandon(&mut self) -> u64 {
        let mut abandoned = 0;
        while self.used > 0 {
            let last = (self.head + self.slots - 1) % self.slots;
            let asked = libc::TP_STATUS_SEND_REQUEST;
            let taken = self.status(last).compare_exchange(
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

    /// The number of slots that the kernel has.
    pub(crate) fn under_way(&self) -> u32 {
        self.used
    }
}
