// SPDX-License-Identifier: BSD-3-Clause
//! What lanes that send by system calls have in common: the sending socket, and the counts of
//! frames.

use std::sync::Arc;

use forwarders_common::ethernet::Addresses;

use super::message::{Arrival, Messages};
use super::socket::{NotSent, PacketSocket, not_sent};
use crate::checksum;
use crate::frame;
use crate::interface::Port;
use crate::lane::LaneError;
use crate::spans::Timer;
use crate::stats::LaneStats;

/// A frame to be sent: the index of its buffer, its offset there, and its length.
pub(crate) type Outgoing = (usize, usize, usize);

/// The sending end of a lane.
pub(crate) struct Outbox {
    pub(crate) socket: PacketSocket,
    pub(crate) port: Port,
    /// The addresses to write; none to leave frames unchanged.
    pub(crate) addresses: Option<Addresses>,
    pub(crate) stats: Arc<LaneStats>,
    pub(crate) timer: Timer,
}

impl Outbox {
    /// Counts the content of a buffer and prepares it to be sent; none if it is not to be sent.
    /// `false` means that it was not a received frame.
    pub(crate) fn prepare(
        &self,
        messages: &mut Messages,
        number: usize,
    ) -> (bool, Option<Outgoing>) {
        let (length, tag, checksum_left) = match messages.arrival(number) {
            Arrival::Outgoing => return (false, None),
            Arrival::Truncated => {
                self.stats.rx_packets.add(1);
                self.stats.rx_truncated.add(1);
                return (true, None);
            }
            Arrival::Frame { length, tag, checksum_left } => (length, tag, checksum_left),
        };
        let whole = length + if tag.is_some() { frame::TAG } else { 0 };
        self.stats.rx_packets.add(1);
        self.stats.rx_bytes.add(whole as u64);
        if !self.port.sends(whole, tag) {
            self.stats.tx_too_long.add(1);
            return (true, None);
        }
        let buffer = messages.buffer(number);
        let mut start = frame::TAG;
        if checksum_left {
            self.stats.rx_checksum_left.add(1);
            let is_completed = checksum::complete(&mut buffer[start..start + length]);
            self.stats.rx_checksum_completed.add(is_completed.into());
        }
        if let Some(addresses) = &self.addresses {
            // A runt is overwritten up to its end.
            let room = length.min(addresses.len());
            buffer[start..start + room].copy_from_slice(&addresses[..room]);
        }
        if let Some(tag) = tag {
            frame::put_tag(&mut buffer[..frame::TAG + length], tag);
            start = 0;
        }
        (true, Some((number, start, whole)))
    }

    /// Counts a frame that was sent.
    pub(crate) fn sent(&self, bytes: usize) {
        self.stats.tx_packets.add(1);
        self.stats.tx_bytes.add(bytes as u64);
    }

    /// Counts a frame that was not sent, according to the error of the call.
    ///
    /// # Errors
    /// The interface is gone.
    pub(crate) fn failed(&self, errno: i32) -> Result<(), LaneError> {
        let counter = match not_sent(errno) {
            NotSent::Full => &self.stats.tx_full,
            NotSent::TooLong => &self.stats.tx_too_long,
            NotSent::Down => &self.stats.tx_down,
            NotSent::Refused => &self.stats.tx_refused,
            NotSent::Gone => {
                if self.port.is_gone() {
                    let source = std::io::Error::from_raw_os_error(errno);
                    return Err(LaneError::of(&self.port, "send", source));
                }
                &self.stats.tx_down
            }
        };
        counter.add(1);
        Ok(())
    }
}
