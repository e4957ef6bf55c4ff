// SPDX-License-Identifier: BSD-3-Clause
//! What exists once in a process: DPDK's list of graphs, the nodes of ports, the routes of
//! `ip4_lookup`. Code that creates, destroys or lists graphs holds the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dpdk::Errno;

use super::error::GraphError;
use super::ip4::{self, Ip4Route};

/// `RTE_GRAPH_ID_INVALID`
pub(super) const NO_GRAPH: u16 = u16::MAX;

pub(super) struct Library {
    /// Receive queues that each port has nodes for.
    ports: BTreeMap<u16, u16>,
    /// The routes of `ip4_lookup`, once a graph has given it some.
    pub(super) routes: Option<Vec<Ip4Route>>,
    /// The number of graphs with `ip4_rewrite`.
    pub(super) rewriting: usize,
    /// Graphs that are walked without statistics.
    pub(super) uncounted: BTreeSet<CString>,
}

static LIBRARY: Mutex<Library> = Mutex::new(Library {
    ports: BTreeMap::new(),
    routes: None,
    rewriting: 0,
    uncounted: BTreeSet::new(),
});

pub(super) fn lock() -> MutexGuard<'static, Library> {
    LIBRARY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Library {
    /// Makes a port's nodes, if they do not exist yet, including that of a receive queue.
    pub(super) fn configure(&mut self, port: u16, rx: Option<u16>) -> Result<(), GraphError> {
        let queues = match self.ports.get(&port) {
            Some(queues) => *queues,
            // ip4_rewrite gets one more edge, for which DPDK moves memory that graphs point to.
            None if self.rewriting > 0 => return Err(GraphError::PortLate(port)),
            None => {
                // SAFETY: the caller has a queue of the port, which therefore exists.
                let queues = unsafe { dpdk_sys::lr_node_eth_config(port) };
                let Ok(queues) = u16::try_from(queues) else {
                    return Err(GraphError::PortRefused { port, errno: Errno(-queues) });
                };
                self.ports.insert(port, queues);
                queues
            }
        };
        match rx {
            Some(queue) if queue >= queues => Err(GraphError::NoQueueNode { port, queue, queues }),
            _ => Ok(()),
        }
    }

    /// Sets the routes of `ip4_lookup`, if they are not set yet. A graph has been made of it, which
    /// is not walked yet, and the routes were [checked](ip4::check).
    pub(super) fn add_routes(&mut self, routes: &[Ip4Route]) -> Result<(), GraphError> {
        if self.routes.is_some() {
            return Ok(());
        }
        let (added, result) = ip4::add(routes);
        self.routes = Some(routes[..added].to_vec());
        result
    }
}

/// Returns true if DPDK finds the graph of this name by this number.
pub(super) fn is_first(id: u16, name: &CStr) -> bool {
    // SAFETY: the name of a graph, which lives while the lock is held; null for none.
    unsafe {
        let found = dpdk_sys::rte_graph_id_to_name(id);
        !found.is_null() && CStr::from_ptr(found) == name
    }
}
