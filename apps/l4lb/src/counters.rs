// SPDX-License-Identifier: BSD-3-Clause
//! What is counted, by each lcore for itself.

use flow::counters::{Reader, Writer, total};

use crate::tables::MOST_VIPS;

/// Why packets are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No TCP or UDP that is balanced.
    Other,
    Denied,
    /// Its destination is no VIP.
    NoVip,
    /// Its VIP has no backend.
    NoBackend,
    TooBig,
    /// Its time to live is over, its transport header is broken, others share it, or it has no room for headers.
    Failed,
    /// The port did not take it.
    Unsent,
}

impl Reason {
    pub const ALL: [(Self, &str); 7] = [
        (Self::Other, "other"),
        (Self::Denied, "denied"),
        (Self::NoVip, "no_vip"),
        (Self::NoBackend, "no_backend"),
        (Self::TooBig, "too_big"),
        (Self::Failed, "failed"),
        (Self::Unsent, "unsent"),
    ];
}

/// Beside the drops: entries of the table of single counters.
const RECEIVED: usize = Reason::ALL.len();
const FULL: usize = RECEIVED + 1;
const FORGOTTEN: usize = FULL + 1;
const SINGLE: usize = FORGOTTEN + 1;

/// An lcore's counters.
pub struct Counters {
    single: Writer<1>,
    /// Packets and bytes of each VIP; those of answers in the next entry.
    passed: Writer<2>,
    new: Writer<1>,
}

impl Counters {
    pub fn new() -> Self {
        Self {
            single: Writer::new(SINGLE),
            passed: Writer::new(2 * MOST_VIPS),
            new: Writer::new(MOST_VIPS),
        }
    }

    #[inline(always)]
    pub fn received(&mut self, packets: usize) {
        self.single.add(RECEIVED, [packets as u64]);
    }

    #[inline(always)]
    pub fn passed(&mut self, vip: u16, answers: bool, len: usize) {
        self.passed.add(entry(vip, answers), [1, len as u64]);
    }

    #[inline]
    pub fn new_connection(&mut self, vip: u16) {
        self.new.add(vip.into(), [1]);
    }

    #[inline(always)]
    pub fn dropped(&mut self, why: Reason) {
        self.single.add(why as usize, [1]);
    }

    #[inline]
    pub fn unsent(&mut self, packets: usize) {
        self.single.add(Reason::Unsent as usize, [packets as u64]);
    }

    /// A connection was not noted: the table is full.
    #[inline]
    pub fn full(&mut self) {
        self.single.add(FULL, [1]);
    }

    #[inline]
    pub fn forgotten(&mut self, connections: usize) {
        self.single.add(FORGOTTEN, [connections as u64]);
    }

    pub fn reader(&self) -> LcoreReader {
        LcoreReader {
            single: self.single.reader(),
            passed: self.passed.reader(),
            new: self.new.reader(),
        }
    }
}

/// Reads an lcore's counters on another thread.
pub struct LcoreReader {
    single: Reader<1>,
    passed: Reader<2>,
    new: Reader<1>,
}

/// The sums of all lcores.
pub struct Totals {
    single: Vec<Reader<1>>,
    passed: Vec<Reader<2>>,
    new: Vec<Reader<1>>,
}

impl Totals {
    pub fn new(lcores: Vec<LcoreReader>) -> Self {
        let mut totals = Self { single: Vec::new(), passed: Vec::new(), new: Vec::new() };
        for lcore in lcores {
            totals.single.push(lcore.single);
            totals.passed.push(lcore.passed);
            totals.new.push(lcore.new);
        }
        totals
    }

    /// Names and numbers of everything but VIPs.
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        let sum = |entry| total(&self.single, entry)[0];
        let drops = Reason::ALL.into_iter().map(|(why, name)| (name, sum(why as usize)));
        let others =
            [("received", RECEIVED), ("table_full", FULL), ("connections_forgotten", FORGOTTEN)];
        others.into_iter().map(|(name, entry)| (name, sum(entry))).chain(drops).collect()
    }

    /// Packets and bytes of a VIP, those of answers from its backends (NAT), and new connections. Packets count when they are changed;
    /// `unsent` has those that a port then did not take.
    pub fn vip(&self, vip: u16) -> [(&'static str, u64); 5] {
        let [packets, bytes] = total(&self.passed, entry(vip, false));
        let [answers, answer_bytes] = total(&self.passed, entry(vip, true));
        let [new] = total(&self.new, vip.into());
        [
            ("packets", packets),
            ("bytes", bytes),
            ("answers", answers),
            ("answer_bytes", answer_bytes),
            ("new", new),
        ]
    }
}

/// The entry of a VIP's packets.
fn entry(vip: u16, answers: bool) -> usize {
    usize::from(vip) * 2 + usize::from(answers)
}
