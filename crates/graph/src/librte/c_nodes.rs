// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's own nodes, of librte_node: which of them a graph has, and their requirements.
//!
//! This module ensures what these nodes rely on without a check. `ip4_lookup` reads 34 bytes of any
//! packet and `ip4_rewrite` writes some of them: packets that are shorter, or whose bytes have
//! other owners, bypass both and go to `pkt_drop`. `ip4_rewrite` takes its next hop from a field of
//! the mbuf that `ip4_lookup` writes: no other node may send to it. `ethdev_tx` uses the graph's
//! number as the number of its queue: it is given its own queue. The field between the two nodes is
//! a dynamic field and not in the private area of an mbuf, so pools need no private area.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use dpdk::{Eal, Lcore, Mbuf};
use dpdk_sys::{layout, rte_graph, rte_node};

use super::error::GraphError;
use super::ip4::{self, Ip4Route};
use super::library::Library;
use super::plan::{Planned, c_name};
use super::raw::{self, Process, field, set_field};
use super::register;

pub(super) const LOOKUP: &str = "ip4_lookup";
pub(super) const REWRITE: &str = "ip4_rewrite";
pub(super) const CLASSIFY: &str = "pkt_cls";
pub(super) const DROP: &str = "pkt_drop";

/// Which of DPDK's nodes a graph has.
#[derive(Default)]
pub(super) struct CNodes {
    /// Port, queue and target of each `ethdev_rx`.
    pub(super) receive: Vec<(u16, u16, String)>,
    /// Port and queue of each `ethdev_tx`.
    pub(super) transmit: Vec<(u16, u16)>,
    /// Nodes without requirements.
    pub(super) plain: Vec<&'static str>,
    pub(super) routes: Option<Vec<Ip4Route>>,
    /// Redirected edges: node, DPDK's target, target in this graph.
    pub(super) led: Vec<(String, String, String)>,
    pub(super) lcore: Option<Lcore>,
}

fn receive_name(port: u16, queue: u16) -> String {
    format!("ethdev_rx-{port}-{queue}")
}

fn transmit_name(port: u16) -> String {
    format!("ethdev_tx-{port}")
}

impl CNodes {
    /// The nodes; DPDK creates those of ports.
    pub(super) fn plan(&self, library: &mut Library) -> Result<Vec<Planned>, GraphError> {
        self.check_routes(library)?;
        for (port, queue, _) in &self.receive {
            library.configure(*port, Some(*queue))?;
        }
        for (port, _) in &self.transmit {
            library.configure(*port, None)?;
        }
        let mut names: Vec<String> = self.plain.iter().map(|name| (*name).to_owned()).collect();
        names.extend(self.transmit.iter().map(|(port, _)| transmit_name(*port)));
        if self.routes.is_some() {
            names.extend([LOOKUP.to_owned(), REWRITE.to_owned()]);
        }
        let mut nodes = Vec::new();
        for (port, queue, target) in &self.receive {
            let mut node = Planned::of_c(&receive_name(*port, *queue))?;
            node.source = true;
            // The node sends to one of its edges: all get the same target, whichever it uses.
            node.edges.iter_mut().for_each(|(_, to)| to.clone_from(target));
            nodes.push(node);
        }
        for name in &names {
            let mut node = Planned::of_c(name)?;
            for (known, target) in &mut node.edges {
                // Nodes of other ports and of later releases lead to pkt_drop, as in a release
                // without them.
                let offered = [LOOKUP, REWRITE, CLASSIFY, DROP].contains(&known.as_str());
                if !offered && !names.contains(known) {
                    DROP.clone_into(target);
                }
            }
            nodes.push(node);
        }
        for led in &self.led {
            lead(&mut nodes, led)?;
        }
        Ok(nodes)
    }

    fn check_routes(&self, library: &Library) -> Result<(), GraphError> {
        let Some(routes) = &self.routes else { return Ok(()) };
        let ports: Vec<u16> = self.transmit.iter().map(|(port, _)| *port).collect();
        ip4::check(routes, &ports)?;
        match &library.routes {
            Some(known) if known != routes => Err(GraphError::RoutesDiffer),
            _ => Ok(()),
        }
    }

    /// The NUMA node that the graph's memory is to be on; -1 for any.
    pub(super) fn socket(&self, eal: &Eal) -> Result<i32, GraphError> {
        if self.lcore.is_none() && self.routes.is_none() {
            return Ok(-1);
        }
        // ip4_lookup chooses its table by this number; there is one for each NUMA node with an
        // lcore.
        let socket = self.lcore.unwrap_or_else(|| eal.main_lcore()).socket();
        match socket.and_then(|socket| i32::try_from(socket).ok()) {
            Some(socket) => Ok(socket),
            None if self.routes.is_none() => Ok(-1),
            None => Err(GraphError::NoSocket),
        }
    }

