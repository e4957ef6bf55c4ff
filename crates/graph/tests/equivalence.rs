// SPDX-License-Identifier: BSD-3-Clause
//! The native functions of `raw.rs` against C's inline functions, on the same random requests: two
//! graphs of one shape, one driven natively, one through the C shim. After each step the objects
//! waiting for each node, and the order in which nodes will run, must be the same; a walk must run
//! the same nodes with the same objects.
//!
//! The amount of memory of a stream is not compared: C asks for its present size plus the number of
//! new objects, the native functions for what is needed. Both must have room for the waiting
//! objects.
#![allow(clippy::unwrap_used)] // A test may.

#[path = "../src/librte/raw.rs"]
#[allow(dead_code)] // No request needs all of it.
mod raw;
mod support;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};

use dpdk_sys::{layout, rte_graph, rte_node};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use raw::{field, set_field};

const SOURCE: &CStr = c"source";
/// Sends what comes to the sinks.
const WORKER: &CStr = c"worker";
const SINKS: [&CStr; 3] = [c"sink-a", c"sink-b", c"sink-c"];
const EDGES: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    /// This many objects to an edge of the source, by `rte_node_enqueue`.
    Enqueue(usize, usize),
    /// 1, 2 or 4 objects, by the function for that.
    Few(usize, usize),
    /// This many, by `rte_node_next_stream_get` and `_put`.
    Stream(usize, usize),
    /// All objects of the source, this many.
    Move(usize, usize),
    Walk,
}

fn step() -> impl Strategy<Value = Step> {
    let edge = || 0..EDGES;
    prop_oneof![
        4 => (edge(), 1..300usize).prop_map(|(edge, count)| Step::Enqueue(edge, count)),
        4 => (edge(), prop::sample::select(vec![1, 2, 4])).prop_map(|(e, n)| Step::Few(e, n)),
        4 => (edge(), 0..300usize).prop_map(|(edge, count)| Step::Stream(edge, count)),
        4 => (edge(), 1..=256usize).prop_map(|(edge, count)| Step::Move(edge, count)),
        1 => Just(Step::Walk),
    ]
}

/// A node that ran, and with which objects.
type Run = (String, Vec<usize>);

thread_local! {
    static RUNS: RefCell<Vec<Run>> = const { RefCell::new(Vec::new()) };
}

fn name(node: *mut rte_node) -> String {
    // SAFETY: a node of a graph of this test.
    unsafe { CStr::from_ptr((*node).name.as_ptr()) }.to_str().unwrap().to_owned()
}

/// Notes the run.
unsafe extern "C" fn sink(
    _: *mut rte_graph,
    node: *mut rte_node,
    objects: *mut *mut c_void,
    count: u16,
) -> u16 {
    // SAFETY: the walk says how many there are.
    let objects = unsafe { std::slice::from_raw_parts(objects, count.into()) };
    let objects = objects.iter().map(|object| object.addr()).collect();
    RUNS.with_borrow_mut(|runs| runs.push((name(node), objects)));
    count
}

/// Notes the run, and sends all to the sink that the first object chooses: by C's function in both graphs.
unsafe extern "C" fn worker(
    graph: *mut rte_graph,
    node: *mut rte_node,
    objects: *mut *mut c_void,
    count: u16,
) -> u16 {
    // SAFETY: as above; a worker has an edge to each sink.
    unsafe {
        sink(graph, node, objects, count);
        if count > 0 {
            let edge = (*objects).addr() % SINKS.len();
            dpdk_sys::lr_node_enqueue(graph, node, edge as u16, objects, count);
        }
    }
    count
}

fn register(name: &CStr, source: bool, process: raw::Process, targets: &[&CStr]) {
    let targets: Vec<*const c_char> = targets.iter().map(|target| target.as_ptr()).collect();
    // SAFETY: C strings, which DPDK copies.
    let id = unsafe {
        dpdk_sys::lr_node_register(
            name.as_ptr(),
            source.into(),
            Some(process),
            targets.as_ptr(),
            targets.len() as u16,
        )
    };
    assert_ne!(id, u32::MAX);
}

