// SPDX-License-Identifier: BSD-3-Clause
//! A configuration that has been found valid: what the OTG model means, without its JSON.

use packet::frame::{FrameSpec, SignatureSpec};

use crate::capture::CapturePlan;
use crate::location::Location;
use crate::pacing::FrameRate;
use crate::replay::{Frames, Timing};

/// Most ports of a configuration.
pub const MAX_PORTS: usize = 16;
/// Most flows of a configuration.
pub const MAX_FLOWS: usize = 1024;

/// Ports, flows and captures.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// In the order of the configuration.
    pub ports: Vec<PortPlan>,
    /// In the order of the configuration.
    pub flows: Vec<FlowPlan>,
    /// In the order of the configuration; no port is in two of them.
    pub captures: Vec<CapturePlan>,
    /// Whether payloads carry a checksum and are looked through where they arrive.
    pub integrity: bool,
    /// Whether flow metrics give the loss as a duration too.
    pub loss_duration: bool,
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortPlan {
    /// Its OTG name.
    pub name: String,
    /// Where it is.
    pub location: Location,
    /// What 100 per cent is, in Mbit/s on layer 1, where the configuration says so.
    pub speed_mbps: Option<u32>,
    /// Whether frames for other addresses are received too.
    pub promiscuous: bool,
}

/// A flow.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Its OTG name.
    pub name: String,
    /// Index of the port that sends it.
    pub tx: usize,
    /// Indices of the ports where it is received; empty means any.
    pub rx: Vec<usize>,
    /// Its frames.
    pub source: Source,
    /// How fast.
    pub rate: Rate,
    /// How long.
    pub duration: Duration,
    /// How long after the start its first frame is due.
    pub delay: Wait,
    /// What is measured.
    pub metrics: Metrics,
}

/// Where a flow's frames come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Headers with patterns.
    Frames(Box<FrameSpec>),
    /// A capture file.
    Replay(Frames, Timing),
}

impl Source {
    /// Mean size of its frames in bytes, FCS included.
    pub fn mean_with_fcs(&self) -> f64 {
        match self {
            Source::Frames(spec) => spec.sizes.mean_with_fcs(),
            Source::Replay(frames, _) => {
                frames.bytes() as f64 / frames.len().max(1) as f64 + packet::FCS_LEN as f64
            }
        }
    }

    /// Size of its largest frame in bytes, FCS included.
    pub fn max_with_fcs(&self) -> usize {
        match self {
            Source::Frames(spec) => spec.sizes.max_with_fcs(),
            Source::Replay(frames, _) => frames.longest() + packet::FCS_LEN,
        }
    }
}

/// By what a flow's frames are known where they arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Nothing: nobody counts them there as the flow's.
    #[default]
    None,
    /// A signature.
    Full,
    /// A short signature.
    Short,
    /// Header fields.
    Fields,
}

impl Mark {
    /// What figures call it.
    pub const fn name(self) -> &'static str {
        match self {
            Mark::None => "none",
            Mark::Full => "full",
            Mark::Short => "short",
            Mark::Fields => "fields",
        }
    }

    /// Whether frames have numbers, so that order and duplicates are known.
    pub const fn is_numbered(self) -> bool {
        matches!(self, Mark::Full | Mark::Short)
    }
}

/// What is measured of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// Whether it appears in the flow metrics. Then its frames are known where they arrive, by a [`Mark`].
    pub enable: bool,
    /// Whether these have a loss figure.
    pub loss: bool,
    /// How many frames are to come back for each one sent.
    pub rx_tx_ratio: f64,
    /// Whether these have the moments of the first and last frame received.
    pub timestamps: bool,
    /// Whether its frames carry stamps, so that latency and jitter are measured.
    pub latency: bool,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics { enable: false, loss: false, rx_tx_ratio: 1.0, timestamps: false, latency: false }
    }
}

impl FlowPlan {
    /// Whether its frames carry stamps.
    pub fn is_stamped(&self) -> bool {
        self.metrics.enable && self.metrics.latency
    }

    /// By what its frames are known where they arrive.
    pub fn mark(&self) -> Mark {
        match &self.source {
            Source::Frames(spec) => match spec.signature {
                Some(SignatureSpec::Full { .. }) => Mark::Full,
                Some(SignatureSpec::Short) => Mark::Short,
                None if self.metrics.enable => Mark::Fields,
                None => Mark::None,
            },
            // Only the self-test counts a file's frames: those that it has written there with signatures.
            Source::Replay(..) if self.metrics.enable => Mark::Full,
            Source::Replay(..) => Mark::None,
        }
    }

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
    /// So many bits per second, counted on a layer.
    Bits {
        /// Bits per second.
        bits: u64,
        /// Bytes that count for each frame beside those from destination address to FCS.
        overhead: usize,
    },
    /// Per cent of the port's line rate.
    Percent(f64),
    /// As the times of a capture file say.
    Own,
}

/// A time, or what a port of a line rate needs for so many bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wait {
    /// Nanoseconds.
    Nanoseconds(f64),
    /// Bytes on the wire.
    Bytes(f64),
}

impl Wait {
    /// No time at all.
    pub const NONE: Wait = Wait::Nanoseconds(0.0);
}

/// How long a flow lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Duration {
    /// Until it is stopped.
    Continuous,
    /// So many frames.
    Packets(u64),
    /// So many nanoseconds.
    Nanoseconds(u64),
    /// Frames at the flow's rate in bursts with gaps between them.
    Bursts {
        /// How many bursts; 0 means without end.
        bursts: u64,
        /// Frames of each.
        packets: u64,
        /// From a burst's last frame to the next one's first, beside the flow's own interval.
        gap: Wait,
    },
}
