// SPDX-License-Identifier: BSD-3-Clause
//! The inline functions of `rte_graph_worker.h`.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use dpdk_sys::{layout, rte_graph, rte_node};

/// A node's function, as librte_graph calls it.
pub(super) type Process =
    unsafe extern "C" fn(*mut rte_graph, *mut rte_node, *mut *mut c_void, u16) -> u16;

/// Reads a field of a graph or a node.
///
/// # Safety
/// `of` is valid and has a `T` at `offset`.
#[inline(always)]
pub(super) unsafe fn field<T: Copy, S>(of: *const S, offset: usize) -> T {
    // SAFETY: the contract is the caller's.
    unsafe { of.cast::<u8>().add(offset).cast::<T>().read() }
}

/// Writes a field of a graph or a node.
///
/// # Safety
/// `of` is valid and has a `T` at `offset`.
#[inline(always)]
pub(super) unsafe fn set_field<T: Copy, S>(of: *mut S, offset: usize, value: T) {
    // SAFETY: the contract is the caller's.
    unsafe { of.cast::<u8>().add(offset).cast::<T>().write(value) }
}

/// The node at an offset, by which nodes refer to each other.
///
/// # Safety
/// The graph has a node there.
#[inline(always)]
pub(super) unsafe fn node_at(graph: *mut rte_graph, offset: u32) -> *mut rte_node {
    // SAFETY: the contract is the caller's.
    unsafe { graph.cast::<u8>().add(offset as usize).cast() }
}

/// `rte_graph_walk`. With `STATS` it counts calls, objects and cycles as the C function does if
/// DPDK is built with `RTE_LIBRTE_GRAPH_STATS`, which is the default.
///
/// # Safety
/// The graph is valid, nothing else walks it, and each of its nodes may be run.
#[inline]
pub(super) unsafe fn walk<const STATS: bool>(graph: *mut rte_graph) {
    // SAFETY: the contract is the caller's. The ring holds the sources before its start and offsets of
    // nodes of this graph from there on; head and tail stay inside as in the C function.
    unsafe {
        let ring: *const u32 = field(graph, layout::GRAPH_CIR_START);
        let mask: u32 = field(graph, layout::GRAPH_CIR_MASK);
        let mut head: u32 = field(graph, layout::GRAPH_HEAD);
        while head != field::<u32, _>(graph, layout::GRAPH_TAIL) {
            let node = node_at(graph, ring.offset(head as i32 as isize).read());
            head = head.wrapping_add(1);
            let objects: *mut *mut c_void = field(node, layout::NODE_OBJS);
            let waiting: u16 = field(node, layout::NODE_IDX);
            let process: Process = field(node, layout::NODE_PROCESS);
            if STATS {
                let start = dpdk::tsc::now();
                let done = process(graph, node, objects, waiting);
                add(node, layout::NODE_TOTAL_CYCLES, dpdk::tsc::now().wrapping_sub(start));
                add(node, layout::NODE_TOTAL_CALLS, 1);
                add(node, layout::NODE_TOTAL_OBJS, done.into());
            } else {
                process(graph, node, objects, waiting);
            }
            set_field(node, layout::NODE_IDX, 0u16);
            // Sources are at negative positions.
            if head as i32 > 0 {
                head &= mask;
            }
        }
        set_field(graph, layout::GRAPH_TAIL, 0u32);
    }
}

/// Other threads may read the counter meanwhile (`cluster_stats`); this one alone writes it.
///
/// # Safety
/// The node is valid and has a counter there.
#[inline(always)]
unsafe fn add(node: *mut rte_node, counter: usize, amount: u64) {
    // SAFETY: the contract is the caller's.
    let counter = unsafe { AtomicU64::from_ptr(node.cast::<u8>().add(counter).cast()) };
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// `__rte_node_next_node_get`.
///
/// # Safety
/// The node is valid and has that edge.
#[inline(always)]
pub(super) unsafe fn next(node: *mut rte_node, edge: usize) -> *mut rte_node {
    // SAFETY: the contract is the caller's.
    unsafe {
        debug_assert!(edge < usize::from(field::<u16, _>(node, layout::NODE_NB_EDGES)));
        field(node, layout::NODE_NODES + edge * size_of::<*mut rte_node>())
    }
}

/// `__rte_node_enqueue_tail_update`.
///
/// # Safety
/// The node belongs to the graph and is not in its ring.
#[inline(always)]
unsafe fn enqueue_tail(graph: *mut rte_graph, node: *mut rte_node) {
    // SAFETY: the contract is the caller's; the ring has room for every node of the graph.
    unsafe {
        let tail: u32 = field(graph, layout::GRAPH_TAIL);
        let ring: *mut u32 = field(graph, layout::GRAPH_CIR_START);
        ring.add(tail as usize).write(field(node, layout::NODE_OFF));
        let mask: u32 = field(graph, layout::GRAPH_CIR_MASK);
        set_field(graph, layout::GRAPH_TAIL, tail.wrapping_add(1) & mask);
    }
}

/// Makes room for `count` objects after those waiting for the node, and adds them to its count:
/// `__rte_node_enqueue_prologue` and what follows it. Null if there is no room: more than 65,535.
///
/// # Safety
/// The node belongs to the graph, and does not run now; the caller writes `count` objects (not 0)
/// there before anything else.
#[inline(always)]
pub(super) unsafe fn claim(
    graph: *mut rte_graph,
    node: *mut rte_node,
    count: usize,
) -> *mut *mut c_void {
    // SAFETY: the contract is the caller's.
    unsafe {
        let waiting: u16 = field(node, layout::NODE_IDX);
        let filled = usize::from(waiting) + count;
        if filled > usize::from(field::<u16, _>(node, layout::NODE_SIZE))
            && !grow(graph, node, filled)
        {
            return std::ptr::null_mut();
        }
        if waiting == 0 {
            enqueue_tail(graph, node);
        }
        set_field(node, layout::NODE_IDX, filled as u16);
        field::<*mut *mut c_void, _>(node, layout::NODE_OBJS).add(waiting.into())
    }
}

/// Where objects may be written for a node: after those waiting for it, up to the end of its
/// memory.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub(super) at: *mut *mut c_void,
    pub(super) end: *mut *mut c_void,
}

