// SPDX-License-Identifier: BSD-3-Clause
//! Filters packets by access control lists.

use dpdk::Mbuf;
use dpdk::acl::{Inputs, Verdict};
use dpdk::qsbr::Reader;
use graph::{Batch, Node, Outlet};

use super::BURST;
use super::header::{ETHERNET, TYPE_IPV4, TYPE_IPV6, ether_type};
use crate::l3fwd_graph::rules::{Count, Rules, Tables};

graph::edges! {
    /// The decision of the rules.
    pub enum Filtered {
        /// A rule permits the packet, or there are no rules for its family.
        Pass,
        /// A rule denies it, or none matches.
        Deny,
    }
}

/// How many packets ahead of the current one the bytes are prefetched.
const AHEAD: usize = 8;

/// Asks the access control lists.
pub struct Filter<'t, 'eal> {
    tables: &'t Tables<'t, 'eal>,
    reader: Reader<'t>,
    /// The index of this lcore's lists and counters.
    place: usize,
}

impl<'t, 'eal> Filter<'t, 'eal> {
    /// For the lcore with that index in the plan.
    pub fn new(tables: &'t Tables<'t, 'eal>, reader: Reader<'t>, place: usize) -> Self {
        Self { tables, reader, place }
    }

    /// Decides for each packet whether it passes. `passes` are all `false` before.
    #[inline]
    fn judge(&mut self, packets: &[Mbuf<'_>], passes: &mut [bool; BURST]) {
        // Online only while there are packets, so that a thread that replaces rules does not wait
        // for an idle lcore.
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
                // The next node decides about these.
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
        // A batch that is sent on whole costs nothing, so it is split only if necessary.
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
            // The usual case: all pass.
            return out.forward(Filtered::Pass, batch);
        }
        let front = batch.split_front(passing);
        if !front.is_empty() {
            out.send_batch(Filtered::Pass, front);
        }
        out.send_batch(Filtered::Deny, batch);
    }
}

/// Moves the packets that pass to the front, in order, and returns their number. The order of the
/// others may change.
#[inline]
fn bring_forward(packets: &mut [Mbuf<'_>], passes: &[bool]) -> usize {
    let mut front = 0;
    // All packets between the front and this one are denied, so each swap is right, whether this
    // one passes or not. There is no branch, which the processor would mispredict at each change.
    for (here, passes) in (0..packets.len()).zip(passes) {
        packets.swap(front, here);
        front += usize::from(*passes);
    }
    front
}

/// The packets of one family that are to be classified.
struct Asked<'a, 'eal, const FIELDS: usize> {
    rules: Option<&'a Rules<'eal, FIELDS>>,
    inputs: Option<Inputs<'a, FIELDS, BURST>>,
    /// The index in the batch of each of them.
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

    /// Decides about packets that need not be classified with the others: there are no rules for
    /// them, or their ports are not at the usual offset. A truncated one matches no rule.
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
        // There is a verdict for each, and the inputs are from this list: it cannot fail.
        if rules.list(self.lcore).classify(inputs, &mut verdicts).is_err() {
            return;
        }
        for ([verdict], place) in verdicts.iter().zip(&self.places).take(inputs.len()) {
            passes[usize::from(*place)] = rules.count(self.lcore, Count::of(*verdict));
        }
    }
}
