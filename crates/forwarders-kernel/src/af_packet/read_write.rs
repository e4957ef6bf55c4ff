// SPDX-License-Identifier: BSD-3-Clause
//! One call to receive a frame and one to send it.

use std::os::fd::{AsFd as _, BorrowedFd};

use super::inbox::Inbox;
use super::message::Messages;
use super::outbox::{Outbox, Outgoing};
use super::socket::errno;
use crate::lane::{Lane, LaneError};

/// A lane that processes one frame at a time.
pub(crate) struct ReadWrite {
    inbox: Inbox,
    outbox: Outbox,
    messages: Messages,
    outgoing: Option<Outgoing>,
}

impl ReadWrite {
    pub(crate) fn new(inbox: Inbox, outbox: Outbox) -> Self {
        let longest = inbox.port.longest_frame().max(outbox.port.longest_frame());
        Self { inbox, outbox, messages: Messages::new(1, longest), outgoing: None }
    }
}

impl Lane for ReadWrite {
    fn receive(&mut self) -> Result<usize, LaneError> {
        self.outbox.stats.rx_calls.add(1);
        let header = &mut self.messages.receiving()[0];
        self.outbox.timer.rx_call();
        // SAFETY: the header's pointers are of buffers that live as long as `messages`.
        let length = unsafe {
            libc::recvmsg(self.inbox.socket.raw(), &raw mut header.msg_hdr, libc::MSG_DONTWAIT)
        };
        self.outbox.timer.rx_return();
        if length < 0 {
            self.inbox.nothing("recvmsg")?;
            return Ok(0);
        }
        header.msg_len = length as u32;
        let (received, outgoing) = self.outbox.prepare(&mut self.messages, 0);
        self.outgoing = outgoing;
        Ok(usize::from(received))
    }

    fn forward(&mut self) -> Result<(), LaneError> {
        let Some((number, start, length)) = self.outgoing.take() else { return Ok(()) };
        self.outbox.stats.tx_calls.add(1);
        let frame = &self.messages.buffer(number)[start..start + length];
        self.outbox.timer.tx_call();
        // SAFETY: the kernel reads the frame during the call.
        let sent = unsafe {
            libc::send(
                self.outbox.socket.raw(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
            )
        };
        if sent < 0 {
            return self.outbox.failed(errno());
        }
        self.outbox.timer.tx_return(1);
        self.outbox.sent(length);
        self.outbox.timer.end();
        Ok(())
    }

    fn check(&self) -> Result<(), LaneError> {
        LaneError::gone([&self.inbox.port, &self.outbox.port])
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.inbox.socket.as_fd()
    }
}
