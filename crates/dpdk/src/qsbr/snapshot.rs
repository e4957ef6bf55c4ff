// SPDX-License-Identifier: BSD-3-Clause
//! One value of a [`Replaceable`] for all parts of a thread's work.

use std::cell::Cell;

use super::reader::Online;
use super::replaceable::Replaceable;
use crate::debug::impl_debug;

/// What a thread reads of a [`Replaceable`] between two quiescent states: the same value for everybody who shares the snapshot,
/// whatever writers do meanwhile. So the nodes of a graph, or the steps of a loop, need one reader together, and none of them works
/// with an older or a newer value than another. Put tables that belong together into one struct: they are of one generation.
///
/// ```
/// use dpdk::qsbr::{Qsbr, Replaceable, Snapshot};
///
/// struct Tables { routes: Vec<u32>, rules: Vec<u32> }
///
/// /// A part of the work, such as a node of a graph.
/// struct Router<'s, 'q>(&'s Snapshot<'s, 'q, Tables>);
/// impl Router<'_, '_> {
///     fn route(&self, address: usize) -> Option<u32> {
///         self.0.with(|tables| tables.routes.get(address).copied())
///     }
/// }
///
/// let qsbr = Qsbr::new(1);
/// let tables = Replaceable::new(&qsbr, Tables { routes: vec![7], rules: vec![] });
/// let mut reader = qsbr.register()?;
/// let snapshot = tables.snapshot(reader.online());
/// let router = Router(&snapshot);
///
/// let old = tables.replace(Tables { routes: vec![8], rules: vec![] });
/// assert_eq!(router.route(0), Some(7)); // until the end of the walk
/// snapshot.renew(); // between two walks
/// assert_eq!(router.route(0), Some(8));
/// assert!(old.try_take().is_ok());
/// # Ok::<(), dpdk::qsbr::TooManyReaders>(())
/// ```
///
/// Nothing that was read can be kept over that:
/// ```compile_fail
/// fn keep<'s>(snapshot: &'s dpdk::qsbr::Snapshot<'_, '_, Vec<u32>>) -> &'s u32 {
///     snapshot.with(|table| &table[0])
/// }
/// ```
pub struct Snapshot<'r, 'q, T> {
    table: &'r Replaceable<'q, T>,
    // In no cell: a cell would make `'r` invariant, and a borrowed snapshot could then not be dropped.
    online: Online<'r>,
    /// The value of `table` when the reader was last quiescent.
    current: Cell<*const T>,
    /// How many calls of `with` have not ended.
    reading: Cell<u32>,
}

/// A call of [`Snapshot::with`], which may end by a panic.
struct Reading<'s>(&'s Cell<u32>);

impl Drop for Reading<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl_debug!([T] Snapshot<'_, '_, T>, snapshot => table: snapshot.table);

impl<'r, 'q, T> Snapshot<'r, 'q, T> {
    pub(super) fn new(table: &'r Replaceable<'q, T>, online: Online<'r>) -> Self {
        let current = Cell::new(std::ptr::from_ref(table.read(&online)));
        Self { table, online, current, reading: Cell::new(0) }
    }

    /// Lends the value.
    #[inline(always)]
    pub fn with<R>(&self, work: impl FnOnce(&T) -> R) -> R {
        self.reading.set(self.reading.get() + 1);
        let _reading = Reading(&self.reading);
        // SAFETY: the value was in the table when the reader, which is online, was last quiescent. It is not quiescent again while
        // this is counted, so no writer frees the value. `work` cannot keep the reference: it is for any lifetime.
        work(unsafe { &*self.current.get() })
    }

    /// Announces that nobody reads (`rte_rcu_qsbr_quiescent`), and takes the table's newest value.
    ///
    /// # Panics
    /// In [`with`](Self::with).
    #[inline(always)]
    pub fn renew(&self) {
        if self.reading.get() != 0 {
            still_read();
        }
        // SAFETY: nobody reads the value, which only `with` lends.
        unsafe { self.online.quiescent_shared() };
        self.current.set(std::ptr::from_ref(self.table.read(&self.online)));
    }
}

/// The program renews a snapshot while it reads.
#[cold]
#[inline(never)]
fn still_read() -> ! {
    panic!("a snapshot is renewed in a call of `with`, whose value may then be freed")
}
