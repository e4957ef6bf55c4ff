// SPDX-License-Identifier: BSD-3-Clause
//! The counts of lanes, and the statistics of ports.

use std::collections::BTreeSet;
use std::sync::Arc;

use forwarders_common::l2fwd::{Counted, Counts};
use measure::Cell;
use telemetry::Value;

/// The number of queues in DPDK's statistics, used or not (`RTE_ETHDEV_QUEUE_STAT_CNTRS`).
const QUEUES: usize = 16;

/// The counts of one lane: its thread writes them, any thread may read them.
///
/// Every received frame is either sent or in one of the counters that begin with `tx_` or `rx_`.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct LaneStats {
    pub(crate) rx_packets: Cell,
    pub(crate) rx_bytes: Cell,
    /// Frames longer than the buffer: the rest is lost, so they are dropped.
    pub(crate) rx_truncated: Cell,
    /// Frames whose sender left the checksum to the interface.
    pub(crate) rx_checksum_left: Cell,
    /// Those of them that are sent on with the correct checksum.
    pub(crate) rx_checksum_completed: Cell,
    pub(crate) tx_packets: Cell,
    pub(crate) tx_bytes: Cell,
    /// Frames without room in the ring or in the socket's buffer.
    pub(crate) tx_full: Cell,
    /// Frames longer than the interface sends.
    pub(crate) tx_too_long: Cell,
    /// Frames for an interface that is down.
    pub(crate) tx_down: Cell,
    /// Frames that the kernel refused for another reason.
    pub(crate) tx_refused: Cell,
    /// Frames passed to the kernel, which had not confirmed them as sent when the program ended.
    pub(crate) tx_unconfirmed: Cell,
    /// System calls to receive and to send.
    pub(crate) rx_calls: Cell,
    pub(crate) tx_calls: Cell,
}

impl LaneStats {
    /// Frames that were to be sent and were not, or for which that is unknown.
    fn unsent(&self) -> u64 {
        let Self { tx_full, tx_too_long, tx_down, tx_refused, tx_unconfirmed, .. } = self;
        let all = [tx_full, tx_too_long, tx_down, tx_refused, tx_unconfirmed];
        all.iter().map(|cell| cell.get()).sum()
    }
}

/// A lane's place among the ports, and what it counts.
pub(crate) struct LaneEntry {
    pub(crate) rx_port: u16,
    pub(crate) tx_port: u16,
    /// The queue's number on both ports.
    pub(crate) queue: u16,
    pub(crate) stats: Arc<LaneStats>,
}

/// Frames that never reached the program, counted by the kernel for a port's sockets.
pub(crate) trait Missed: Send + Sync {
    /// The number of such frames so far.
    fn missed(&self, port: u16) -> u64;

    /// Frames of queues that the program does not poll, if there may be such queues.
    fn unpolled(&self, _port: u16) -> Option<u64> {
        None
    }
}

/// Counters of a program, which any thread may read.
pub(crate) trait Told: Counted + Send + Sync {
    /// A port's counters, with DPDK's names; none for a port that is not forwarded.
    fn ethdev(&self, port: u16) -> Option<Value>;

    /// The counters of a port's queues, as in DPDK's telemetry; none if they are not distinguished.
    fn by_queue(&self, _port: u16) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The answer to `/ethdev/xstats`: what happened to frames that were not sent, and more.
    fn xstats(&self, port: u16) -> Option<Value>;

    /// Checks what has changed on the interfaces. Called about once a second if no lcore forwards.
    fn refresh(&self) {}

    /// Frames that a port's driver refused, if the user should know.
    fn refused(&self, _port: u16) -> u64 {
        0
    }

    /// Returns true if the kernel removed a port's interface from the program. A later check of the
    /// interfaces need not show that: one that left the namespace may be back.
    fn has_left(&self, _port: u16) -> bool {
        false
    }

    /// The counts on the screen.
    fn counted(&self) -> &dyn Counted;
}

/// The statistics of all ports of lanes.
pub(crate) struct PortStats {
    ports: Vec<u16>,
    lanes: Vec<LaneEntry>,
    missed: Box<dyn Missed>,
}

impl PortStats {
    pub(crate) fn new(lanes: Vec<LaneEntry>, missed: Box<dyn Missed>) -> Self {
        let ports: BTreeSet<u16> = lanes.iter().map(|lane| lane.rx_port).collect();
        Self { ports: ports.into_iter().collect(), lanes, missed }
    }

    fn receiving(&self, port: u16) -> impl Iterator<Item = &LaneStats> {
        self.lanes.iter().filter(move |lane| lane.rx_port == port).map(|lane| &*lane.stats)
    }

    fn sending(&self, port: u16) -> impl Iterator<Item = &LaneStats> {
        self.lanes.iter().filter(move |lane| lane.tx_port == port).map(|lane| &*lane.stats)
    }

    fn has(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }
}

impl Told for PortStats {
    // With DPDK's names. Frames that lanes drop are theirs, as in l2fwd, and no error of the port:
    // they are not in `opackets`.
    fn ethdev(&self, port: u16) -> Option<Value> {
        let rx = |cell| sum(self.receiving(port), cell);
        let tx = |cell| sum(self.sending(port), cell);
        self.has(port).then(|| {
            Value::dict([
                ("ipackets", rx(|stats| &stats.rx_packets).into()),
                ("opackets", tx(|stats| &stats.tx_packets).into()),
                ("ibytes", rx(|stats| &stats.rx_bytes).into()),
                ("obytes", tx(|stats| &stats.tx_bytes).into()),
                ("imissed", self.missed.missed(port).into()),
                ("ierrors", 0.into()),
                ("oerrors", 0.into()),
                ("rx_nombuf", 0.into()),
            ])
        })
    }

