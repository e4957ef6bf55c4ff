// SPDX-License-Identifier: BSD-3-Clause
// expect: E0597
// says: short
//! A source of objects that live shorter than those that a node before it takes, and may keep.

use graph::{Batch, GraphBuilder, Node, Nowhere, Outlet, Room, Source};

graph::edges! { pub enum Made { One } }

pub struct Keep(pub Vec<&'static u64>);
impl Node<&'static u64> for Keep {
    type Next = Nowhere;
    fn process<O: Outlet<&'static u64, Nowhere>>(&mut self, batch: Batch<'_, &'static u64>, _: &mut O) {
        self.0.extend(batch.drain());
    }
}

pub struct Lend<'a>(pub &'a u64);
impl<'a> Source<&'a u64> for Lend<'a> {
    type Next = Made;
    fn poll<O: Outlet<&'a u64, Made>>(&mut self, mut room: Room<'_, &'a u64>, out: &mut O) {
        let _ = room.push(self.0);
        out.forward(Made::One, room.into_batch());
    }
}

static LONG: u64 = 7;

pub fn build<'e>(builder: GraphBuilder<'e, &'static u64>) {
    let short = 7;
    let builder = builder.node("keep", Keep(Vec::new()), &[]);
    #[cfg(fault)]
    let lent = Lend(&short);
    #[cfg(not(fault))]
    let lent = Lend(&LONG);
    let _ = (builder.source("lend", lent, &[(Made::One, "keep")]), short);
}
