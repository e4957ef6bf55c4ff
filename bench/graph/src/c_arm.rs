// SPDX-License-Identifier: BSD-3-Clause
//! C nodes in librte_graph, from a library that `c/Makefile` builds.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use libloading::Library;

use crate::arm::{Arm, Parts};
use crate::packet::{Packet, seed};

/// A node as `c/graph.c` declares it.
#[repr(C)]
struct Node {
    is_source: u8,
    edges: u8,
    shift: u8,
    mask: u8,
    next: [u8; 8],
    seed: u64,
    first: *mut Packet,
    batch: u64,
}

type OpenGraph = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const Node,
    c_int,
    c_int,
    c_int,
    *mut *mut c_void,
) -> c_int;

/// A build of the C side.
pub struct CNodes {
    pub build: String,
    open: OpenGraph,
    functions: Functions,
}

/// Functions that are called on an open graph.
#[derive(Clone, Copy)]
struct Functions {
    walk: unsafe extern "C" fn(*mut c_void, u64, c_int),
    sunk: unsafe extern "C" fn() -> u64,
    close: unsafe extern "C" fn(*mut c_void),
}

impl CNodes {
    /// Loads a library. It stays loaded until the process ends.
    pub fn load(build: &str, file: &OsStr) -> Result<Self, libloading::Error> {
        // SAFETY: the command line names a library of ours, which has no constructors of its own.
        let library: &'static Library = Box::leak(Box::new(unsafe { Library::new(file) }?));
        // SAFETY: the functions are declared as in `c/graph.c`.
        unsafe {
            Ok(Self {
                build: build.to_owned(),
                open: *library.get(b"bench_open\0")?,
                functions: Functions {
                    walk: *library.get(b"bench_walk\0")?,
                    sunk: *library.get(b"bench_sunk\0")?,
                    close: *library.get(b"bench_close\0")?,
                },
            })
        }
    }

    /// Builds the graph of a cell.
    pub fn open(&self, parts: &Parts<'_>) -> Result<Open, String> {
        static GRAPHS: AtomicU64 = AtomicU64::new(0);
        let cell = parts.cell;
        let nodes: Vec<Node> = (parts.places.iter().enumerate())
            .map(|(at, place)| {
                let split = parts.split(at);
                let mut next = [0; 8];
                for (to, from) in next.iter_mut().zip(&place.next) {
                    *to = *from as u8;
                }
                Node {
                    is_source: place.is_source.into(),
                    edges: place.next.len() as u8,
                    shift: split.shift,
                    mask: split.mask,
                    next,
                    seed: seed(at),
                    first: if place.is_source { parts.packets.of(at) } else { null_mut() },
                    batch: cell.batch.into(),
                }
            })
            .collect();
        // librte_graph never forgets a node's name and its functions, so the name must identify the functions.
        let name = format!("{}-{}-{}-{}", self.build, cell.shape.name(), cell.way, cell.work);
        let name = CString::new(name).map_err(|_| "a build's name with a NUL byte".to_owned())?;
        let graph = CString::from_vec_with_nul(
            format!("c-{}\0", GRAPHS.fetch_add(1, Ordering::Relaxed)).into_bytes(),
        )
        .map_err(|error| error.to_string())?;
        let (way, work) = (cell.way.into(), cell.work.into());
        let mut opened = null_mut();
        // SAFETY: the array has as many nodes as its count says, and C has room for this shape.
        let failed = unsafe {
            (self.open)(
                name.as_ptr(),
                graph.as_ptr(),
                nodes.as_ptr(),
                nodes.len() as c_int,
                way,
                work,
                &mut opened,
            )
        };
        match (failed, NonNull::new(opened)) {
            (0, Some(graph)) => Ok(Open { graph, functions: self.functions, stats: cell.stats }),
            (1, _) => Err(format!("librte_graph refused a node of {name:?}")),
            _ => Err(format!("librte_graph refused the graph {name:?}")),
        }
    }
}

/// A graph of C nodes; it ends when it is dropped.
pub struct Open {
    graph: NonNull<c_void>,
    functions: Functions,
    stats: bool,
}

impl Arm for Open {
    fn walk(&mut self, walks: u64) {
        // SAFETY: the graph is open, and its packets live as long as the process.
        unsafe { (self.functions.walk)(self.graph.as_ptr(), walks, self.stats.into()) }
    }

    /// All graphs of this build share the counter: take the difference over a walk of this one.
    fn sunk(&mut self) -> u64 {
        // SAFETY: reads a counter.
        unsafe { (self.functions.sunk)() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the graph is open and not walked.
        unsafe { (self.functions.close)(self.graph.as_ptr()) }
    }
}
