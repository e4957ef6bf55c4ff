// SPDX-License-Identifier: BSD-3-Clause
// expect: E0599
//! An edge that the node does not have.

use graph::{Batch, EachNode, Node, Nowhere, Outlet, Room, Source, topology};

type Object = Box<u64>;

graph::edges! { pub enum Found { Items } }
graph::edges! { pub enum Two { A, B } }

pub struct Numbers;
impl Source<Object> for Numbers {
    type Next = Found;
    fn poll<O: Outlet<Object, Found>>(&mut self, room: Room<'_, Object>, out: &mut O) {
        out.forward(Found::Items, room.into_batch());
    }
}

pub struct Split;
impl EachNode<Object> for Split {
    type Next = Two;
    fn each(&mut self, object: &mut Object) -> Two {
        if **object % 2 == 0 { Two::A } else { Two::B }
    }
}

pub struct Sink;
impl Node<Object> for Sink {
    type Next = Nowhere;
    fn process<O: Outlet<Object, Nowhere>>(&mut self, _: Batch<'_, Object>, _: &mut O) {}
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
        each split: Split => { A => even, B => odd, C => odd },
        node even: Sink,
        node odd: Sink,
    }
}
