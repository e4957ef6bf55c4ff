// SPDX-License-Identifier: BSD-3-Clause
//! A trace of packets as they arrive at nodes, in the pcapng format; each packet has a comment that
//! names the graph and the node. Not librte_graph's own trace, because that came with 23.11 and has
//! one file for all graphs of a process.
//!
//! A traced node runs `traced` instead of its function, which is looked up here.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io::{self, Write};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use capture_file::pcapng::{self, Interface, Packet};
use dpdk::Mbuf;
use dpdk_sys::{layout, rte_graph, rte_node};

use super::created::{Created, name_of};
use super::raw::{Process, field, set_field};

/// The output of a trace, and its progress.
pub(super) struct Trace {
    out: Box<dyn Write + Send>,
    graph: String,
    /// Packets that are still to be written.
    left: u64,
    written: u64,
    error: Option<io::Error>,
}

impl Trace {
    pub(super) fn new(out: Box<dyn Write + Send>, graph: &str, packets: u64) -> Self {
        let mut trace =
            Self { out, graph: graph.to_owned(), left: packets, written: 0, error: None };
        let mut head = Vec::new();
        pcapng::section(&mut head, None, None);
        pcapng::interface(&mut head, &Interface::default());
        trace.error = trace.out.write_all(&head).err();
        trace
    }

    /// Returns true if nothing more is written.
    fn is_over(&self) -> bool {
        self.left == 0 || self.error.is_some()
    }

    fn write(&mut self, node: &str, packets: &[Mbuf<'_>]) {
        let comment = format!("{}: {node}", self.graph);
        for packet in packets {
            if self.is_over() {
                return;
            }
            let data: Vec<u8> = packet.segment_data().flatten().copied().collect();
            let about = Packet {
                nanoseconds: now(),
                len: data.len() as u32,
                comment: Some(&comment),
                ..Packet::default()
            };
            let mut block = Vec::with_capacity(data.len() + 128);
            pcapng::packet(&mut block, &about, &[&data]);
            match self.out.write_all(&block) {
                Ok(()) => {
                    self.left -= 1;
                    self.written += 1;
                }
                Err(error) => self.error = Some(error),
            }
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The original function of a traced node, and the address of the trace.
static NODES: Mutex<BTreeMap<usize, (Process, usize)>> = Mutex::new(BTreeMap::new());

fn nodes() -> MutexGuard<'static, BTreeMap<usize, (Process, usize)>> {
    NODES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A graph's trace, which is dropped before the graph.
pub(super) struct Traced {
    trace: NonNull<Mutex<Trace>>,
    nodes: Vec<*mut rte_node>,
}

impl Traced {
    /// # Safety
    /// The graph is one of packets, is complete, and not traced; this is dropped before it.
    pub(super) unsafe fn new(trace: Trace, graph: &Created<'_>) -> Self {
        let traced = Self {
            trace: NonNull::from(Box::leak(Box::new(Mutex::new(trace)))),
            nodes: graph.nodes(),
        };
        // SAFETY: the contract is the caller's.
        unsafe { traced.renew() };
        traced
    }

    /// Traces the nodes again, after their functions were set.
    ///
    /// # Safety
    /// The graph exists, does not run, and the function of each of its nodes was set since it was
    /// traced.
    pub(super) unsafe fn renew(&self) {
        for &node in &self.nodes {
            // SAFETY: the node is valid and does not run.
            unsafe {
                let process: Process = field(node, layout::NODE_PROCESS);
                let trace = self.trace.as_ptr().expose_provenance();
                nodes().insert(node.addr(), (process, trace));
                set_field(node, layout::NODE_PROCESS, run as Process);
            }
        }
    }

    /// The number of packets written so far; or the error that ended the trace, once.
    pub(super) fn written(&self) -> io::Result<u64> {
        // SAFETY: it lives as long as this.
        let mut trace =
            unsafe { self.trace.as_ref() }.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = trace.error.take() {
            trace.left = 0;
            return Err(error);
        }
        trace.out.flush()?;
        Ok(trace.written)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        for node in &self.nodes {
            if let Some((process, _)) = nodes().remove(&node.addr()) {
                // SAFETY: the graph ends after this, and does not run.
                unsafe { set_field(*node, layout::NODE_PROCESS, process) };
            }
        }
        // SAFETY: it came from a box, and no node finds it any more.
        drop(unsafe { Box::from_raw(self.trace.as_ptr()) });
    }
}

/// Writes the packets that have arrived at a node, and runs it; restores the node's own function
/// when the trace is over.
unsafe extern "C" fn run(
    graph: *mut rte_graph,
    node: *mut rte_node,
    objects: *mut *mut c_void,
    count: u16,
) -> u16 {
    let Some((process, trace)) = nodes().get(&node.addr()).copied() else { return 0 };
    // SAFETY: the walk calls this with packets that nobody else owns; the trace lives while the graph is walked.
    unsafe {
        let trace = &*std::ptr::with_exposed_provenance::<Mutex<Trace>>(trace);
        let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
        if count > 0 && !trace.is_over() {
            let packets = std::slice::from_raw_parts(objects.cast::<Mbuf<'_>>(), count.into());
            trace.write(&name_of(node), packets);
        }
        if trace.is_over() {
            set_field(node, layout::NODE_PROCESS, process);
        }
        drop(trace);
        process(graph, node, objects, count)
    }
}