impl Stream {
    /// No memory at all.
    pub(super) const NONE: Self = Self { at: std::ptr::null_mut(), end: std::ptr::null_mut() };

    /// Returns true if there is room for this many.
    #[inline(always)]
    pub(super) fn has(&self, count: usize) -> bool {
        self.end.addr() - self.at.addr() >= count * size_of::<*mut c_void>()
    }
}

/// `rte_node_next_stream_get`: the stream of a node, with room for at least `count` objects (not
/// 0); the node is scheduled to run. [`Stream::NONE`] if there is no room: more than 65,535.
///
/// # Safety
/// The node belongs to the graph, and does not run now; the caller writes an object there and calls
/// [`put`] before anything else is done with the node.
#[inline(always)]
pub(super) unsafe fn get(graph: *mut rte_graph, node: *mut rte_node, count: usize) -> Stream {
    // SAFETY: the contract is the caller's.
    unsafe {
        let at = claim(graph, node, count);
        if at.is_null() {
            return Stream::NONE;
        }
        let first: *mut *mut c_void = field(node, layout::NODE_OBJS);
        let size: u16 = field(node, layout::NODE_SIZE);
        Stream { at, end: first.add(size.into()) }
    }
}

/// `rte_node_next_stream_put`: all slots before `at` now hold objects.
///
/// # Safety
/// They do; and `at` lies in the stream that [`get`] gave for the node.
#[inline(always)]
pub(super) unsafe fn put(node: *mut rte_node, at: *mut *mut c_void) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let first: *mut *mut c_void = field(node, layout::NODE_OBJS);
        set_field(node, layout::NODE_IDX, at.offset_from(first) as u16);
    }
}

/// Gives the node memory for at least `filled` objects; DPDK allocates twice that, up to the limit.
/// Returns false for more than a stream can have: the C functions do not check this, and pass a
/// number that has wrapped around.
///
/// # Safety
/// The node belongs to the graph, and has memory for fewer.
#[cold]
#[inline(never)]
pub(super) unsafe fn grow(graph: *mut rte_graph, node: *mut rte_node, filled: usize) -> bool {
    let Ok(filled) = u16::try_from(filled) else { return false };
    // SAFETY: the contract is the caller's. The function keeps the objects, and ends the program where
    // there is no memory.
    unsafe { dpdk_sys::__rte_node_stream_alloc_size(graph, node, filled) };
    true
}

/// `rte_node_next_stream_move` for a target without waiting objects: `source` gets its memory in
/// exchange.
///
/// # Safety
/// Both belong to the graph and differ; nothing waits for `target`; `count` objects (not 0) lie at the
/// start of the memory of `source` and become the target's.
#[inline(always)]
pub(super) unsafe fn swap(
    graph: *mut rte_graph,
    source: *mut rte_node,
    target: *mut rte_node,
    count: u16,
) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let objects: *mut *mut c_void = field(target, layout::NODE_OBJS);
        let size: u16 = field(target, layout::NODE_SIZE);
        set_field(
            target,
            layout::NODE_OBJS,
            field::<*mut *mut c_void, _>(source, layout::NODE_OBJS),
        );
        set_field(target, layout::NODE_SIZE, field::<u16, _>(source, layout::NODE_SIZE));
        set_field(source, layout::NODE_OBJS, objects);
        set_field(source, layout::NODE_SIZE, size);
        set_field(target, layout::NODE_IDX, count);
        enqueue_tail(graph, target);
    }
}
