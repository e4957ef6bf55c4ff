// SPDX-License-Identifier: BSD-3-Clause
//! Threads that read.

use std::cell::Cell;
use std::marker::PhantomData;

use super::Qsbr;
use crate::debug::impl_debug;
use crate::fast;

/// The right of one thread to read. Writers do not wait for it until it is [`Online`].
///
/// It may move to another thread, and no two use it at once.
pub struct Reader<'q> {
    qsbr: &'q Qsbr,
    thread: u16,
    /// Not `Sync`.
    alone: PhantomData<Cell<()>>,
}

impl_debug!([] Reader<'_>, reader => thread: reader.thread);

impl<'q> Reader<'q> {
    pub(super) fn new(qsbr: &'q Qsbr, thread: u16) -> Self {
        Self { qsbr, thread, alone: PhantomData }
    }

    /// Begins to read: writers wait for it from now on (`rte_rcu_qsbr_thread_online`).
    #[inline]
    pub fn online(&mut self) -> Online<'_> {
        // SAFETY: the variable lives and knows the thread, which is this reader's alone.
        unsafe { fast::qsbr::online(self.qsbr.as_ptr(), self.thread.into()) };
        Online { qsbr: self.qsbr, thread: self.thread, reader: PhantomData }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.qsbr.unregister(self.thread);
    }
}

/// A reader that writers wait for. Values that were read borrow it, so none is left when it is
/// quiescent or offline:
/// ```compile_fail,E0502
/// use dpdk::qsbr::{Online, Replaceable};
///
/// fn hold(online: &mut Online<'_>, table: &Replaceable<'_, u32>) -> u32 {
///     let number = table.read(online);
///     online.quiescent();
///     *number
/// }
/// ```
pub struct Online<'r> {
    qsbr: &'r Qsbr,
    thread: u16,
    /// The reader is borrowed exclusively; not `Sync`.
    reader: PhantomData<(&'r mut (), Cell<()>)>,
}

impl_debug!([] Online<'_>, online => thread: online.thread);

impl Online<'_> {
    /// Announces that the reader holds no data that it has read (`rte_rcu_qsbr_quiescent`). Call it
    /// for each burst, or each turn of a loop without packets.
    #[inline]
    pub fn quiescent(&mut self) {
        // SAFETY: the variable lives, the thread is online, and what was read borrowed `self`.
        unsafe { fast::qsbr::quiescent(self.qsbr.as_ptr(), self.thread.into()) };
    }

    /// [`quiescent`](Self::quiescent) through a shared reference.
    ///
    /// # Safety
    /// Nothing that was read through this reader is used any more.
    #[inline(always)]
    pub(super) unsafe fn quiescent_shared(&self) {
        // SAFETY: the variable lives, and the thread is online; the rest is the caller's.
        unsafe { fast::qsbr::quiescent(self.qsbr.as_ptr(), self.thread.into()) };
    }

    /// [`Qsbr::synchronize`] on a thread that is a reader: announces that it is quiescent, then
    /// waits for the others.
    pub fn synchronize(&mut self) {
        let token = self.qsbr.start();
        self.quiescent();
        self.qsbr.wait(token, || self.quiescent());
    }

    /// Returns true if this is a reader of `qsbr`.
    #[inline]
    pub(crate) fn is_of(&self, qsbr: &Qsbr) -> bool {
        std::ptr::eq(self.qsbr, qsbr)
    }
}

impl Drop for Online<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the variable lives, and what was read borrowed `self`.
        unsafe { fast::qsbr::offline(self.qsbr.as_ptr(), self.thread.into()) };
    }
}

/// The program has used a reader of another `Qsbr`: it would not keep this one's writers waiting.
#[cold]
#[inline(never)]
pub(crate) fn foreign() -> ! {
    panic!("a table is read with a Reader of another Qsbr than its own")
}
