// SPDX-License-Identifier: BSD-3-Clause
//! A valid configuration: the meaning of the OTG model, without its JSON.

use std::sync::Arc;

use packet::frame::{FrameSpec, SignatureSpec};

use crate::capture::CapturePlan;
use crate::location::Location;
use crate::neighbors::{Hop, Interface};
use crate::pacing::FrameRate;
use crate::replay::{Frames, Timing};
use crate::tags::Tags;

/// Most ports of a configuration.
pub const MAX_PORTS: usize = 16;
/// Most flows of a configuration: as many as a short mark can name.
pub const MAX_FLOWS: usize = 16_384;
/// Above so many flows, none has histograms: those of 16,384 flows would take gigabytes.
pub const MAX_WITH_HISTOGRAMS: usize = 1024;

/// Ports, flows and captures.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// In the order of the configuration.
    pub ports: Vec<PortPlan>,
    /// In the order of the configuration.
    pub flows: Vec<FlowPlan>,
    /// In the order of the configuration; no port is in two of them.
    pub captures: Vec<CapturePlan>,
    /// The interfaces of its devices.
    pub interfaces: Vec<Interface>,
    /// True if they neither answer nor ask before a request starts them.
    pub manual_start: bool,
    /// True if payloads carry a checksum, which the receiver verifies.
    pub integrity: bool,
    /// True if flow metrics also report loss as a duration.
    pub loss_duration: bool,
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortPlan {
    /// Its OTG name.
    pub name: String,
    /// Where it is.
    pub location: Location,
    /// What 100 per cent means, in Mbit/s on layer 1, if the configuration says so.
    pub speed_mbps: Option<u32>,
    /// True if frames for other addresses are received too.
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
    /// Where its frames go first, if that is for the generator to find out: their destination addresses, in turn.
    pub hops: Vec<Hop>,
    /// Its rate.
    pub rate: Rate,
    /// How long it lasts.
    pub duration: Duration,
    /// How long after the start its first frame is due.
    pub delay: Wait,
    /// What is measured.
    pub metrics: Metrics,
    /// What tells the rows of its tagged metrics apart; `None` where it has none.
    pub tags: Option<Arc<Tags>>,
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

/// How a flow's frames are recognised when they arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Not at all: they are not counted as the flow's.
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
    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Mark::None => "none",
            Mark::Full => "full",
            Mark::Short => "short",
            Mark::Fields => "fields",
        }
    }

    /// True if frames have numbers, so that order and duplicates are known.
    pub const fn is_numbered(self) -> bool {
        matches!(self, Mark::Full | Mark::Short)
    }
}

/// What is measured for a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// True if it appears in the flow metrics. Its frames are then recognised by a [`Mark`].
    pub enable: bool,
    /// True if the metrics include the loss.
    pub loss: bool,
    /// How many frames are expected for each one sent.
    pub rx_tx_ratio: f64,
    /// True if the metrics include the times of the first and the last received frame.
    pub timestamps: bool,
    /// True if its frames carry stamps, so that latency and jitter are measured.
    pub latency: bool,
    /// True if frames are counted by the port where they arrive, too.
    pub rx_name: bool,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            enable: false,
            loss: false,
            rx_tx_ratio: 1.0,
            timestamps: false,
            latency: false,
            rx_name: false,
        }
    }
}

impl FlowPlan {
    /// Returns true if its frames carry stamps.
    pub fn is_stamped(&self) -> bool {
        self.metrics.enable && self.metrics.latency
    }

    /// How its frames are recognised when they arrive.
    pub fn mark(&self) -> Mark {
        match &self.source {
            Source::Frames(spec) => match spec.signature {
                Some(SignatureSpec::Full { .. }) => Mark::Full,
                Some(SignatureSpec::Short) => Mark::Short,
                None if self.metrics.enable => Mark::Fields,
                None => Mark::None,
            },
            // Only the self-test counts a file's frames, because it has written them with signatures.
            Source::Replay(..) if self.metrics.enable => Mark::Full,
            Source::Replay(..) => Mark::None,
        }
    }

    /// The ports where it is received, as a bit mask.
    pub fn rx_mask(&self) -> u64 {
        match self.rx.as_slice() {
            [] => u64::MAX,
            ports => ports.iter().fold(0, |mask, port| mask | 1 << (port & 63)),
        }
    }
}

/// The rate of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// So many frames in so much time.
    Frames(FrameRate),
    /// So many bits per second, counted on some layer.
    Bits {
        /// Bits per second.
        bits: u64,
        /// Bytes that count per frame in addition to those from destination address to FCS.
        overhead: usize,
    },
    /// Percentage of the port's line rate.
    Percent(f64),
    /// By the times of a capture file.
    Own,
}

/// A time, or the time that so many bytes take at the port's line rate.
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
        /// Number of bursts; 0 means unlimited.
        bursts: u64,
        /// Frames per burst.
        packets: u64,
        /// From a burst's last frame to the next one's first, in addition to the flow's own
        /// interval.
        gap: Wait,
    },
}
