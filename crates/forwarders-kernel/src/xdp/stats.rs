// SPDX-License-Identifier: BSD-3-Clause
//! The per-CPU counts of programs, and the frames that drivers refused.

use std::sync::Arc;

use forwarders_common::l2fwd::{Counted, Counts};
use libbpf_rs::{MapCore as _, MapFlags};
use telemetry::Value;

use super::drops::Drops;
use super::forwarder::Forwarder;
use super::layout::{COUNTERS, Counters};
use super::object::map;
use crate::stats::Told;

/// The statistics of all ports.
pub(super) struct XdpStats {
    pub(super) ports: Vec<u16>,
    /// Owns the programs that count; they run as long as this lives.
    pub(super) forwarder: Arc<Forwarder>,
    /// None if the kernel does not report them.
    pub(super) drops: Option<Drops>,
}

impl XdpStats {
    fn counters(&self, port: u16) -> Counters {
        let key = u32::from(port).to_ne_bytes();
        let values = map(self.forwarder.maps(), "port_counters")
            .ok()
            .and_then(|map| map.lookup_percpu(&key, MapFlags::ANY).ok().flatten())
            .unwrap_or_default();
        Counters::sum(values.iter().filter_map(|value| value.get(..COUNTERS)))
    }

    /// The frames that programs passed to the port's driver, and those that the driver refused.
    /// Read in this order: a frame is passed before it is refused.
    fn sending(&self, port: u16) -> (Counters, Option<u64>) {
        let refused = self.drops.as_ref().and_then(|drops| drops.count(port));
        (self.counters(port), refused)
    }

    fn has(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }
}

/// Bytes of the sent frames; none once a frame was refused, because its length is unknown.
fn sent_bytes(counters: &Counters, refused: Option<u64>) -> Option<u64> {
    (refused.unwrap_or(0) == 0).then_some(counters.tx_given_bytes)
}

/// Passed frames, without the refused ones.
fn sent(counters: &Counters, refused: Option<u64>) -> u64 {
    counters.tx_given.saturating_sub(refused.unwrap_or(0))
}

impl Told for XdpStats {
    fn ethdev(&self, port: u16) -> Option<Value> {
        self.has(port).then(|| {
            let (counters, refused) = self.sending(port);
            let entries = [
                ("ipackets", Some(counters.rx_packets)),
                ("opackets", Some(sent(&counters, refused))),
                ("ibytes", Some(counters.rx_bytes)),
                ("obytes", sent_bytes(&counters, refused)),
                // Frames that are lost before a program runs are counted only by the interface.
                ("imissed", Some(0)),
                ("ierrors", Some(0)),
                ("oerrors", Some(0)),
                ("rx_nombuf", Some(0)),
            ];
            let known =
                |(name, number): (&str, Option<u64>)| Some((name.to_owned(), number?.into()));
            Value::Dict(entries.into_iter().filter_map(known).collect())
        })
    }

    fn xstats(&self, port: u16) -> Option<Value> {
        self.has(port).then(|| {
            let (counters, refused) = self.sending(port);
            let mut entries: Vec<(String, Value)> = [
                ("rx_good_packets", counters.rx_packets),
                ("tx_good_packets", sent(&counters, refused)),
                ("rx_good_bytes", counters.rx_bytes),
                ("tx_given_bytes", counters.tx_given_bytes),
                ("rx_runt", counters.rx_runt),
                ("rx_passed", counters.rx_passed),
                ("rx_unroutable", counters.rx_unroutable),
                ("tx_no_port", counters.tx_no_port),
                ("rx_checksum_left", counters.rx_checksum_left),
                ("rx_checksum_completed", counters.rx_checksum_completed),
            ]
            .map(|(name, number)| (name.to_owned(), number.into()))
            .into();
            entries.extend(refused.map(|refused| ("tx_refused".to_owned(), refused.into())));
            Value::Dict(entries)
        })
    }

    fn refresh(&self) {
        // After an error the old values stay; the next attempt is in a second.
        let _ = self.forwarder.refresh();
    }

    fn refused(&self, port: u16) -> u64 {
        self.sending(port).1.unwrap_or(0)
    }

    fn has_left(&self, port: u16) -> bool {
        self.forwarder.has_left(port)
    }

    fn counted(&self) -> &dyn Counted {
        self
    }
}

impl Counted for XdpStats {
    fn read(&self) -> Vec<(u16, Counts)> {
        let counts = |port: u16| {
            let (counters, refused) = self.sending(port);
            let own = counters.rx_runt + counters.rx_unroutable + counters.tx_no_port;
            Counts {
                sent: sent(&counters, refused),
                received: counters.rx_packets,
                dropped: own + refused.unwrap_or(0),
            }
        };
        self.ports.iter().map(|port| (*port, counts(*port))).collect()
    }
}
