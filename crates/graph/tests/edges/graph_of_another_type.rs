// SPDX-License-Identifier: BSD-3-Clause
// expect: E0308
// says: mismatched, types
//! A graph taken for one of a subtype, whose objects are of another kind: its trace would read them as others.
#![allow(coherence_leak_check)]

use std::marker::PhantomData;

use graph::{Batch, Librte, Node, Nowhere, Object, Outlet, Room, Source, topology};

pub type Any = for<'a> fn(&'a ());
pub type One = fn(&'static ());

pub trait Kind: Send + 'static {
    type Travels: Object + 'static;
}
impl Kind for Any {
    type Travels = Box<[u64; 16]>;
}
impl Kind for One {
    type Travels = &'static u64;
}

graph::edges! { pub enum Made { Object } }

pub struct Make<K>(PhantomData<K>);
impl<K: Kind> Source<K::Travels> for Make<K> {
    type Next = Made;
    fn poll<O: Outlet<K::Travels, Made>>(&mut self, room: Room<'_, K::Travels>, out: &mut O) {
        out.forward(Made::Object, room.into_batch());
    }
}

pub struct End;
impl<M: Object> Node<M> for End {
    type Next = Nowhere;
    fn process<O: Outlet<M, Nowhere>>(&mut self, _: Batch<'_, M>, _: &mut O) {}
}

topology! {
    pub struct Pipe<K: Kind> for <K as Kind>::Travels {
        source make: Make<K> => { Object => end },
        node end: End,
    }
}

#[cfg(fault)]
pub fn taken(graph: Librte<'_, Pipe<Any>>) -> Librte<'_, Pipe<One>> {
    graph
}
#[cfg(not(fault))]
pub fn taken(graph: Librte<'_, Pipe<Any>>) -> Librte<'_, Pipe<Any>> {
    graph
}
