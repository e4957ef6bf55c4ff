// SPDX-License-Identifier: BSD-3-Clause
//! The fused executor: a topology compiled into one function, without function pointers; waiting
//! objects are on the stack.

mod inside;
mod outlet;
mod slot;

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::batch::{Batch, Chooser, Room};
use crate::dot;
use crate::executor::Executor;
use crate::node::{EachNode, Node, Source};
use crate::object::{Object, assert_one_word};
use crate::stats::{Counters, NodeStats};
use crate::topology::{NodeInfo, Topology, Visitor};
use outlet::FusedOutlet;
use slot::{Slot, Slots};

/// A graph whose nodes are called one after the other by code generated for this topology.
///
/// `BURST` is the most objects that a source is asked for. `STATS` selects whether cycles, calls
/// and objects are counted for each node, which takes two readings of the TSC for each batch. Each
/// walk uses nodes x sources x `BURST` x 8 bytes of stack.
/// nodes x sources x `BURST` x 8 bytes of stack.
pub struct Fused<T: Topology, const BURST: usize = 256, const STATS: bool = true> {
    nodes: T,
    /// One for each node, as is the next field. Boxed slices, not the topology's arrays, so that a
    /// graph is `Send` if its nodes are.
    counters: Box<[Counters]>,
    /// True for nodes that only run inside others: they have no calls and no cycles of their own.
    inside: Box<[bool]>,
    spilt: Box<[Vec<T::Object>]>,
}

impl<T: Topology, const BURST: usize, const STATS: bool> fmt::Debug for Fused<T, BURST, STATS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fused").field("nodes", &T::NODES).finish_non_exhaustive()
    }
}

impl<T: Topology, const BURST: usize, const STATS: bool> Fused<T, BURST, STATS> {
    /// Makes a graph of these nodes.
    #[must_use]
    pub fn new(mut nodes: T) -> Self {
        const { assert_one_word::<T::Object>() };
        const { assert!(BURST > 0, "a source is asked for at least one object") };
        let inside = inside::of(&mut nodes);
        Self {
            nodes,
            counters: T::NODES.iter().map(|_| Counters::default()).collect(),
            inside,
            spilt: T::NODES.iter().map(|_| Vec::new()).collect(),
        }
    }

    /// The nodes.
    pub fn nodes(&self) -> &T {
        &self.nodes
    }

    /// The nodes, to be changed between two walks.
    pub fn nodes_mut(&mut self) -> &mut T {
        &mut self.nodes
    }
}

/// The memory of one slot: each source may fill it once in a walk.
type Stream<T, const BURST: usize> =
    MaybeUninit<<T as Topology>::PerSource<[MaybeUninit<<T as Topology>::Object>; BURST]>>;

impl<T: Topology, const BURST: usize, const STATS: bool> Executor for Fused<T, BURST, STATS> {
    #[inline]
    fn walk(&mut self) {
        const { assert!(align_of::<Stream<T, BURST>>() >= align_of::<T::Object>()) };
        let mut memory = T::per_node(|_| Stream::<T, BURST>::uninit());
        let mut slots = T::per_node(|_| Slot { first: std::ptr::null_mut(), len: 0 });
        for (slot, memory) in slots.as_mut().iter_mut().zip(memory.as_mut()) {
            slot.first = memory.as_mut_ptr().cast::<T::Object>();
        }
        let mut walk = Walk::<T, BURST, STATS> {
            slots: Slots {
                slots: slots.as_mut(),
                capacity: size_of::<Stream<T, BURST>>() / size_of::<T::Object>(),
                spilt: &mut self.spilt,
            },
            counters: &mut self.counters,
            topology: PhantomData,
        };
        // The code below uses these pointers without a check.
        assert!(walk.slots.slots.iter().all(|slot| !slot.first.is_null()));
        assert!(walk.slots.slots.len() == T::NODES.len());
        assert!(walk.counters.len() == T::NODES.len() && walk.slots.spilt.len() == T::NODES.len());
        self.nodes.visit(&mut walk);
        // Each node has emptied its slot.
        std::mem::forget(walk.slots);
    }

    fn stats(&self) -> Vec<NodeStats> {
        let stats = |((counters, node), inside): ((&Counters, &NodeInfo), &bool)| NodeStats {
            name: node.name.to_owned(),
            calls: (STATS && !inside).then_some(counters.calls),
            objects: STATS.then_some(counters.objects.get()),
            cycles: (STATS && !inside).then_some(counters.cycles),
            dropped: counters.dropped.get(),
        };
        self.counters.iter().zip(T::NODES).zip(&self.inside).map(stats).collect()
    }

    fn dot(&self) -> String {
        dot::of::<T>("fused")
    }
}

struct Walk<'w, T: Topology, const BURST: usize, const STATS: bool> {
    slots: Slots<'w, T::Object>,
    counters: &'w mut [Counters],
    topology: PhantomData<T>,
}

