// SPDX-License-Identifier: BSD-3-Clause
//! The receiving half of the packet path.

use packet::signature::Signature;

use super::Engine;
use super::io::{BURST, Io};

/// Most full bursts that are received from one port before the others, and sending, have their turn.
const MAX_BURSTS_PER_DRAIN: usize = 8;

impl Engine {
    /// Receives what has arrived on a port and enters it. Returns whether there was anything.
    #[inline]
    pub(super) fn drain<I: Io>(&self, port: usize, io: &mut I) -> bool {
        let Some(books) = self.books.ports.get(port) else { return false };
        let bit = 1u64 << (port & 63);
        let (mut received, mut foreign, mut stale, mut misdirected, mut bytes) =
            (0u64, 0u64, 0u64, 0u64, 0u64);
        // Frames of one flow usually come in a row: count the row, then enter it.
        let (mut row_flow, mut row) = (u16::MAX, 0u64);
        let flow_books = &self.books.flows;
        let enter = |flow: u16, row: u64| {
            if let Some(books) = flow_books.get(usize::from(flow)) {
                books.received.add(row);
            }
        };
        let mut frames = 0;
        for _ in 0..MAX_BURSTS_PER_DRAIN {
            let n = io.receive(|frame| {
                bytes += frame.len() as u64;
                let Some(signature) = Signature::read(frame) else {
                    foreign += 1;
                    return;
                };
                match self.flows.get(usize::from(signature.flow)) {
                    None => stale += 1,
                    Some(flow) if flow.run != u16::from(signature.run) => stale += 1,
                    Some(flow) if flow.setup.rx_mask & bit == 0 => misdirected += 1,
                    Some(_) => {
                        received += 1;
                        if signature.flow != row_flow {
                            enter(row_flow, row);
                            (row_flow, row) = (signature.flow, 0);
                        }
                        row += 1;
                    }
                }
            });
            frames += n as u64;
            if n < BURST {
                break;
            }
        }
        if frames == 0 {
            return false;
        }
        enter(row_flow, row);
        books.frames.add(frames);
        books.bytes.add(bytes);
        books.received.add(received);
        if foreign + stale + misdirected > 0 {
            books.foreign.add(foreign);
            books.stale.add(stale);
            books.misdirected.add(misdirected);
        }
        true
    }
}
