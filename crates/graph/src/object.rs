// SPDX-License-Identifier: BSD-3-Clause
//! The objects of a graph.

use dpdk::Mbuf;

/// An object that a graph passes from node to node: an owning pointer, one word wide.
///
/// # Safety
/// A value is a pointer that is not null, and nothing else: librte_graph keeps it as a `void *`
/// between two nodes, and a C node may use it as one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot pass through a graph, whose objects are pointers that own something",
    label = "not a graph object",
    note = "use packets (`dpdk::Mbuf`), boxes (`Box<T>`) or references"
)]
pub unsafe trait Object: Sized + Send {
    /// Prefetches what a node will read of it. Does nothing by default.
    #[inline(always)]
    fn prefetch(&self) {}
}

// SAFETY: transparent over a pointer to an mbuf that is not null; the C nodes of DPDK take the same.
unsafe impl Object for Mbuf<'_> {
    #[inline(always)]
    fn prefetch(&self) {
        Mbuf::prefetch(self);
    }
}
// SAFETY: a reference is a pointer that is not null.
unsafe impl<T: Sync> Object for &T {}
// SAFETY: as above.
unsafe impl<T: Send> Object for &mut T {}
// SAFETY: a box of a sized type is a pointer that is not null.
unsafe impl<T: Send> Object for Box<T> {}

/// Checks the size of `M` at compile time.
pub(crate) const fn assert_one_word<M: Object>() {
    assert!(
        size_of::<M>() == size_of::<*mut ()>() && align_of::<M>() == align_of::<*mut ()>(),
        "an object of a graph is one pointer"
    );
}
