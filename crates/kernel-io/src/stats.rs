// SPDX-License-Identifier: BSD-3-Clause
//! What lanes count, and what ports tell of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use forwarding::l2fwd::{Counted, Counts};
use measure::Cell;
use telemetry::Value;

/// What one lane counts: written by its thread, read by any.
///
/// Every frame that was received is sent, or in one of the counters that begin with `tx_` or `rx_`.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct LaneStats {
    pub(crate) rx_packets: Cell,
    pub(crate) rx_bytes: Cell,
    /// Longer than the buffer; the rest of the frame is lost, and so it is dropped.
    pub(crate) rx_truncated: Cell,
    /// Sent on with a checksum that whoever sent it left to the interface.
    pub(crate) rx_checksum_left: Cell,
    pub(crate) tx_packets: Cell,
    pub(crate) tx_bytes: Cell,
    /// No room in the ring or the socket's buffer.
    pub(crate) tx_full: Cell,
    /// Longer than the interface sends.
    pub(crate) tx_too_long: Cell,
    /// The interface is down.
    pub(crate) tx_down: Cell,
    /// Refused by the kernel for another reason.
    pub(crate) tx_refused: Cell,
    /// Calls of the kernel to receive and to send.
    pub(crate) rx_calls: Cell,
    pub(crate) tx_calls: Cell,
}

impl LaneStats {
    fn dropped(&self) -> u64 {
        let all = [&self.tx_full, &self.tx_too_long, &self.tx_down, &self.tx_refused];
        self.rx_truncated.get() + all.iter().map(|cell| cell.get()).sum::<u64>()
    }
}

/// A lane's place among the ports, and what it counts.
pub(crate) struct LaneEntry {
    pub(crate) rx_port: u16,
    pub(crate) tx_port: u16,
    pub(crate) stats: Arc<LaneStats>,
}

/// Frames that never reached a program, counted by the kernel for a port's sockets.
pub(crate) trait Missed: Send + Sync {
    /// So many frames so far.
    fn missed(&self, port: u16) -> u64;
}

/// Counters of a program that anybody may read.
pub(crate) trait Told: Counted + Send + Sync {
    /// The answer of `/ethdev/stats`; none of a port that is not forwarded.
    fn ethdev(&self, port: u16) -> Option<Value>;

    /// The answer of `/ethdev/xstats`: where frames went that were not sent, and more.
    fn xstats(&self, port: u16) -> Option<Value>;

    /// Frames that a port's driver refused, where that is worth a word to the user.
    fn refused(&self, _port: u16) -> u64 {
        0
    }

    /// What the screen shows.
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
    // With DPDK's names. What lanes drop is theirs, as in l2fwd, and no error of the port's: `opackets`
    // lacks it.
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

    fn xstats(&self, port: u16) -> Option<Value> {
        let rx = |cell| sum(self.receiving(port), cell);
        let tx = |cell| sum(self.sending(port), cell);
        self.has(port).then(|| {
            Value::dict([
                ("rx_good_packets", rx(|stats| &stats.rx_packets).into()),
                ("tx_good_packets", tx(|stats| &stats.tx_packets).into()),
                ("rx_good_bytes", rx(|stats| &stats.rx_bytes).into()),
                ("tx_good_bytes", tx(|stats| &stats.tx_bytes).into()),
                ("rx_missed_errors", self.missed.missed(port).into()),
                ("rx_truncated", rx(|stats| &stats.rx_truncated).into()),
                ("rx_checksum_left", rx(|stats| &stats.rx_checksum_left).into()),
                ("rx_calls", rx(|stats| &stats.rx_calls).into()),
                ("tx_full", tx(|stats| &stats.tx_full).into()),
                ("tx_too_long", tx(|stats| &stats.tx_too_long).into()),
                ("tx_down", tx(|stats| &stats.tx_down).into()),
                ("tx_refused", tx(|stats| &stats.tx_refused).into()),
                ("tx_calls", tx(|stats| &stats.tx_calls).into()),
            ])
        })
    }

    fn counted(&self) -> &dyn Counted {
        self
    }
}

fn sum<'s>(lanes: impl Iterator<Item = &'s LaneStats>, cell: fn(&LaneStats) -> &Cell) -> u64 {
    lanes.map(|stats| cell(stats).get()).sum()
}

impl Counted for PortStats {
    fn read(&self) -> Vec<(u16, Counts)> {
        let counts = |port: u16| {
            let mut counts = Counts::default();
            for stats in self.receiving(port) {
                counts.received += stats.rx_packets.get();
            }
            for stats in self.sending(port) {
                counts.sent += stats.tx_packets.get();
                counts.dropped += stats.dropped();
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
        let lane = |rx_port, tx_port| LaneEntry { rx_port, tx_port, stats: Arc::default() };
        let stats = PortStats::new(vec![lane(0, 1), lane(0, 1), lane(1, 0)], Box::new(Seven));
        for (number, lane) in (1..).zip(&stats.lanes) {
            lane.stats.rx_packets.add(10 * number);
            lane.stats.tx_packets.add(number);
            lane.stats.tx_full.add(2);
            lane.stats.rx_truncated.add(1);
        }
        let all = stats.read();
        assert_eq!(all[0], (0, Counts { sent: 3, received: 30, dropped: 3 }));
        assert_eq!(all[1], (1, Counts { sent: 3, received: 30, dropped: 6 }));
        let Some(Value::Dict(told)) = stats.ethdev(0) else { panic!() };
        let number = |name: &str| told.iter().find(|(key, _)| key == name).unwrap().1.clone();
        assert_eq!(number("ipackets"), Value::U64(30));
        assert_eq!(number("opackets"), Value::U64(3));
        assert_eq!(number("imissed"), Value::U64(7));
        assert_eq!(stats.ethdev(2), None);
        assert_eq!(stats.xstats(9), None);
    }
}