struct Side {
    graph: *mut rte_graph,
    source: *mut rte_node,
    nodes: Vec<*mut rte_node>,
}

/// What waits, and in which order nodes will run.
#[derive(Debug, PartialEq)]
struct State {
    waiting: Vec<Vec<usize>>,
    pending: Vec<u32>,
    stats: Vec<(u64, u64)>,
}

impl Side {
    fn new(graph_name: &str) -> Self {
        let graph_name = CString::new(graph_name).unwrap();
        let mut patterns = [SOURCE.as_ptr()];
        // SAFETY: C strings; a graph of a source has all that it leads to.
        unsafe {
            let id = dpdk_sys::lr_graph_create(graph_name.as_ptr(), -1, patterns.as_mut_ptr(), 1);
            assert_ne!(id, u16::MAX);
            let graph = dpdk_sys::rte_graph_lookup(graph_name.as_ptr());
            let node = |node: &CStr| {
                dpdk_sys::rte_graph_node_get_by_name(graph_name.as_ptr(), node.as_ptr())
            };
            let nodes = [WORKER].into_iter().chain(SINKS).map(node).collect();
            Self { graph, source: node(SOURCE), nodes }
        }
    }

    fn state(&self) -> State {
        // SAFETY: the graph and its nodes are valid, and nothing walks it.
        unsafe {
            let waiting = self.nodes.iter().map(|node| {
                let count: u16 = field(*node, layout::NODE_IDX);
                assert!(field::<u16, _>(*node, layout::NODE_SIZE) >= count);
                let objects: *mut *mut c_void = field(*node, layout::NODE_OBJS);
                (0..count.into()).map(|at| (*objects.add(at)).addr()).collect()
            });
            let ring: *mut u32 = field(self.graph, layout::GRAPH_CIR_START);
            let tail: u32 = field(self.graph, layout::GRAPH_TAIL);
            let stats = self.nodes.iter().chain([&self.source]).map(|node| {
                (field(*node, layout::NODE_TOTAL_CALLS), field(*node, layout::NODE_TOTAL_OBJS))
            });
            State {
                waiting: waiting.collect(),
                pending: (0..tail as usize).map(|at| *ring.add(at)).collect(),
                stats: stats.collect(),
            }
        }
    }

    /// Puts objects where those of the source lie.
    fn load(&self, objects: &[*mut c_void]) {
        // SAFETY: a stream has room for 256 objects at least.
        unsafe {
            assert!(usize::from(field::<u16, _>(self.source, layout::NODE_SIZE)) >= objects.len());
            let own: *mut *mut c_void = field(self.source, layout::NODE_OBJS);
            own.copy_from_nonoverlapping(objects.as_ptr(), objects.len());
            set_field(self.source, layout::NODE_IDX, objects.len() as u16);
        }
    }

    fn unload(&self) {
        // SAFETY: the source is valid.
        unsafe { set_field(self.source, layout::NODE_IDX, 0u16) };
    }

    /// # Safety
    /// The edge exists.
    unsafe fn native(&self, step: &Step, objects: &[*mut c_void]) {
        // SAFETY: the contract is the caller's.
        unsafe {
            match *step {
                Step::Enqueue(edge, _) | Step::Few(edge, _) => self.append(edge, objects),
                Step::Stream(edge, _) => self.stream(edge, objects),
                Step::Move(edge, count) => {
                    self.load(objects);
                    let target = raw::next(self.source, edge);
                    if field::<u16, _>(target, layout::NODE_IDX) == 0 {
                        raw::swap(self.graph, self.source, target, count as u16);
                    } else {
                        self.append(edge, objects);
                    }
                    self.unload();
                }
                Step::Walk => raw::walk::<true>(self.graph),
            }
        }
    }

    /// # Safety
    /// The edge exists.
    unsafe fn append(&self, edge: usize, objects: &[*mut c_void]) {
        if objects.is_empty() {
            return;
        }
        // SAFETY: the contract is the caller's; the room is for as many.
        unsafe {
            let room = raw::claim(self.graph, raw::next(self.source, edge), objects.len());
            room.copy_from_nonoverlapping(objects.as_ptr(), objects.len());
        }
    }

