// SPDX-License-Identifier: BSD-3-Clause
//! Frames in separate buffers, for `recvmsg`, `sendmsg`, `recvmmsg` and `sendmmsg`.

use std::mem;
use std::os::raw::c_void;

use crate::frame::{self, Tag};

/// Room for one control message with the kernel's information about a frame.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

// SAFETY: a computation with a number.
const CONTROL: usize =
    unsafe { libc::CMSG_SPACE(mem::size_of::<libc::tpacket_auxdata>() as u32) as usize };

/// What was received into a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// A frame, with its length and whether its checksum must still be computed.
    Frame {
        /// Bytes without the tag.
        length: usize,
        /// The VLAN tag that the kernel removed.
        tag: Option<Tag>,
        /// Its sender left the checksum to the interface.
        checksum_left: bool,
    },
    /// A frame that is longer than the buffer.
    Truncated,
    /// A frame that another program of this machine sends: not to be forwarded.
    Outgoing,
}

/// Buffers for several frames, with the headers that system calls need. Frames begin [`frame::TAG`]
/// bytes into their buffers, so that a tag can be inserted again.
pub(crate) struct Messages {
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
    addresses: Box<[libc::sockaddr_ll]>,
    controls: Box<[Control]>,
    bytes: Box<[u8]>,
    /// Bytes of one buffer.
    stride: usize,
}

// SAFETY: the pointers in `headers` and `vectors` point into the other boxes, which belong to the same
// owner, and nobody else has them.
unsafe impl Send for Messages {}

impl Messages {
    /// Buffers for `count` frames of at most `longest` bytes each, tag included.
    pub(crate) fn new(count: usize, longest: usize) -> Self {
        let stride = (frame::TAG + longest).next_multiple_of(64);
        // SAFETY: all zero is a value of these plain structures.
        let (header, vector, address) = unsafe {
            (
                mem::zeroed::<libc::mmsghdr>(),
                mem::zeroed::<libc::iovec>(),
                mem::zeroed::<libc::sockaddr_ll>(),
            )
        };
        let mut messages = Self {
            headers: vec![header; count].into(),
            vectors: vec![vector; count].into(),
            addresses: vec![address; count].into(),
            controls: (0..count).map(|_| Control([0; CONTROL])).collect(),
            bytes: vec![0; stride * count].into(),
            stride,
        };
        messages.make_ready();
        messages
    }

    /// Prepares every buffer for a frame. Pointers are made anew: borrowing the boxes in between
    /// would have invalidated the old ones.
    fn make_ready(&mut self) {
        let bytes = self.bytes.as_mut_ptr();
        let (vectors, addresses) = (self.vectors.as_mut_ptr(), self.addresses.as_mut_ptr());
        let controls = self.controls.as_mut_ptr();
        for (number, header) in self.headers.iter_mut().enumerate() {
            // SAFETY: all boxes have as many items as `headers`, and `bytes` a stride for each.
            unsafe {
                *vectors.add(number) = libc::iovec {
                    iov_base: bytes.add(number * self.stride + frame::TAG).cast::<c_void>(),
                    iov_len: self.stride - frame::TAG,
                };
                header.msg_hdr.msg_name = addresses.add(number).cast::<c_void>();
                header.msg_hdr.msg_iov = vectors.add(number);
                header.msg_hdr.msg_control = controls.add(number).cast::<c_void>();
            }
            header.msg_hdr.msg_namelen = mem::size_of::<libc::sockaddr_ll>() as u32;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_controllen = CONTROL;
            header.msg_hdr.msg_flags = 0;
            header.msg_len = 0;
        }
    }

    /// The headers, for a call that receives into the buffers. Valid until the next method is called.
    pub(crate) fn receiving(&mut self) -> &mut [libc::mmsghdr] {
        self.make_ready();
        &mut self.headers
    }

    /// What the last call received into a buffer, according to the header that the kernel filled.
    pub(crate) fn arrival(&self, number: usize) -> Arrival {
        let header = &self.headers[number];
        if self.addresses[number].sll_pkttype == libc::PACKET_OUTGOING {
            return Arrival::Outgoing;
        }
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return Arrival::Truncated;
        }
        let notes = self.notes(number);
        Arrival::Frame {
            length: header.msg_len as usize,
            tag: notes
                .and_then(|note| frame::tag(note.tp_status, note.tp_vlan_tci, note.tp_vlan_tpid)),
            checksum_left: notes
                .is_some_and(|note| note.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0),
        }
    }

    /// The kernel's information about a frame (`PACKET_AUXDATA`).
    fn notes(&self, number: usize) -> Option<libc::tpacket_auxdata> {
        let header = &self.headers[number].msg_hdr;
        // SAFETY: the header is as the kernel filled it: its control pointer and length are of a buffer of
        // ours, which holds whole control messages; one of this kind holds the structure.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(header);
            let message = first.as_ref()?;
            let wanted = libc::CMSG_LEN(mem::size_of::<libc::tpacket_auxdata>() as u32) as usize;
            let is_note = message.cmsg_level == libc::SOL_PACKET
                && message.cmsg_type == libc::PACKET_AUXDATA
                && message.cmsg_len >= wanted;
            is_note.then(|| libc::CMSG_DATA(first).cast::<libc::tpacket_auxdata>().read_unaligned())
        }
    }

    /// The buffer of a frame, which begins [`frame::TAG`] bytes into it.
    pub(crate) fn buffer(&mut self, number: usize) -> &mut [u8] {
        &mut self.bytes[number * self.stride..][..self.stride]
    }

    /// Headers to send `outgoing`: for each frame the index of its buffer, its offset there and its
    /// length.
    pub(crate) fn sending(
        &mut self,
        outgoing: impl IntoIterator<Item = (usize, usize, usize)>,
    ) -> &mut [libc::mmsghdr] {
        let bytes = self.bytes.as_mut_ptr();
        let vectors = self.vectors.as_mut_ptr();
        let count = self.headers.len();
        let mut used = 0;
        for ((number, start, length), header) in outgoing.into_iter().zip(self.headers.iter_mut()) {
            assert!(
                number < count && start + length <= self.stride,
                "a frame outside of its buffer"
            );
            // SAFETY: just checked; `vectors` has an item for each header.
            unsafe {
                *vectors.add(used) = libc::iovec {
                    iov_base: bytes.add(number * self.stride + start).cast::<c_void>(),
                    iov_len: length,
                };
                header.msg_hdr.msg_iov = vectors.add(used);
            }
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = std::ptr::null_mut();
            header.msg_hdr.msg_namelen = 0;
            header.msg_hdr.msg_control = std::ptr::null_mut();
            header.msg_hdr.msg_controllen = 0;
            header.msg_hdr.msg_flags = 0;
            used += 1;
        }
        &mut self.headers[..used]
    }
}
