// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
// says: Split, declared, implement, EachNode
//! A node that processes one object at a time, declared as one that takes batches.

#[path = "../support/numbers.rs"]
mod numbers;

use graph::topology;
use numbers::{Numbers, Object, Sink, Split};

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
        node split: Split => { A => even, B => odd },
        node even: Sink,
        node odd: Sink,
    }
}
