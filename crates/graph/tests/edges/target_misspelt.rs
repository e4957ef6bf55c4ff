// SPDX-License-Identifier: BSD-3-Clause
// expect: E0080
// says: split, B, oddd
//! A target that is no node.

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
        each split: Split => { A => even, B => oddd },
        node even: Sink,
        node odd: Sink,
    }
}