    fn by_queue(&self, port: u16) -> Vec<(&'static str, Value)> {
        let rx = |cell| by_queue(self.lanes.iter().filter(|lane| lane.rx_port == port), cell);
        let tx = |cell| by_queue(self.lanes.iter().filter(|lane| lane.tx_port == port), cell);
        vec![
            ("q_ipackets", rx(|stats| &stats.rx_packets)),
            ("q_opackets", tx(|stats| &stats.tx_packets)),
            ("q_ibytes", rx(|stats| &stats.rx_bytes)),
            ("q_obytes", tx(|stats| &stats.tx_bytes)),
            ("q_errors", Value::Numbers(vec![0; QUEUES])),
        ]
    }

    fn xstats(&self, port: u16) -> Option<Value> {
        let rx = |cell| sum(self.receiving(port), cell);
        let tx = |cell| sum(self.sending(port), cell);
        self.has(port).then(|| {
            let mut entries = vec![
                ("rx_good_packets", rx(|stats| &stats.rx_packets).into()),
                ("tx_good_packets", tx(|stats| &stats.tx_packets).into()),
                ("rx_good_bytes", rx(|stats| &stats.rx_bytes).into()),
                ("tx_good_bytes", tx(|stats| &stats.tx_bytes).into()),
                ("rx_missed_errors", self.missed.missed(port).into()),
                ("rx_truncated", rx(|stats| &stats.rx_truncated).into()),
                ("rx_checksum_left", rx(|stats| &stats.rx_checksum_left).into()),
                ("rx_checksum_completed", rx(|stats| &stats.rx_checksum_completed).into()),
                ("rx_calls", rx(|stats| &stats.rx_calls).into()),
                ("tx_full", tx(|stats| &stats.tx_full).into()),
                ("tx_too_long", tx(|stats| &stats.tx_too_long).into()),
                ("tx_down", tx(|stats| &stats.tx_down).into()),
                ("tx_refused", tx(|stats| &stats.tx_refused).into()),
                ("tx_unconfirmed", tx(|stats| &stats.tx_unconfirmed).into()),
                ("tx_calls", tx(|stats| &stats.tx_calls).into()),
            ];
            let unpolled = self.missed.unpolled(port);
            entries.extend(unpolled.map(|frames| ("rx_unpolled", frames.into())));
            Value::Dict(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        })
    }

    fn counted(&self) -> &dyn Counted {
        self
    }
}

fn sum<'s>(lanes: impl Iterator<Item = &'s LaneStats>, cell: fn(&LaneStats) -> &Cell) -> u64 {
    lanes.map(|stats| cell(stats).get()).sum()
}

/// As many numbers as in DPDK; further queues are left out.
fn by_queue<'s>(
    lanes: impl Iterator<Item = &'s LaneEntry>,
    cell: fn(&LaneStats) -> &Cell,
) -> Value {
    let mut queues = vec![0; QUEUES];
    for lane in lanes {
        if let Some(queue) = queues.get_mut(usize::from(lane.queue)) {
            *queue += cell(&lane.stats).get();
        }
    }
    Value::Numbers(queues)
}

impl Counted for PortStats {
    fn read(&self) -> Vec<(u16, Counts)> {
        let counts = |port: u16| {
            let mut counts = Counts::default();
            for stats in self.receiving(port) {
                counts.received += stats.rx_packets.get();
                counts.dropped += stats.rx_truncated.get();
            }
            for stats in self.sending(port) {
                counts.sent += stats.tx_packets.get();
                counts.dropped += stats.unsent();
            }
            counts
        };
        self.ports.iter().map(|port| (*port, counts(*port))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Seven;

    impl Missed for Seven {
        fn missed(&self, _port: u16) -> u64 {
            7
        }
    }

    #[test]
    fn a_port_is_the_sum_of_its_lanes() {
        let lane =
            |rx_port, tx_port, queue| LaneEntry { rx_port, tx_port, queue, stats: Arc::default() };
        let lanes = vec![lane(0, 1, 0), lane(0, 1, 1), lane(1, 0, 0)];
        let stats = PortStats::new(lanes, Box::new(Seven));
        for (number, lane) in (1..).zip(&stats.lanes) {
            lane.stats.rx_packets.add(10 * number);
            lane.stats.tx_packets.add(number);
            lane.stats.tx_full.add(2);
            lane.stats.rx_truncated.add(1);
        }
        let all = stats.read();
        // Two that came in truncated and two that could not be sent; one and twice two.
        assert_eq!(all[0], (0, Counts { sent: 3, received: 30, dropped: 4 }));
        assert_eq!(all[1], (1, Counts { sent: 3, received: 30, dropped: 5 }));
        let Some(Value::Dict(told)) = stats.ethdev(0) else { panic!() };
        let number = |name: &str| told.iter().find(|(key, _)| key == name).unwrap().1.clone();
        assert_eq!(number("ipackets"), Value::U64(30));
        assert_eq!(number("opackets"), Value::U64(3));
        assert_eq!(number("imissed"), Value::U64(7));
        let queues =
            |first: &[u64]| Value::Numbers([first, &vec![0; QUEUES - first.len()]].concat());
        let told = stats.by_queue(0);
        assert_eq!(told[0], ("q_ipackets", queues(&[10, 20])));
        assert_eq!(told[1], ("q_opackets", queues(&[3])));
        assert_eq!(told[4], ("q_errors", queues(&[])));
        assert_eq!(stats.ethdev(2), None);
        assert_eq!(stats.xstats(9), None);
    }
}