impl<T: Topology, const BURST: usize, const STATS: bool> Walk<'_, T, BURST, STATS> {
    /// Runs code for the node `I`, and counts it.
    #[inline(always)]
    fn counted<const I: usize>(&mut self, work: impl FnOnce(&mut Slots<'_, T::Object>, &Counters)) {
        let start = if STATS { dpdk::tsc::now() } else { 0 };
        work(&mut self.slots, &self.counters[I]);
        if STATS {
            let counters = &mut self.counters[I];
            counters.cycles += dpdk::tsc::now().wrapping_sub(start);
            counters.calls += 1;
        }
    }

    /// Runs the node `I` on all waiting objects, in batches.
    #[inline(always)]
    fn run<const I: usize>(&mut self, mut work: impl FnMut(&mut Self)) {
        if self.slots.slots[I].len > 0 {
            work(self);
            if !self.slots.spilt[I].is_empty() {
                self.run_spilt::<I>(work);
            }
        }
    }

    /// Runs the node `I` on the objects that its slot had no room for.
    #[cold]
    #[inline(never)]
    fn run_spilt<const I: usize>(&mut self, mut work: impl FnMut(&mut Self)) {
        let mut spilt = std::mem::take(&mut self.slots.spilt[I]).into_iter();
        while spilt.len() > 0 {
            let slot = &mut self.slots.slots[I];
            for object in spilt.by_ref().take(self.slots.capacity) {
                // SAFETY: the slot has memory for as many as are taken, and is empty at first.
                unsafe { slot.first.add(slot.len).write(object) };
                slot.len += 1;
            }
            work(self);
        }
    }
}

/// The waiting objects of the slot `I`.
///
/// # Safety
/// Nothing is added to that slot while the batch lives.
#[inline(always)]
unsafe fn take<'b, M: Object, const I: usize>(
    slots: &mut Slots<'_, M>,
    counters: &'b Counters,
) -> Batch<'b, M> {
    let slot = &mut slots.slots[I];
    let (first, len) = (slot.first, std::mem::take(&mut slot.len));
    // SAFETY: the slot owned so many objects there and no longer counts them.
    unsafe { Batch::new(first, len, &counters.dropped) }
}

impl<T: Topology, const BURST: usize, const STATS: bool> Visitor<T> for Walk<'_, T, BURST, STATS> {
    #[inline(always)]
    fn source<const I: usize, S: Source<T::Object>>(&mut self, source: &mut S) {
        self.counted::<I>(|slots, counters| {
            assert!(slots.slots[I].len == 0, "objects wait for a source");
            let first = slots.slots[I].first.cast::<MaybeUninit<T::Object>>();
            let room = BURST.min(slots.capacity);
            // SAFETY: the slot has memory for so many and is not used while its source runs, for edges
            // lead forward.
            let spare = unsafe { std::slice::from_raw_parts_mut(first, room) };
            let room = Room::new(spare, counters);
            source.poll(room, &mut FusedOutlet::<T, I> { slots, topology: PhantomData });
        });
    }

    #[inline(always)]
    fn node<const I: usize, N: Node<T::Object>>(&mut self, node: &mut N) {
        self.run::<I>(|walk| {
            walk.counted::<I>(|slots, counters| {
                // SAFETY: the node's edges lead forward.
                let batch = unsafe { take::<_, I>(slots, counters) };
                if STATS {
                    counters.objects.set(counters.objects.get() + batch.len() as u64);
                }
                node.process(batch, &mut FusedOutlet::<T, I> { slots, topology: PhantomData });
            });
        });
    }

    #[inline(always)]
    fn each<const I: usize, N: EachNode<T::Object>>(
        &mut self,
        nodes: &mut T,
        _: impl Fn(&mut T) -> &mut N,
    ) {
        self.run::<I>(|walk| {
            let counters = &*walk.counters;
            let start = if STATS { dpdk::tsc::now() } else { 0 };
            // SAFETY: objects are only added to slots after this one.
            let batch = unsafe { take::<_, I>(&mut walk.slots, &counters[I]) };
            let slots = &mut walk.slots;
            let passed = T::per_node(|_| 0);
            let straight = Straight::<T, I, STATS> { nodes: &mut *nodes, counters, passed };
            batch.for_runs(straight, |end, run| send::<_, I>(slots, end, run));
            if STATS {
                let counters = &mut walk.counters[I];
                counters.cycles += dpdk::tsc::now().wrapping_sub(start);
                counters.calls += 1;
            }
        });
    }
}

/// Takes objects through the nodes that process one at a time, from the node `I` on.
struct Straight<'s, T: Topology, const I: usize, const STATS: bool> {
    nodes: &'s mut T,
    /// One for each node, as is the next field.
    counters: &'s [Counters],
    /// Objects that each node has got. Counted here and not in the counters, so that the compiler
    /// sees that counting changes no object: a field that one node has read need not be read again
    /// by the next.
    passed: T::PerNode<u64>,
}

impl<T: Topology, const I: usize, const STATS: bool> Chooser<T::Object>
    for Straight<'_, T, I, STATS>
{
    type Choice = usize;

    #[inline(always)]
    fn ahead(&mut self, object: &T::Object) {
        self.nodes.ahead(I, object);
    }

    #[inline(always)]
    fn choose(&mut self, object: &mut T::Object) -> usize {
        let passed = self.passed.as_mut();
        self.nodes.straight(I, object, |node| {
            if STATS {
                if let Some(passed) = passed.get_mut(node) {
                    *passed += 1;
                }
            }
        })
    }
}

impl<T: Topology, const I: usize, const STATS: bool> Drop for Straight<'_, T, I, STATS> {
    #[inline(always)]
    fn drop(&mut self) {
        if STATS {
            for (counters, passed) in self.counters.iter().zip(self.passed.as_ref()) {
                counters.objects.set(counters.objects.get() + passed);
            }
        }
    }
}

/// Sends a batch of the node `I` to another slot.
#[inline(always)]
fn send<M: Object, const I: usize>(slots: &mut Slots<'_, M>, to: usize, batch: Batch<'_, M>) {
    assert!(I < to && to < slots.slots.len(), "an object was not sent to a later node");
    // SAFETY: just looked at; the batch lies in the memory of the node that runs.
    unsafe { slots.hand_over(I, to, batch) };
}
