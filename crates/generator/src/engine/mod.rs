// SPDX-License-Identifier: BSD-3-Clause
//! The engine: lcores that receive what arrives and send what is due.
//!
//! Each lcore has a `Sender` (sender.rs) for the flows of its transmit queues and a `Receiver`
//! (receiver.rs) for its receive queues; [`layout`] says which lcore has which queues. The packet
//! path does not allocate and calls only the ports. An lcore's state is private; its counters are
//! in [`crate::books`], and its orders arrive through a [`crate::mailbox::Mailbox`]. Orders carry
//! all objects that they need, and return those that they replaced: see [`Station`] and [`Order`].

pub mod io;
pub mod layout;
mod link;
mod receiver;
mod run;
mod runs;
mod sender;
pub mod source;
mod station;
pub mod timetable;
mod transmit;
mod watch;
mod worker;

pub use link::Link;
pub use receiver::Expectations;
pub use run::{Desk, GivenUp, Load, Source, run};
pub use sender::{Change, NewWriter};
pub use station::{Station, Work};
pub use worker::{Command, Order};

use source::FrameSource;
use timetable::Pace;

/// How frames leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In their slots; a frame is lost if the port has no room.
    Paced,
    /// As fast as the port accepts them.
    Flood,
}

/// Settings of all lcores; constant while a configuration is in force.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How frames leave.
    pub mode: Mode,
    /// Cycles per second.
    pub hz: u64,
    /// A frame offered more than this many cycles after its slot is late.
    pub late_after: u64,
    /// Cycles for one reading of the clock.
    pub clock_cost: u64,
}

impl Settings {
    /// Converts nanoseconds to cycles.
    pub fn cycles(&self, nanoseconds: u64) -> u64 {
        let cycles = u128::from(nanoseconds) * u128::from(self.hz) / 1_000_000_000;
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }

    /// Converts cycles to nanoseconds.
    pub fn nanoseconds(&self, cycles: u64) -> u64 {
        let nanoseconds = u128::from(cycles) * 1_000_000_000 / u128::from(self.hz.max(1));
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }
}

/// How long a flow lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Until it is stopped.
    Endless,
    /// So many frames.
    Frames(u64),
    /// So many nanoseconds from its first slot on.
    Nanoseconds(u64),
}

/// A flow as its lcore needs it.
#[derive(Clone, Debug)]
pub struct FlowSetup {
    /// Its index in the configuration.
    pub index: u16,
    /// Which of the lcore's transmit queues it is sent on.
    pub lane: usize,
    /// Writes its frames.
    pub source: FrameSource,
    /// Whether they carry stamps.
    pub stamped: bool,
    /// When they are due.
    pub pace: Pace,
    /// How long it lasts.
    pub limit: Limit,
}

#[cfg(test)]
mod tests;
