// SPDX-License-Identifier: BSD-3-Clause
//! The functions that librte_graph calls: one for each type of node.
//!
//! A panic in a node ends the program with its message: it may not unwind into C.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use dpdk_sys::{layout, rte_graph, rte_node};

use super::outlet::LibrteOutlet;
use super::raw::{self, Process};
use crate::batch::{Batch, Chooser, Room};
use crate::node::{EachNode, Node, Outlet, Source};
use crate::object::Object;
use crate::stats::Counters;

/// What a node of a graph needs to run a Rust value, apart from its edges.
#[derive(Clone, Copy)]
pub(super) struct Work {
    process: Process,
    node: *mut c_void,
    counters: *const Counters,
}

impl Work {
    pub(super) fn of_source<M: Object, S: Source<M>, const BURST: usize>(
        source: *mut S,
        counters: *const Counters,
    ) -> Self {
        const { assert!(BURST > 0, "a source is asked for at least one object") };
        const { assert!(BURST <= u16::MAX as usize, "a stream has at most 65,535 objects") };
        Self { process: poll::<M, S, BURST>, node: source.cast(), counters }
    }

    pub(super) fn of_node<M: Object, N: Node<M>>(node: *mut N, counters: *const Counters) -> Self {
        Self { process: process::<M, N>, node: node.cast(), counters }
    }

    pub(super) fn of_each<M: Object, N: EachNode<M>>(
        node: *mut N,
        counters: *const Counters,
    ) -> Self {
        Self { process: each::<M, N>, node: node.cast(), counters }
    }

    /// Replaces the pointer to the node by another one to the same place, which stays valid when
    /// other nodes are accessed later.
    pub(super) fn at(self, node: *mut c_void) -> Self {
        Self { node, ..self }
    }

    pub(super) fn counters(&self) -> *const Counters {
        self.counters
    }

    /// Installs it in a node of a graph.
    ///
    /// # Safety
    /// The graph's node is valid, does not run now, and has the edges of this one's type, in the
    /// same order. The data that this points to lives as long as the graph is walked, and nothing
    /// else accesses it during a walk.
    pub(super) unsafe fn install(&self, node: *mut rte_node) {
        // SAFETY: the contract is the caller's; the context has room for two pointers.
        unsafe {
            raw::set_field(node, layout::NODE_CTX, self.node);
            raw::set_field(node, layout::NODE_CTX + size_of::<*mut ()>(), self.counters);
            raw::set_field(node, layout::NODE_PROCESS, self.process);
        }
    }
}

/// The state and the counters of a node.
///
/// # Safety
/// A `Work` for an `N` was installed in the node.
#[inline(always)]
unsafe fn state<'a, N>(node: *mut rte_node) -> (&'a mut N, &'a Counters) {
    // SAFETY: the contract is the caller's: the two pointers are there, and valid while the graph is walked.
    unsafe {
        let state: *mut N = raw::field(node, layout::NODE_CTX);
        let counters: *const Counters = raw::field(node, layout::NODE_CTX + size_of::<*mut ()>());
        (&mut *state, &*counters)
    }
}

unsafe extern "C" fn process<M: Object, N: Node<M>>(
    graph: *mut rte_graph,
    node: *mut rte_node,
    objects: *mut *mut c_void,
    count: u16,
) -> u16 {
    // SAFETY: the walk calls this for a node that a `Work` for `N` was installed in, with the objects that
    // wait for it: they are `M`s, for all nodes of a graph take the same, and nobody else owns them.
    unsafe {
        let (state, counters) = state::<N>(node);
        let batch = Batch::new(objects.cast::<M>(), count.into(), &counters.dropped);
        let mut out = LibrteOutlet::new(graph, node, &counters.dropped);
        state.process(batch, &mut out);
        out.close();
    }
    count
}

/// A node that processes one object at a time.
struct One<'s, N>(&'s mut N);

impl<M: Object, N: EachNode<M>> Chooser<M> for One<'_, N> {
    type Choice = N::Next;

    #[inline(always)]
    fn ahead(&mut self, object: &M) {
        self.0.ahead(object);
    }

    #[inline(always)]
    fn choose(&mut self, object: &mut M) -> N::Next {
        self.0.each(object)
    }
}

unsafe extern "C" fn each<M: Object, N: EachNode<M>>(
    graph: *mut rte_graph,
    node: *mut rte_node,
    objects: *mut *mut c_void,
    count: u16,
) -> u16 {
    // SAFETY: as above.
    unsafe {
        let (state, counters) = state::<N>(node);
        let batch = Batch::new(objects.cast::<M>(), count.into(), &counters.dropped);
        let mut out = LibrteOutlet::new(graph, node, &counters.dropped);
        batch.for_runs(One(state), |next, run| out.forward(next, run));
        out.close();
    }
    count
}

unsafe extern "C" fn poll<M: Object, S: Source<M>, const BURST: usize>(
    graph: *mut rte_graph,
    node: *mut rte_node,
    _: *mut *mut c_void,
    _: u16,
) -> u16 {
    // SAFETY: as above; nothing waits for a source, so that its memory is free, and it has `BURST` places.
    unsafe {
        let (state, counters) = state::<S>(node);
        if usize::from(raw::field::<u16, _>(node, layout::NODE_SIZE)) < BURST {
            raw::grow(graph, node, BURST);
        }
        let spare: *mut MaybeUninit<M> = raw::field(node, layout::NODE_OBJS);
        let before = counters.objects.get();
        let room = Room::new(std::slice::from_raw_parts_mut(spare, BURST), counters);
        let mut out = LibrteOutlet::new(graph, node, &counters.dropped);
        state.poll(room, &mut out);
        out.close();
        (counters.objects.get() - before) as u16
    }
}

/// Makes a node end the program when it is walked, until a [`Work`] is installed again.
///
/// # Safety
/// The graph's node is valid and does not run now.
pub(super) unsafe fn uninstall(node: *mut rte_node) {
    // SAFETY: the contract is the caller's.
    unsafe { raw::set_field(node, layout::NODE_PROCESS, lost as Process) };
}

/// The function of a node that may have moved, and was not found again.
unsafe extern "C" fn lost(_: *mut rte_graph, _: *mut rte_node, _: *mut *mut c_void, _: u16) -> u16 {
    panic!("a graph was walked whose nodes could not be found again after a panic");
}

/// The function that a node is registered with: a graph that this crate did not make has no value
/// for it to run.
pub(super) unsafe extern "C" fn unused(
    _: *mut rte_graph,
    _: *mut rte_node,
    _: *mut *mut c_void,
    _: u16,
) -> u16 {
    panic!("a node of linerate is in a graph that linerate did not make");
}