    /// Sets what DPDK cannot know in the nodes of a graph.
    ///
    /// # Safety
    /// These are the nodes of a graph that was made of what `plan` returned, and is not walked.
    pub(super) unsafe fn install(
        &self,
        graph: u16,
        nodes: &[*mut rte_node],
    ) -> Result<(), GraphError> {
        for node in nodes.iter().copied() {
            // SAFETY: the node is valid, and its name is a C string inside it.
            let name = unsafe { CStr::from_ptr((*node).name.as_ptr()) }.to_string_lossy();
            if name == LOOKUP && self.routes.is_some() {
                // SAFETY: the node is valid and not running.
                unsafe { guard(node)? };
            }
            let queue = self.transmit.iter().find(|(port, _)| transmit_name(*port) == name);
            if let Some((port, queue)) = queue {
                let at = layout::NODE_CTX;
                // SAFETY: the context has 16 bytes, zeroed before the node's own function wrote there.
                unsafe {
                    let known: [u16; 2] = field(node, at);
                    if known != [*port, graph] {
                        return Err(GraphError::QueueUnknown(name.into_owned()));
                    }
                    set_field(node, at, [*port, *queue]);
                }
            }
        }
        Ok(())
    }
}

/// Redirects an edge of one of these nodes.
fn lead(
    nodes: &mut [Planned],
    (name, from, to): &(String, String, String),
) -> Result<(), GraphError> {
    let node = nodes.iter_mut().find(|node| node.name == *name);
    let node = node.ok_or_else(|| GraphError::NotOfDpdk(name.clone()))?;
    // Packets of ip4_lookup must reach ip4_rewrite unchanged.
    let fixed = |edge: &str| name == LOOKUP && edge == REWRITE;
    let edge = node.edges.iter_mut().find(|(edge, _)| edge == from && !fixed(edge));
    if let Some((_, target)) = edge {
        target.clone_from(to);
        return Ok(());
    }
    let known = node.edges.iter().map(|(edge, _)| edge.clone()).filter(|edge| !fixed(edge));
    Err(GraphError::NoEdge { node: name.clone(), edge: from.clone(), known: known.collect() })
}

/// Checks that only `ip4_lookup` sends to `ip4_rewrite`, and only packets with a route.
pub(super) fn check(nodes: &[Planned]) -> Result<(), GraphError> {
    let other = |node: &&Planned| {
        let found = |edge: &str| node.name == LOOKUP && edge == REWRITE;
        node.edges.iter().any(|(edge, target)| target == REWRITE && !found(edge))
    };
    nodes.iter().find(other).map_or(Ok(()), |node| Err(GraphError::Unlooked(node.name.clone())))
}

/// The original function of `ip4_lookup`, and its edge to `pkt_drop`: the same in every graph.
static GUARDED: OnceLock<(Process, usize)> = OnceLock::new();

/// Puts `looked_up` before the function of `ip4_lookup`.
///
/// # Safety
/// The node is an `ip4_lookup` that does not run.
unsafe fn guard(node: *mut rte_node) -> Result<(), GraphError> {
    // SAFETY: the contract is the caller's.
    let process: Process = unsafe { field(node, layout::NODE_PROCESS) };
    let edges = register::edges(&c_name(LOOKUP, "node")?).unwrap_or_default();
    let drop = edges.iter().position(|target| target == DROP);
    let drop = drop.ok_or_else(|| GraphError::NoEdge {
        node: LOOKUP.into(),
        edge: DROP.into(),
        known: edges,
    })?;
    GUARDED.get_or_init(|| (process, drop));
    // SAFETY: as above.
    unsafe { set_field(node, layout::NODE_PROCESS, looked_up as Process) };
    Ok(())
}

/// Bytes that `ip4_lookup` and `ip4_rewrite` read without a check: an Ethernet header and an IPv4
/// header.
const NEEDED: usize = 14 + 20;

unsafe extern "C" fn looked_up(
    graph: *mut rte_graph,
    node: *mut rte_node,
    objects: *mut *mut c_void,
    count: u16,
) -> u16 {
    let Some((process, drop)) = GUARDED.get() else { return 0 };
    // SAFETY: the walk calls this with packets that nobody else owns. A packet that does not fit goes to a
    // node that is not this one, before the C function exchanges this one's memory; the function is told
    // how many are left in the way in which it is told by the walk.
    unsafe {
        let packets = std::slice::from_raw_parts_mut(objects.cast::<Mbuf<'_>>(), count.into());
        let mut fit = 0;
        for at in 0..packets.len() {
            if packets[at].data().len() >= NEEDED && packets[at].is_unshared() {
                packets.swap(fit, at);
                fit += 1;
            }
        }
        let unfit = packets.len() - fit;
        if unfit > 0 {
            let room = raw::claim(graph, raw::next(node, *drop), unfit);
            if room.is_null() {
                packets[fit..].iter_mut().for_each(|packet| std::ptr::drop_in_place(packet));
            } else {
                std::ptr::copy_nonoverlapping(objects.add(fit), room, unfit);
            }
        }
        if fit > 0 {
            set_field(node, layout::NODE_IDX, fit as u16);
            process(graph, node, objects, fit as u16);
        }
    }
    count
}
