// SPDX-License-Identifier: BSD-3-Clause
//! The engine: lcores that receive what arrives and send what is due.
//!
//! Each lcore has a `Sender` (sender.rs) for the flows of its transmit queues and a `Receiver`
//! (receiver.rs) for its receive queues; which has what is in [`layout`]. The packet path allocates
//! nothing and calls nothing but the ports. A lcore's state is its own; what it counts is in
//! [`crate::books`], and what it is told comes through a [`crate::mailbox::Mailbox`]. Orders bring along
//! what was made for them, and take what they replace back: see [`Station`] and [`Order`].

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
pub use sender::Change;
pub use station::{Station, Work};
pub use worker::{Command, Order};

use source::FrameSource;
use timetable::Pace;

/// How frames leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At their slots; a frame without room is lost.
    Paced,
    /// As fast as the port takes them.
    Flood,
}

/// How the lcores work; the same for all, and as long as a configuration is in force.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How frames leave.
    pub mode: Mode,
    /// Cycles per second.
    pub hz: u64,
    /// A frame offered more than this many cycles after its slot is late.
    pub late_after: u64,
    /// Cycles that one reading of the clock takes.
    pub clock_cost: u64,
}

impl Settings {
    /// Cycles in so many nanoseconds.
    pub fn cycles(&self, nanoseconds: u64) -> u64 {
        let cycles = u128::from(nanoseconds) * u128::from(self.hz) / 1_000_000_000;
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }

    /// Nanoseconds in so many cycles.
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

/// A flow as the lcore that sends it wants it.
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
