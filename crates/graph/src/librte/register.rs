// SPDX-License-Identifier: BSD-3-Clause
//! Names of nodes. DPDK keeps a node's name for the rest of the process; graphs are made of names.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, PoisonError};

use dpdk::Errno;

use super::error::GraphError;
use super::plan::{Planned, c_name};
use super::run;

/// The nodes that this crate has registered, with the properties that cannot change afterwards.
static REGISTERED: Mutex<BTreeMap<String, (bool, Vec<String>)>> = Mutex::new(BTreeMap::new());

/// Registers a Rust node with DPDK, if it is not registered yet.
pub(super) fn node(node: &Planned) -> Result<(), GraphError> {
    let targets: Vec<String> = node.edges.iter().map(|(_, target)| target.clone()).collect();
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((source, known)) = registered.get(&node.name) {
        let same = *source == node.source && *known == targets;
        return if same { Ok(()) } else { Err(GraphError::NodeTaken(node.name.clone())) };
    }
    let name = c_name(&node.name, "node")?;
    if id(&name).is_some() {
        return Err(GraphError::NodeTaken(node.name.clone()));
    }
    let next: Vec<CString> =
        targets.iter().map(|target| c_name(target, "node")).collect::<Result<_, _>>()?;
    let next: Vec<*const c_char> = next.iter().map(|target| target.as_ptr()).collect();
    // SAFETY: names are C strings; DPDK copies them.
    let id = unsafe {
        dpdk_sys::lr_node_register(
            name.as_ptr(),
            node.source.into(),
            Some(run::unused),
            next.as_ptr(),
            next.len() as u16,
        )
    };
    if id == u32::MAX {
        // SAFETY: reads a thread-local integer.
        let errno = Errno(unsafe { dpdk_sys::lr_errno() });
        return Err(GraphError::NodeRefused { node: node.name.clone(), errno });
    }
    registered.insert(node.name.clone(), (node.source, targets));
    Ok(())
}

/// Redirects edges of C nodes for the graph that is being made, and restores them when dropped: a
/// graph keeps the edges that it was made with.
pub(super) struct Led(Vec<(u32, u16, CString)>);

impl Led {
    pub(super) fn new(nodes: &[Planned]) -> Result<Self, GraphError> {
        let mut led = Self(Vec::new());
        for node in nodes.iter().filter(|node| node.work.is_none()) {
            let Some(id) = id(&c_name(&node.name, "node")?) else { continue };
            for (edge, (known, target)) in node.edges.iter().enumerate() {
                if known != target {
                    lead(id, edge as u16, &c_name(target, "node")?);
                    led.0.push((id, edge as u16, c_name(known, "node")?));
                }
            }
        }
        Ok(led)
    }
}

impl Drop for Led {
    fn drop(&mut self) {
        for (node, edge, target) in &self.0 {
            lead(*node, *edge, target);
        }
    }
}

/// Redirects an edge of a node.
fn lead(node: u32, edge: u16, target: &CStr) {
    let mut targets = [target.as_ptr()];
    // SAFETY: the node exists and has the edge, so that DPDK writes the name over the one before, and moves
    // nothing.
    unsafe { dpdk_sys::rte_node_edge_update(node, edge, targets.as_mut_ptr(), 1) };
}

/// The number of a registered node.
fn id(name: &CStr) -> Option<u32> {
    // SAFETY: a C string.
    let id = unsafe { dpdk_sys::rte_node_from_name(name.as_ptr()) };
    (id != u32::MAX).then_some(id)
}

/// The targets of a registered node, in the order of its edges. The caller holds the library's
/// lock.
pub(super) fn edges(name: &CStr) -> Option<Vec<String>> {
    let id = id(name)?;
    // SAFETY: the node exists; DPDK writes as many pointers to names as it says that
    // the node has edges; they are read before anything changes, for the caller holds the lock.
    unsafe {
        let count = dpdk_sys::rte_node_edge_count(id);
        let mut next: Vec<*mut c_char> = vec![std::ptr::null_mut(); count.into()];
        if count > 0 {
            dpdk_sys::rte_node_edge_get(id, next.as_mut_ptr());
        }
        let name = |name: *mut c_char| CStr::from_ptr(name).to_string_lossy().into_owned();
        Some(next.into_iter().filter(|next| !next.is_null()).map(name).collect())
    }
}