    /// # Safety
    /// The edge exists.
    unsafe fn stream(&self, edge: usize, objects: &[*mut c_void]) {
        if objects.is_empty() {
            return;
        }
        // SAFETY: the contract is the caller's; the stream has room for as many.
        unsafe {
            let target = raw::next(self.source, edge);
            let stream = raw::get(self.graph, target, objects.len());
            assert!(stream.has(objects.len()));
            stream.at.copy_from_nonoverlapping(objects.as_ptr(), objects.len());
            raw::put(target, stream.at.add(objects.len()));
        }
    }

    /// # Safety
    /// The edge exists.
    unsafe fn c(&self, step: &Step, objects: &mut [*mut c_void]) {
        let (graph, source, first) = (self.graph, self.source, objects.as_mut_ptr());
        let count = objects.len() as u16;
        // SAFETY: the contract is the caller's.
        unsafe {
            match *step {
                Step::Enqueue(edge, _) => {
                    dpdk_sys::lr_node_enqueue(graph, source, edge as u16, first, count);
                }
                Step::Few(edge, 1) => {
                    dpdk_sys::lr_node_enqueue_x1(graph, source, edge as u16, *first);
                }
                Step::Few(edge, 2) => {
                    dpdk_sys::lr_node_enqueue_x2(graph, source, edge as u16, first);
                }
                Step::Few(edge, _) => {
                    dpdk_sys::lr_node_enqueue_x4(graph, source, edge as u16, first);
                }
                Step::Stream(edge, _) => {
                    let room = dpdk_sys::lr_node_next_stream_get(graph, source, edge as u16, count);
                    room.copy_from_nonoverlapping(first, count.into());
                    dpdk_sys::lr_node_next_stream_put(graph, source, edge as u16, count);
                }
                Step::Move(edge, _) => {
                    self.load(objects);
                    dpdk_sys::lr_node_next_stream_move(graph, source, edge as u16);
                    self.unload();
                }
                Step::Walk => dpdk_sys::lr_graph_walk(graph),
            }
        }
    }
}

/// The requests do not matter to a source.
unsafe extern "C" fn nothing(
    _: *mut rte_graph,
    _: *mut rte_node,
    _: *mut *mut c_void,
    _: u16,
) -> u16 {
    0
}

#[test]
fn native_functions_do_what_c_does() {
    let _eal = support::eal();
    register(SINKS[0], false, sink, &[]);
    register(SINKS[1], false, sink, &[]);
    register(SINKS[2], false, sink, &[]);
    register(WORKER, false, worker, &SINKS);
    let targets: Vec<&CStr> = [WORKER].into_iter().chain(SINKS).collect();
    register(SOURCE, true, nothing, &targets);
    let (native, c) = (Side::new("native"), Side::new("c"));
    let mut next = 1;
    let next = RefCell::new(&mut next);
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&prop::collection::vec(step(), 1..40), |steps| {
            // A last walk, so that no objects are left and no stream fills up.
            for step in steps.iter().chain([&Step::Walk]) {
                let count = match *step {
                    Step::Enqueue(_, n) | Step::Few(_, n) | Step::Stream(_, n) => n,
                    Step::Move(_, n) => n,
                    Step::Walk => 0,
                };
                let mut next = next.borrow_mut();
                let mut objects: Vec<*mut c_void> =
                    (0..count).map(|n| std::ptr::without_provenance_mut(**next + n)).collect();
                **next += count;
                // SAFETY: the source has all of these edges.
                let runs = unsafe {
                    native.native(step, &objects);
                    let runs = RUNS.take();
                    c.c(step, &mut objects);
                    (runs, RUNS.take())
                };
                prop_assert_eq!(&runs.0, &runs.1);
                prop_assert_eq!(native.state(), c.state());
            }
            prop_assert!(native.state().waiting.iter().all(Vec::is_empty));
            Ok(())
        })
        .unwrap();
    let stats = native.state().stats;
    assert!(stats.iter().all(|(calls, _)| *calls > 0), "{stats:?}");
}
