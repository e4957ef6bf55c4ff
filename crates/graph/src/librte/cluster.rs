// SPDX-License-Identifier: BSD-3-Clause
//! Statistics of several graphs at once.

use std::ffi::{CStr, CString, c_char, c_void};

use dpdk::{Eal, Errno};

use super::library;

/// The statistics of all nodes with one name, summed over graphs (`rte_graph_cluster_stats_get`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// The nodes' name.
    pub name: String,
    /// Batches that they processed; for sources, the number of polls.
    pub calls: u64,
    /// Objects that they received; for sources, objects that they produced.
    pub objects: u64,
    /// TSC cycles spent in them.
    pub cycles: u64,
    /// How often the memory for their waiting objects was enlarged.
    pub reallocations: u64,
}

/// Why there are no statistics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A pattern with a NUL byte.
    #[error("{0:?} cannot be a pattern: it contains a NUL byte")]
    Pattern(String),
    /// A graph that is walked without statistics.
    #[error("the graph {0:?} counts nothing: build it with STATS, or leave it out")]
    Uncounted(String),
    /// More patterns than DPDK counts.
    #[error("{0} patterns: 65,535 are possible; have one match several graphs")]
    TooMany(usize),
    /// DPDK refused: `EFAULT` if a pattern matches no graph, `EINVAL` without patterns or if DPDK
    /// was built without statistics.
    #[error("DPDK has no statistics of graphs named {0:?}: {1}")]
    Refused(Vec<String>, Errno),
}

/// Sums the statistics, since the graphs were made, of the nodes of all graphs that match one of
/// these shell patterns. Other threads may walk the graphs meanwhile; their last batches may be
/// missing.
///
/// ```no_run
/// # fn print(eal: &dpdk::Eal) -> Result<(), graph::ClusterError> {
/// for node in graph::cluster_stats(eal, &["worker-*"])? {
///     println!("{}: {} calls, {} objects", node.name, node.calls, node.objects);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// See [`ClusterError`].
pub fn cluster_stats(_eal: &Eal, patterns: &[&str]) -> Result<Vec<ClusterNode>, ClusterError> {
    let c_pattern =
        |it: &&str| CString::new(*it).map_err(|_| ClusterError::Pattern((*it).to_owned()));
    let c_patterns: Vec<CString> = patterns.iter().map(c_pattern).collect::<Result<_, _>>()?;
    let count = u16::try_from(patterns.len()).map_err(|_| ClusterError::TooMany(patterns.len()))?;
    // No graph ends while the lock is held.
    let library = library::lock();
    for graph in &library.uncounted {
        for pattern in &c_patterns {
            // SAFETY: two C strings.
            if unsafe { dpdk_sys::lr_matches(pattern.as_ptr(), graph.as_ptr()) } != 0 {
                return Err(ClusterError::Uncounted(graph.to_string_lossy().into_owned()));
            }
        }
    }
    let mut pointers: Vec<*const c_char> = c_patterns.iter().map(|it| it.as_ptr()).collect();
    let mut nodes = Vec::<ClusterNode>::new();
    // SAFETY: the patterns are C strings, and `read` gets the list that it takes.
    let code = unsafe {
        dpdk_sys::lr_graph_cluster_stats(
            pointers.as_mut_ptr(),
            count,
            Some(read),
            (&raw mut nodes).cast(),
        )
    };
    if code != 0 {
        let patterns = patterns.iter().map(|it| (*it).to_owned()).collect();
        return Err(ClusterError::Refused(patterns, Errno(-code)));
    }
    Ok(nodes)
}

unsafe extern "C" fn read(
    nodes: *mut c_void,
    name: *const c_char,
    calls: u64,
    objects: u64,
    cycles: u64,
    reallocations: u64,
) {
    // SAFETY: the list that `cluster_stats` passed, and the name of a node.
    let (nodes, name) = unsafe { (&mut *nodes.cast::<Vec<ClusterNode>>(), CStr::from_ptr(name)) };
    let name = name.to_string_lossy().into_owned();
    nodes.push(ClusterNode { name, calls, objects, cycles, reallocations });
}
