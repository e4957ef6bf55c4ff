// SPDX-License-Identifier: BSD-3-Clause
//! Up to 32 frames in one call, for receiving and for sending.

use std::os::fd::{AsFd as _, BorrowedFd};

use super::inbox::Inbox;
use super::message::Messages;
use super::outbox::{Outbox, Outgoing};
use super::socket::errno;
use crate::lane::{Lane, LaneError, MOST};

/// A lane that processes a burst at a time.
pub(crate) struct Mmsg {
    inbox: Inbox,
    outbox: Outbox,
    messages: Messages,
    outgoing: Vec<Outgoing>,
}

impl Mmsg {
    pub(crate) fn new(inbox: Inbox, outbox: Outbox) -> Self {
        let longest = inbox.port.longest_frame().max(outbox.port.longest_frame());
        let messages = Messages::new(MOST, longest);
        Self { inbox, outbox, messages, outgoing: Vec::with_capacity(MOST) }
    }
}

impl Lane for Mmsg {
    fn receive(&mut self) -> Result<usize, LaneError> {
        self.outbox.stats.rx_calls.add(1);
        let headers = self.messages.receiving();
        self.outbox.timer.rx_call();
        // SAFETY: the headers' pointers are of buffers that live as long as `messages`.
        let count = unsafe {
            libc::recvmmsg(
                self.inbox.socket.raw(),
                headers.as_mut_ptr(),
                headers.len() as u32,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        self.outbox.timer.rx_return();
        if count < 0 {
            self.inbox.nothing("recvmmsg")?;
            return Ok(0);
        }
        let mut received = 0;
        for number in 0..count as usize {
            let (counts, outgoing) = self.outbox.prepare(&mut self.messages, number);
            received += usize::from(counts);
            self.outgoing.extend(outgoing);
        }
        Ok(received)
    }

    fn forward(&mut self) -> Result<(), LaneError> {
        let mut next = 0;
        while next < self.outgoing.len() {
            self.outbox.stats.tx_calls.add(1);
            let headers = self.messages.sending(self.outgoing[next..].iter().copied());
            self.outbox.timer.tx_call();
            // SAFETY: the headers' pointers are of buffers that live as long as `messages`.
            let count = unsafe {
                libc::sendmmsg(
                    self.outbox.socket.raw(),
                    headers.as_mut_ptr(),
                    headers.len() as u32,
                    libc::MSG_DONTWAIT as _,
                )
            };
            if count > 0 {
                self.outbox.timer.tx_return(count as u64);
                for (_, _, length) in &self.outgoing[next..next + count as usize] {
                    self.outbox.sent(*length);
                }
                next += count as usize;
                continue;
            }
            // The first frame's error; the call is made again without it.
            let error = errno();
            next += 1;
            if let Err(gone) = self.outbox.failed(error) {
                self.outgoing.clear();
                return Err(gone);
            }
        }
        self.outgoing.clear();
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
