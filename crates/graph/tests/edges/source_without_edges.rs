// SPDX-License-Identifier: BSD-3-Clause
// expect: E0080
// says: silent
//! A source without edges.

#[path = "../support/numbers.rs"]
mod numbers;

use graph::{Nowhere, Outlet, Room, Source, topology};
use numbers::{Numbers, Object, Sink, Split};

pub struct Silent;
impl Source<Object> for Silent {
    type Next = Nowhere;
    fn poll<O: Outlet<Object, Nowhere>>(&mut self, _: Room<'_, Object>, _: &mut O) {}
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
        source silent: Silent,
        each split: Split => { A => even, B => odd },
        node even: Sink,
        node odd: Sink,
    }
}
