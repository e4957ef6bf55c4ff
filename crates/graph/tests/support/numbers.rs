// SPDX-License-Identifier: BSD-3-Clause
//! Nodes for programs whose edges are right or wrong.

use graph::{Batch, EachNode, Node, Nowhere, Outlet, Room, Source};

pub type Object = Box<u64>;

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
