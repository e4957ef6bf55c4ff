// SPDX-License-Identifier: BSD-3-Clause
//! From the RX ring of one socket to the TX ring of another, in the same memory, without a copy by
//! the program.
//!
//! A lane's chunks circulate: fill ring of the receiving socket, RX ring, the program, TX ring of
//! the sending socket, its completion ring, and back. Each ring has one user in the program: fill
//! and RX of a socket belong to the lane that receives there, TX and completion to the one that
//! sends there.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use forwarders_common::ethernet::{Addresses, halves, write_halves};

use super::program::PortProgram;
use super::ring::{Consumer, Producer};
use super::socket::XdpSocket;
use super::umem::Chunks;
use crate::checksum;
use crate::interface::{Port, Promiscuous};
use crate::lane::{Lane, LaneError, MOST};
use crate::spans::Timer;
use crate::stats::LaneStats;

/// The receiving half of a socket.
pub(crate) struct Receiving {
    pub(crate) socket: Arc<XdpSocket>,
    pub(crate) port: Port,
    pub(crate) fill: Producer<u64>,
    pub(crate) rx: Consumer<libc::xdp_desc>,
    /// Held as long as the port is used for receiving.
    pub(crate) _promiscuous: Option<Arc<Promiscuous>>,
}

/// The sending half of a socket.
pub(crate) struct Sending {
    pub(crate) socket: Arc<XdpSocket>,
    pub(crate) port: Port,
    pub(crate) completion: Consumer<u64>,
    pub(crate) tx: Producer<libc::xdp_desc>,
}

/// What a lane counts and measures.
pub(crate) struct Noting {
    pub(crate) stats: Arc<LaneStats>,
    pub(crate) timer: Timer,
}

/// A lane between two sockets.
pub(crate) struct XdpLane {
    rx: Receiving,
    tx: Sending,
    chunks: Chunks,
    addresses: Option<(u64, u32)>,
    /// True if the kernel polls only in the program's calls.
    busy_poll: bool,
    stats: Arc<LaneStats>,
    timer: Timer,
    frames: Vec<libc::xdp_desc>,
    /// Bytes of the frame in each chunk, while it is in the TX ring or with the driver.
    lengths: Vec<u32>,
    /// Number of frames in the TX ring or with the driver.
    under_way: usize,
    /// Keeps the program on the receiving port.
    _program: Arc<PortProgram>,
}

impl XdpLane {
    pub(crate) fn new(
        rx: Receiving,
        tx: Sending,
        chunks: Chunks,
        addresses: Option<Addresses>,
        busy_poll: bool,
        Noting { stats, timer }: Noting,
        program: Arc<PortProgram>,
    ) -> Self {
        let mut lane = Self {
            addresses: addresses.as_ref().map(halves),
            frames: Vec::with_capacity(MOST),
            lengths: vec![0; chunks.free()],
            under_way: 0,
            _program: program,
            rx,
            tx,
            chunks,
            busy_poll,
            stats,
            timer,
        };
        lane.refill();
        lane
    }

    /// Gives free chunks to the kernel for receiving.
    fn refill(&mut self) {
        let room = self.rx.fill.room(self.chunks.free() as u32);
        for _ in 0..room {
            let Some(chunk) = self.chunks.take() else { break };
            self.rx.fill.push(chunk);
        }
        if room > 0 {
            self.rx.fill.submit();
        }
    }

    /// Takes back the chunks of frames that the driver has taken, which count as sent from then on.
    /// Frames that it drops later are counted by the interface.
    fn reclaim(&mut self) {
        if self.under_way == 0 {
            return;
        }
        let Self { chunks, lengths, .. } = self;
        let mut bytes = 0;
        let mut sent = 0;
        self.tx.completion.take(u32::MAX, |address| {
            if let Some(length) = chunks.number(address).and_then(|number| lengths.get(number)) {
                bytes += u64::from(*length);
                sent += 1;
                chunks.give(address);
            }
        });
        self.stats.tx_packets.add(sent);
        self.stats.tx_bytes.add(bytes);
        self.under_way -= (sent as usize).min(self.under_way);
    }

    fn wake_rx(&mut self) -> Result<(), LaneError> {
        if !self.busy_poll && !self.rx.fill.needs_wakeup() {
            return Ok(());
        }
        self.stats.rx_calls.add(1);
        let woken = self.rx.socket.wake_rx();
        woken.map_err(|error| LaneError::of(&self.rx.port, "recvfrom", error))
    }

    fn wake_tx(&mut self) -> Result<(), LaneError> {
        if !self.busy_poll && !self.tx.tx.needs_wakeup() {
            return Ok(());
        }
        self.stats.tx_calls.add(1);
        let woken = self.tx.socket.wake_tx();
        woken.map_err(|error| LaneError::of(&self.tx.port, "sendto", error))
    }
}

impl Lane for XdpLane {
    fn receive(&mut self) -> Result<usize, LaneError> {
        self.timer.rx_call();
        let frames = &mut self.frames;
        let received = self.rx.rx.take(MOST as u32, |frame| frames.push(frame));
        self.timer.rx_return();
        if received == 0 {
            self.reclaim();
            self.refill();
            self.wake_rx()?;
        }
        Ok(received as usize)
    }

    fn forward(&mut self) -> Result<(), LaneError> {
        self.reclaim();
        let before = self.under_way;
        for frame in self.frames.drain(..) {
            self.stats.rx_packets.add(1);
            self.stats.rx_bytes.add(frame.len.into());
            // SAFETY: the descriptor is from this lane's RX ring, and its chunk is passed on only
            // below.
            let bytes = unsafe { self.chunks.frame(frame.addr, frame.len) };
            let Some(bytes) = bytes else {
                self.stats.tx_refused.add(1);
                continue;
            };
            // The kernel does not report for which frames the checksum was left to the interface.
            if self.rx.port.is_virtual && checksum::complete(bytes) {
                self.stats.rx_checksum_left.add(1);
                self.stats.rx_checksum_completed.add(1);
            }
            let header = bytes.first_chunk_mut();
            if let (Some(header), Some((front, back))) = (header, self.addresses) {
                write_halves(header, front, back);
            }
            if frame.len as usize > self.tx.port.longest_frame() {
                self.stats.tx_too_long.add(1);
                self.chunks.give(frame.addr);
                continue;
            }
            let number = self.chunks.number(frame.addr);
            let Some(length) = number.and_then(|number| self.lengths.get_mut(number)) else {
                self.stats.tx_refused.add(1);
                continue;
            };
            *length = frame.len;
            if self.tx.tx.push(libc::xdp_desc { options: 0, ..frame }) {
                self.under_way += 1;
            } else {
                self.stats.tx_full.add(1);
                self.chunks.give(frame.addr);
            }
        }
        self.timer.tx_call();
        self.tx.tx.submit();
        self.refill();
        self.wake_tx()?;
        // Passed to the kernel; the driver may take them later.
        self.timer.tx_return((self.under_way - before) as u64);
        self.timer.end();
        Ok(())
    }

    fn flush(&mut self) -> Result<bool, LaneError> {
        self.reclaim();
        if self.tx.tx.waiting() > 0 {
            self.wake_tx()?;
            self.reclaim();
        }
        Ok(self.under_way == 0)
    }

    fn abandon(&mut self) {
        self.stats.tx_unconfirmed.add(self.under_way as u64);
        self.under_way = 0;
    }

    fn check(&self) -> Result<(), LaneError> {
        LaneError::gone([&self.rx.port, &self.tx.port])
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.rx.socket.as_fd()
    }
}
