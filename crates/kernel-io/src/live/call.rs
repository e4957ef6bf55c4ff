// SPDX-License-Identifier: BSD-3-Clause
//! The memory that a sender shares with its program: one call, as `bpf/live.bpf.c` has it.

use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;

use crate::mapping::Mapping;

/// Most frames of a call.
const MAX_BURST: usize = 32;
/// Bytes of the longest frame, without FCS: it shares a page with its headroom and what the kernel notes.
pub const MAX_FRAME: usize = 3072;
/// An Ethernet header.
const MIN_FRAME: usize = 14;

#[repr(C)]
struct Frame {
    length: u32,
    bytes: [u8; MAX_FRAME],
}

#[repr(C)]
struct Layout {
    count: u32,
    interface: u32,
    next: u32,
    refused: u32,
    sent: u32,
    error: i32,
    cpu: u32,
    frames: [Frame; MAX_BURST],
}

/// The call. The kernel writes to it only while one is made, which takes `&mut` of its sender.
pub(super) struct Call {
    memory: Mapping,
}

impl Call {
    pub(super) fn new(map: BorrowedFd<'_>, interface: u32) -> io::Result<Self> {
        let mut call = Self { memory: Mapping::new(map, size_of::<Layout>())? };
        call.set(offset_of!(Layout, interface), interface);
        Ok(call)
    }

    fn set(&mut self, at: usize, value: u32) {
        // SAFETY: no call is being made, so that the memory is ours.
        unsafe { self.memory.write(at, value) };
    }

    /// Writes the frames up to the first that cannot be sent. Returns how many they are, and the bytes of
    /// the longest.
    pub(super) fn write<'f>(&mut self, frames: impl Iterator<Item = &'f [u8]>) -> (u32, u32) {
        let fits = |frame: &&[u8]| (MIN_FRAME..=MAX_FRAME).contains(&frame.len());
        let (mut count, mut longest) = (0, 0);
        for frame in frames.take(MAX_BURST).take_while(fits) {
            let at = offset_of!(Layout, frames) + count as usize * size_of::<Frame>();
            self.set(at + offset_of!(Frame, length), frame.len() as u32);
            // SAFETY: as in `set`.
            let to = unsafe { self.memory.bytes_mut(at + offset_of!(Frame, bytes), frame.len()) };
            to.copy_from_slice(frame);
            count += 1;
            longest = longest.max(frame.len() as u32);
        }
        self.set(offset_of!(Layout, count), count);
        for at in [
            offset_of!(Layout, next),
            offset_of!(Layout, refused),
            offset_of!(Layout, sent),
            offset_of!(Layout, cpu),
        ] {
            self.set(at, 0);
        }
        (count, longest)
    }

    /// Frames that the driver took in the call that is over. Whoever else uses the interface from now on
    /// is not counted.
    pub(super) fn sent(&mut self) -> usize {
        self.set(offset_of!(Layout, cpu), 0);
        // SAFETY: the call is over.
        let sent: u32 = unsafe { self.memory.read(offset_of!(Layout, sent)) };
        sent as usize
    }
}
