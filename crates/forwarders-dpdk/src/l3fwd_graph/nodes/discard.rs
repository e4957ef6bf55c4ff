// SPDX-License-Identifier: BSD-3-Clause
//! The node that drops packets.

use dpdk::Mbuf;
use graph::{Batch, Node, Nowhere, Outlet};

/// Drops what it gets. A graph has one for each reason, so that its counters tell them apart.
pub struct Discard;

impl<'m> Node<Mbuf<'m>> for Discard {
    type Next = Nowhere;

    fn process<O: Outlet<Mbuf<'m>, Nowhere>>(&mut self, batch: Batch<'_, Mbuf<'m>>, _: &mut O) {
        drop(batch);
    }
}
