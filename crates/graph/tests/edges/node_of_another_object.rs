// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
// says: OtherSink, declared, implement, EachNode
//! A node that takes other objects.

#[path = "../support/numbers.rs"]
mod numbers;

use graph::{Batch, Node, Nowhere, Outlet, topology};
use numbers::{Numbers, Object, Sink, Split};

pub struct OtherSink;
impl Node<&'static u64> for OtherSink {
    type Next = Nowhere;
    fn process<O: Outlet<&'static u64, Nowhere>>(&mut self, _: Batch<'_, &'static u64>, _: &mut O) {}
}

#[cfg(not(fault))]
topology! {
    pub struct Graph for Object {
        source numbers: Numbers => { Items => split },
        each split: Split => { A => even, B => odd },
        node even: Sink,
        node odd: Sink,
    }
}

#[cfg(fault)]
topology! {
    pub struct Graph for Object {
        source numbers: Numbers => { Items => split },
        each split: Split => { A => even, B => odd },
        node even: Sink,
        node odd: OtherSink,
    }
}
