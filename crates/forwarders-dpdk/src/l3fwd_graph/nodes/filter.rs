// SPDX-License-Identifier: BSD-3-Clause
//! Which packets may pass.

use dpdk::Mbuf;
use dpdk::acl::{Inputs, Verdict};
use dpdk::qsbr::Reader;
use graph::{Batch, Node, Outlet};

use super::BURST;
use super::header::{ETHERNET, TYPE_IPV4, TYPE_IPV6, ether_type};
use crate::l3fwd_graph::rules::{Count, Rules, Tables};

graph::edges! {
    /// What the rules say.
    pub enum Filtered {
        /// A rule lets the packet pass, or there are none for its family.
        Pass,
        /// A rule denies it, or none matches.
        Deny,
    }
}

/// Packets between the one that is looked at and the one whose bytes are fetched meanwhile.
const AHEAD: usize = 8;

/// Asks the access control lists.
pub struct Filter<'t, 'eal> {
    tables: &'t Tables<'t, 'eal>,
    reader: Reader<'t>,
    /// Which of the lists and of their counters are this lcore's.
    place: usize,
}

impl<'t, 'eal> Filter<'t, 'eal> {
    /// For the lcore at that place in the plan.
    pub fn new(tables: &'t Tables<'t, 'eal>, reader: Reader<'t>, place: usize) -> Self {
        Self { tables, reader, place }
    }

    /// Says of each packet whether it passes. `passes` are all `false` before.
    #[inline]
    fn judge(&mut self, packets: &[Mbuf<'_>], passes: &mut [bool; BURST]) {
        // Only while packets are here, so that nobody who replaces rules waits for an lcore without any.
        let online = self.reader.online();
        let mut ipv4 =
            Asked::new(self.tables.ipv4.as_ref().map(|table| table.read(&online)), self.place);
        let mut ipv6 =
            Asked::new(self.tables.ipv6.as_ref().map(|table| table.read(&online)), self.place);
        for (place, (packet, passes)) in packets.iter().zip(&mut *passes).enumerate() {
            if let Some(later) = packets.get(place + AHEAD) {
                later.prefetch();
            }
            *passes = match packet.header::<ETHERNET>().map(ether_type) {
                Some(TYPE_IPV4) => ipv4.ask(packet, place),
                Some(TYPE_IPV6) => ipv6.ask(packet, place),
                // What becomes of these is for the next node to say.
                _ => true,
            };
        }
        ipv4.answer(passes);
        ipv6.answer(passes);
    }
}

impl<'m> Node<Mbuf<'m>> for Filter<'_, '_> {
    type Next = Filtered;

    #[inline]
    fn process<O: Outlet<Mbuf<'m>, Filtered>>(
        &mut self,
        mut batch: Batch<'_, Mbuf<'m>>,
        out: &mut O,
    ) {
        // A batch that is sent on whole costs nothing: it is not split where that is not needed.
        while batch.len() > BURST {
            let part = batch.split_front(BURST);
            self.pass_on(part, out);
        }
        self.pass_on(batch, out);
    }
}

impl Filter<'_, '_> {
    #[inline]
    fn pass_on<'m, O: Outlet<Mbuf<'m>, Filtered>>(
        &mut self,
        mut batch: Batch<'_, Mbuf<'m>>,
        out: &mut O,
    ) {
        let mut passes = [false; BURST];
        self.judge(&batch, &mut passes);
        let passing = bring_forward(&mut batch, &passes);
        if passing == batch.len() {
            // As nearly all do, most of the time.
            return out.forward(Filtered::Pass, batch);
        }
        let front = batch.split_front(passing);
        if !front.is_empty() {
            out.send_batch(Filtered::Pass, front);
        }
        out.send_batch(Filtered::Deny, batch);
    }
}

/// Brings the packets that pass to the front, in their order, and says how many there are. Those behind them may
/// change theirs.
#[inline]
fn bring_forward(packets: &mut [Mbuf<'_>], passes: &[bool]) -> usize {
    let mut front = 0;
    // All between the front and here are denied, so that each swap is right, whether this one passes or not:
    // without a branch, which the processor would foretell wrongly at each change of mind of the rules.
    for (here, passes) in (0..packets.len()).zip(passes) {
        packets.swap(front, here);
        front += usize::from(*passes);
    }
    front
}

/// The packets of one family, and what they are asked.
struct Asked<'a, 'eal, const FIELDS: usize> {
    rules: Option<&'a Rules<'eal, FIELDS>>,
    inputs: Option<Inputs<'a, FIELDS, BURST>>,
    /// Where in the batch each of them is.
    places: [u8; BURST],
    lcore: usize,
}

impl<'a, 'eal, const FIELDS: usize> Asked<'a, 'eal, FIELDS> {
    #[inline]
    fn new(rules: Option<&'a Rules<'eal, FIELDS>>, lcore: usize) -> Self {
        const { assert!(BURST - 1 <= u8::MAX as usize) };
        let inputs = rules.map(|rules| rules.list(lcore).inputs());
        Self { rules, inputs, places: [0; BURST], lcore }
    }

    /// Whether a packet passes that need not wait for the others: no rules are about it, or its ports are not where they are
    /// in others. One that is cut short matches no rule.
    #[inline]
    fn ask(&mut self, packet: &'a Mbuf<'_>, place: usize) -> bool {
        let Some(inputs) = &mut self.inputs else { return true };
        let at = inputs.len();
        match inputs.push_packet(packet, ETHERNET) {
            Ok(()) => {
                self.places[at] = place as u8;
                false
            }
            Err(error) => self.rules.is_some_and(|rules| rules.judge(self.lcore, error)),
        }
    }

    #[inline]
    fn answer(&self, passes: &mut [bool; BURST]) {
        let (Some(rules), Some(inputs)) = (self.rules, &self.inputs) else { return };
        if inputs.is_empty() {
            return;
        }
        let mut verdicts: [[Verdict; 1]; BURST] = [[None; 1]; BURST];
        // There is a verdict for each, and the inputs are of this list: it cannot fail.
        if rules.list(self.lcore).classify(inputs, &mut verdicts).is_err() {
            return;
        }
        for ([verdict], place) in verdicts.iter().zip(&self.places).take(inputs.len()) {
            passes[usize::from(*place)] = rules.count(self.lcore, Count::of(*verdict));
        }
    }
}
