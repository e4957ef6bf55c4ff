// SPDX-License-Identifier: BSD-3-Clause
//! A configuration that has been found valid: what the OTG model means, without its JSON.

use packet::template::UdpFrame;

use crate::location::Location;
use crate::pacing::FrameRate;

/// Most ports of a configuration.
pub const MAX_PORTS: usize = 16;
/// Most flows of a configuration.
pub const MAX_FLOWS: usize = 1024;

/// Ports and flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order of the configuration.
    pub ports: Vec<PortPlan>,
    /// In the order of the configuration.
    pub flows: Vec<FlowPlan>,
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortPlan {
    /// Its OTG name.
    pub name: String,
    /// Where it is.
    pub location: Location,
}

/// A flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPlan {
    /// Its OTG name.
    pub name: String,
    /// Index of the port that sends it.
    pub tx: usize,
    /// Indices of the ports where it is received; empty means any.
    pub rx: Vec<usize>,
    /// Its frames.
    pub frame: UdpFrame,
    /// How fast.
    pub rate: Rate,
    /// How long.
    pub duration: Duration,
    /// Whether it appears in the flow metrics.
    pub metrics: bool,
    /// Whether these have a loss figure.
    pub loss: bool,
}

impl FlowPlan {
    /// The ports where it is received, as bits.
    pub fn rx_mask(&self) -> u64 {
        match self.rx.as_slice() {
            [] => u64::MAX,
            ports => ports.iter().fold(0, |mask, port| mask | 1 << (port & 63)),
        }
    }
}

/// How fast a flow is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// So many frames in so much time.
    Frames(FrameRate),
    /// Per cent of the port's line rate.
    Percent(f64),
}

/// How long a flow lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duration {
    /// Until it is stopped.
    Continuous,
    /// So many frames.
    Packets(u64),
    /// So many nanoseconds.
    Nanoseconds(u64),
}
