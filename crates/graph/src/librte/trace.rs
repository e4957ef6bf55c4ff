// SPDX-License-Identifier: BSD-3-Clause
//! Packets written down as they come to nodes: a trace in the pcapng format, each packet with a comment that names
//! the graph and the node. Of our own making, because librte_graph's came with 23.11 and has one file for all
//! graphs of a process.
//!
//! A traced node runs `traced` in place of its function, which is looked up here.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io::{self, Write};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use dpdk::Mbuf;
use dpdk_sys::{layout, rte_graph, rte_node};

use super::created::{Created, name_of};
use super::raw::{Process, field, set_field};

/// Where a trace goes to, and how far it is.
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
        let header = header();
        trace.error = trace.out.write_all(&header).err();
        trace
    }

    /// Whether nothing is written any more.
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
            match self.out.write_all(&record(now(), &data, &comment)) {
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

/// A block of pcapng: its type, its length, what it holds in words of 4 bytes, its length.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len() + 12) as u32;
    let mut block = Vec::with_capacity(len as usize);
    block.extend(kind.to_ne_bytes());
    block.extend(len.to_ne_bytes());
    block.extend(body);
    block.extend(len.to_ne_bytes());
    block
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// An option of a block.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_ne_bytes());
    body.extend((value.len() as u16).to_ne_bytes());
    body.extend(value);
    pad(body);
}

const OPT_COMMENT: u16 = 1;
const IF_TSRESOL: u16 = 9;
const END_OF_OPTIONS: u16 = 0;
const LINKTYPE_ETHERNET: u16 = 1;

/// The blocks that a file begins with: the section, and one interface whose times are nanoseconds.
fn header() -> Vec<u8> {
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4du32.to_ne_bytes());
    section.extend(1u16.to_ne_bytes());
    section.extend(0u16.to_ne_bytes());
    section.extend((-1i64).to_ne_bytes()); // How long it is, nobody knows yet.
    let mut interface = Vec::new();
    interface.extend(LINKTYPE_ETHERNET.to_ne_bytes());
    interface.extend([0; 2]);
    interface.extend(0u32.to_ne_bytes()); // Packets are written in full.
    option(&mut interface, IF_TSRESOL, &[9]);
    option(&mut interface, END_OF_OPTIONS, &[]);
    let mut header = block(0x0a0d_0d0a, &section);
    header.extend(block(1, &interface));
    header
}

/// An enhanced packet block.
fn record(time: u64, data: &[u8], comment: &str) -> Vec<u8> {
    let len = data.len() as u32;
    let mut body = Vec::with_capacity(data.len() + 128);
    body.extend(0u32.to_ne_bytes());
    body.extend(((time >> 32) as u32).to_ne_bytes());
    body.extend((time as u32).to_ne_bytes());
    body.extend(len.to_ne_bytes());
    body.extend(len.to_ne_bytes());
    body.extend(data);
    pad(&mut body);
    option(&mut body, OPT_COMMENT, comment.as_bytes());
    option(&mut body, END_OF_OPTIONS, &[]);
    block(6, &body)
}

/// What a traced node ran before, and the address of the trace.
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
    /// The graph is one of packets, made whole, and not traced; this is dropped before it.
    pub(super) unsafe fn new(trace: Trace, graph: &Created<'_>) -> Self {
        let traced = Self {
            trace: NonNull::from(Box::leak(Box::new(Mutex::new(trace)))),
            nodes: graph.nodes(),
        };
        // SAFETY: the contract is the caller's.
        unsafe { traced.renew() };
        traced
    }

    /// Traces the nodes again, after they were told what to run.
    ///
    /// # Safety
    /// The graph is there, does not run, and each of its nodes was told what to run since it was traced.
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

    /// Packets written so far; or the error that ended the trace, once.
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

/// Writes down what has come to a node, and runs it; by itself again when the trace is over.
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
