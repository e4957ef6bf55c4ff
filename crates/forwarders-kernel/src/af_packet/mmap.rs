// SPDX-License-Identifier: BSD-3-Clause
//! From a ring of blocks to a ring of slots: the program copies each frame once, and calls the
//! kernel once for a burst.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use forwarders_common::ethernet::Addresses;

use super::rx_ring::{Frame, RxRing};
use super::socket::NotSent;
use super::tx_ring::TxRing;
use crate::checksum;
use crate::frame;
use crate::interface::{self, Port};
use crate::lane::{Lane, LaneError, MOST};
use crate::spans::Timer;
use crate::stats::LaneStats;

/// A lane between two rings.
pub(crate) struct Mmap {
    rx: RxRing,
    tx: TxRing,
    rx_port: Port,
    tx_port: Port,
    addresses: Option<Addresses>,
    stats: Arc<LaneStats>,
    /// The frames received last, in the block that `rx` has not released.
    frames: Vec<Frame>,
    timer: Timer,
}

impl Mmap {
    pub(crate) fn new(
        rx: RxRing,
        tx: TxRing,
        [rx_port, tx_port]: [Port; 2],
        addresses: Option<Addresses>,
        stats: Arc<LaneStats>,
        timer: Timer,
    ) -> Self {
        let frames = Vec::with_capacity(MOST);
        Self { rx, tx, rx_port, tx_port, addresses, stats, frames, timer }
    }

    fn send(&mut self, frame: &Frame) {
        let whole = frame.length + if frame.tag.is_some() { frame::TAG } else { 0 };
        self.stats.rx_packets.add(1);
        if frame.truncated {
            self.stats.rx_truncated.add(1);
            return;
        }
        self.stats.rx_bytes.add(whole as u64);
        if !self.tx_port.sends(whole, frame.tag) {
            self.stats.tx_too_long.add(1);
            return;
        }
        let Some(room) = self.tx.room() else {
            self.stats.tx_full.add(1);
            return;
        };
        // SAFETY: `frames` has those of the block that is not released yet.
        let bytes = unsafe { self.rx.bytes(frame) };
        let Some(length) = frame::copy_tagged(bytes, frame.tag, room) else {
            self.stats.tx_too_long.add(1);
            return;
        };
        if frame.checksum_left {
            self.stats.rx_checksum_left.add(1);
            let is_completed = checksum::complete(&mut room[..length]);
            self.stats.rx_checksum_completed.add(is_completed.into());
        }
        if let Some(addresses) = &self.addresses {
            let part = length.min(addresses.len());
            room[..part].copy_from_slice(&addresses[..part]);
        }
        self.tx.push(length);
    }

    /// Makes the kernel send the frames in the ring, and counts those that it refuses.
    fn kick(&mut self) -> Result<(), LaneError> {
        while self.tx.under_way() > 0 {
            self.stats.tx_calls.add(1);
            let Err((errno, why)) = self.tx.kick() else { return Ok(()) };
            let (counter, taken) = match why {
                NotSent::TooLong => {
                    // The MTU was lowered: other frames that are now too long need not be tried.
                    let mtu = self.tx_port.now().map_or(self.tx_port.mtu, |now| now.mtu);
                    let fits =
                        |bytes: &[u8]| interface::sends(mtu, bytes.len(), frame::first_tag(bytes));
                    (&self.stats.tx_too_long, self.tx.take_out(fits))
                }
                NotSent::Down => (&self.stats.tx_down, 0),
                NotSent::Gone if !self.tx_port.is_gone() => (&self.stats.tx_down, 0),
                NotSent::Gone => {
                    let source = io::Error::from_raw_os_error(errno);
                    return Err(LaneError::of(&self.tx_port, "send", source));
                }
                NotSent::Full | NotSent::Refused => {
                    (&self.stats.tx_refused, self.tx.take_out(|_| true))
                }
            };
            counter.add(taken);
            if taken == 0 {
                // The error does not concern a single frame: none can be sent now.
                counter.add(self.tx.abandon());
                return Ok(());
            }
        }
        Ok(())
    }

    fn reclaim(&mut self) {
        let done = self.tx.reclaim();
        self.stats.tx_packets.add(done.frames);
        self.stats.tx_bytes.add(done.bytes);
    }
}

impl Lane for Mmap {
    fn receive(&mut self) -> Result<usize, LaneError> {
        self.timer.rx_call();
        self.rx.take(MOST, |frame| {
            if !frame.outgoing {
                self.frames.push(frame);
            }
        });
        self.timer.rx_return();
        if self.frames.is_empty() {
            self.rx.release();
        }
        Ok(self.frames.len())
    }

    fn forward(&mut self) -> Result<(), LaneError> {
        self.reclaim();
        let before = self.tx.under_way();
        for number in 0..self.frames.len() {
            let frame = self.frames[number];
            self.send(&frame);
        }
        self.frames.clear();
        self.rx.release();
        self.timer.tx_call();
        self.kick()?;
        // All frames that were passed to the kernel and not refused, although it may send some
        // later.
        self.timer.tx_return(self.tx.under_way().saturating_sub(before).into());
        self.timer.end();
        Ok(())
    }

    fn flush(&mut self) -> Result<bool, LaneError> {
        self.reclaim();
        self.kick()?;
        self.reclaim();
        Ok(self.tx.under_way() == 0)
    }

    fn abandon(&mut self) {
        self.stats.tx_full.add(self.tx.abandon());
        self.reclaim();
        self.stats.tx_unconfirmed.add(self.tx.under_way().into());
    }

    fn check(&self) -> Result<(), LaneError> {
        LaneError::gone([&self.rx_port, &self.tx_port])
    }

    fn take_error(&mut self) {
        self.rx.socket.take_error();
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.rx.socket.as_fd()
    }
}
