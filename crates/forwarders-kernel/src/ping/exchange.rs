// SPDX-License-Identifier: BSD-3-Clause
//! Sends one frame and waits until it is back.

use std::collections::HashSet;
use std::io;
use std::os::raw::c_int;
use std::time::{Duration, Instant};

use forwarders_common::stop::Stop;
use measure::{Distribution, clock};

use super::PingError;
use super::options::Options;
use super::request::Request;
use crate::af_packet::PacketSocket;

const BUFFER: c_int = 1 << 20;

/// Counts of the frames.
#[derive(Default)]
pub(super) struct Books {
    pub(super) sent: u64,
    /// Frames that the kernel had no room for.
    pub(super) not_sent: u64,
    /// Frames back in time: round trips in cycles, without the clock's cost.
    pub(super) round_trips: Distribution,
    /// Frames back after their deadline.
    pub(super) late: u64,
    /// Frames that came back again.
    pub(super) duplicates: u64,
    /// Frames that were received but never sent by this program.
    pub(super) strangers: u64,
    /// Frames of any kind that the socket had no room for.
    pub(super) dropped: u64,
}

impl Books {
    /// Frames that never came back.
    pub(super) fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.round_trips.count() + self.late)
    }
}

pub(super) struct Exchange {
    socket: PacketSocket,
    iface: String,
    request: Request,
    buffer: Vec<u8>,
    /// Frames whose deadline has passed.
    missing: HashSet<u64>,
    books: Books,
}

impl Exchange {
    pub(super) fn open(iface: &str, index: u32, request: Request) -> Result<Self, PingError> {
        let system = |what, source| PingError::System { iface: iface.to_owned(), what, source };
        let socket = PacketSocket::new().map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => PingError::NotAllowed,
            _ => system("a packet socket", source),
        })?;
        let set = || {
            socket.set_buffers(BUFFER)?;
            socket.set(libc::PACKET_IGNORE_OUTGOING, &1 as &c_int)?;
            rustix::io::ioctl_fionbio(&socket, true)?;
            // A forwarder may send to another address.
            socket.promiscuous(index)?;
            socket.receive_from(index)
        };
        set().map_err(|source| system("options of a packet socket", source))?;
        let buffer = vec![0; request.len() + 1];
        let (books, missing) = (Books::default(), HashSet::new());
        Ok(Self { socket, iface: iface.to_owned(), request, buffer, missing, books })
    }

    pub(super) fn books(&self) -> &Books {
        &self.books
    }

    /// Sends as many frames as requested, or until a signal arrives.
    pub(super) fn run(&mut self, options: &Options, stop: &Stop) -> Result<(), PingError> {
        let hz = clock::hz();
        let deadline = (u128::from(hz) * options.deadline.as_nanos() / 1_000_000_000) as u64;
        let cost = clock::cost();
        let mut due = Instant::now();
        for number in 0..options.count {
            if stop.is_raised() {
                break;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            self.drain(number)?;
            if let Some(cycles) = self.one(number, deadline)? {
                self.books.round_trips.add(cycles.saturating_sub(cost), 1);
            }
            due = Instant::now().max(due + options.interval);
        }
        if !self.missing.is_empty() {
            std::thread::sleep(options.deadline.min(Duration::from_millis(100)));
        }
        self.drain(options.count)?;
        self.books.dropped = self.socket.dropped();
        Ok(())
    }

    /// Cycles until the frame of that number was back; none if it was not sent, or not back in
    /// time.
    fn one(&mut self, number: u64, deadline: u64) -> Result<Option<u64>, PingError> {
        let frame = self.request.numbered(number);
        let begin = clock::now();
        match rustix::io::write(&self.socket, frame) {
            Ok(_) => self.books.sent += 1,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::NOBUFS) => {
                self.books.not_sent += 1;
                return Ok(None);
            }
            Err(error) => return Err(self.failed("send", error)),
        }
        loop {
            let length = self.receive()?;
            let took = clock::now().wrapping_sub(begin);
            match length {
                Some(length) if self.request.number_of(&self.buffer[..length]) == Some(number) => {
                    return Ok(Some(took));
                }
                Some(length) => self.enter(length),
                None => std::hint::spin_loop(),
            }
            // Frames of other senders do not extend the deadline.
            if took > deadline {
                self.missing.insert(number);
                return Ok(None);
            }
        }
    }

    /// Reads frames that have arrived meanwhile; no number up to `next` is outstanding.
    fn drain(&mut self, next: u64) -> Result<(), PingError> {
        // Others may send without end.
        for _ in 0..next.clamp(1024, 65_536) {
            let Some(length) = self.receive()? else { break };
            self.enter(length);
        }
        Ok(())
    }

    /// Counts a frame that is not the expected one.
    fn enter(&mut self, length: usize) {
        match self.request.number_of(&self.buffer[..length]) {
            None => self.books.strangers += 1,
            Some(number) if self.missing.remove(&number) => self.books.late += 1,
            Some(_) => self.books.duplicates += 1,
        }
    }

    fn receive(&mut self) -> Result<Option<usize>, PingError> {
        match rustix::io::read(&self.socket, &mut self.buffer[..]) {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(self.failed("receive", error)),
        }
    }

    fn failed(&self, what: &'static str, error: rustix::io::Errno) -> PingError {
        PingError::System { iface: self.iface.clone(), what, source: error.into() }
    }
}
