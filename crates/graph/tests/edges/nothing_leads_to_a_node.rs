// SPDX-License-Identifier: BSD-3-Clause
// expect: E0080
// says: late
//! A node that nothing leads to.

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
        each split: Split => { A => even, B => odd },
        node even: Sink,
        node odd: Sink,
        each late: Split => { A => last, B => last },
        node last: Sink,
    }
}
