// SPDX-License-Identifier: BSD-3-Clause
//! Tables replaced or changed while other threads read them (`librte_rcu`): quiescent-state-based
//! reclamation.
//!
//! # Lifecycle
//! A [`Qsbr`] is made for a maximum number of reading threads. Each takes a [`Reader`] and goes
//! [`Online`]; between two bursts of packets, when it holds nothing that it has read, it calls
//! [`Online::quiescent`]. A writer makes a new table, puts it in the old one's place
//! ([`Replaceable::replace`]), and gets the old one back when every reader that is online has been
//! quiescent once: then nobody reads it. Lookups go on meanwhile.
//!
//! # Threads
//! A [`Reader`] belongs to one thread at a time. [`Qsbr`] and [`Replaceable`] are shared by all;
//! any thread may be a writer. A reader that blocks keeps writers waiting: it should first go
//! offline, by dropping [`Online`].
//!
//! # Cost
//! A quiescent state costs a load of a cache line that only writers change, and a store when a
//! writer has asked.
//!
//! ```
//! use dpdk::qsbr::{Qsbr, Replaceable};
//!
//! let qsbr = Qsbr::new(1);
//! let table = Replaceable::new(&qsbr, vec![1, 2, 3]);
//! let mut reader = qsbr.register().unwrap();
//! std::thread::scope(|threads| {
//!     threads.spawn(|| {
//!         let mut online = reader.online();
//!         while table.read(&online)[0] != 4 {
//!             online.quiescent();
//!         }
//!     });
//!     let old = table.replace(vec![4]).wait();
//!     assert_eq!(old, [1, 2, 3]);
//! });
//! ```

mod reader;
mod replaceable;
mod snapshot;

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};

use dpdk_sys::{layout, rte_rcu_qsbr};

use crate::debug::impl_debug;
use crate::fast;
use crate::mutex::locked;

pub(crate) use reader::foreign;
pub use reader::{Online, Reader};
pub use replaceable::{Replaceable, Retired};
pub use snapshot::Snapshot;

/// The registered readers and the progress of each. Its memory is Rust's: it needs no [`Eal`](crate::Eal).
pub struct Qsbr {
    raw: NonNull<rte_rcu_qsbr>,
    readers: u16,
    /// Thread numbers that are not in use.
    free: Mutex<Vec<u16>>,
    writers: Mutex<()>,
}

impl_debug!([] Qsbr, qsbr => readers: qsbr.readers);

// SAFETY: readers and writers change the variable by atomic accesses only.
unsafe impl Send for Qsbr {}
// SAFETY: as above.
unsafe impl Sync for Qsbr {}

/// As many readers as the [`Qsbr`] has room for are registered already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {0} readers already: make the Qsbr for more, or drop a Reader")]
pub struct TooManyReaders(u16);

/// A point in time: objects that readers read before it may still be in use until [`Qsbr::check`]
/// allows to free them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(u64);

impl Qsbr {
    /// Makes one for up to `readers` readers at a time (`rte_rcu_qsbr_init`).
    #[must_use]
    pub fn new(readers: u16) -> Self {
        let memory = Self::memory(readers);
        // SAFETY: the layout is not of size 0.
        let raw: *mut rte_rcu_qsbr = unsafe { alloc_zeroed(memory) }.cast();
        let raw = NonNull::new(raw).unwrap_or_else(|| handle_alloc_error(memory));
        // SAFETY: as many bytes as DPDK asks for, aligned as it says.
        unsafe { dpdk_sys::rte_rcu_qsbr_init(raw.as_ptr(), Self::threads(readers)) };
        let free = Mutex::new((0..readers).rev().collect());
        Self { raw, readers, free, writers: Mutex::new(()) }
    }

    /// The number for DPDK, which refuses 0.
    fn threads(readers: u16) -> u32 {
        u32::from(readers.max(1))
    }

    fn memory(readers: u16) -> Layout {
        // SAFETY: computes a size.
        let size = unsafe { dpdk_sys::rte_rcu_qsbr_get_memsize(Self::threads(readers)) };
        // SAFETY: the alignment is the C compiler's, a power of 2; 65,535 counters are a few megabytes.
        unsafe { Layout::from_size_align_unchecked(size, layout::QSBR_ALIGN) }
    }

    /// Adds a reader, which is offline (`rte_rcu_qsbr_thread_register`).
    ///
    /// # Errors
    /// [`TooManyReaders`].
    pub fn register(&self) -> Result<Reader<'_>, TooManyReaders> {
        let thread = self.free().pop().ok_or(TooManyReaders(self.readers))?;
        // SAFETY: the variable was made for this thread, whose number nobody else has.
        unsafe { dpdk_sys::rte_rcu_qsbr_thread_register(self.raw.as_ptr(), thread.into()) };
        Ok(Reader::new(self, thread))
    }

    fn unregister(&self, thread: u16) {
        // SAFETY: the thread was registered, and what it has read is gone.
        unsafe {
            fast::qsbr::offline(self.raw.as_ptr(), thread.into());
            dpdk_sys::rte_rcu_qsbr_thread_unregister(self.raw.as_ptr(), thread.into());
        }
        self.free().push(thread);
    }

    fn free(&self) -> MutexGuard<'_, Vec<u16>> {
        locked(&self.free)
    }

    /// Asks readers to announce when they are quiescent (`rte_rcu_qsbr_start`). Call it after
    /// removing the objects that they must no longer find.
    pub fn start(&self) -> Token {
        let _alone = self.writing();
        // SAFETY: the variable lives.
        Token(unsafe { fast::qsbr::start(self.raw.as_ptr()) })
    }

    /// Returns true if every reader has been quiescent or offline since `token` was returned
    /// (`rte_rcu_qsbr_check`).
    #[must_use]
    pub fn check(&self, token: Token) -> bool {
        let threads = Self::threads(self.readers);
        // SAFETY: the variable lives and was made for so many threads.
        unsafe { fast::qsbr::check(self.raw.as_ptr(), threads, token.0) }
    }

    /// Waits until every reader has been quiescent or offline; waits for ever if one never is
    /// (`rte_rcu_qsbr_synchronize`). A thread that is itself a reader calls
    /// [`Online::synchronize`].
    pub fn synchronize(&self) {
        self.wait(self.start(), || {});
    }

    /// Waits; calls `meanwhile` again and again.
    fn wait(&self, token: Token, mut meanwhile: impl FnMut()) {
        const SPINS: u32 = 1000;
        let mut spins = 0;
        while !self.check(token) {
            meanwhile();
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                // A reader may be waiting for this CPU.
                std::thread::yield_now();
            }
        }
    }

    /// Keeps tokens from being given while C asks: its check is wrong when one is (see
    /// `fast::qsbr::check`).
    pub(crate) fn writing(&self) -> MutexGuard<'_, ()> {
        locked(&self.writers)
    }

    /// Calls `free` for a table that C has changed with this variable.
    ///
    /// Removed entries wait in a queue of the table for all readers that are online, whichever
    /// tables they read. If any were waiting, C would free the table but neither that queue nor its
    /// name.
    ///
    /// # Safety
    /// Nobody reads the table any more.
    pub(crate) unsafe fn freeing(&self, free: impl FnOnce()) {
        let _alone = self.writing();
        // SAFETY: the variable lives. C checks for this table alone meanwhile, because every caller
        // of that check holds the lock.
        unsafe {
            let believed = fast::qsbr::believe(self.as_ptr(), u64::MAX);
            free();
            fast::qsbr::believe(self.as_ptr(), believed);
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut rte_rcu_qsbr {
        self.raw.as_ptr()
    }
}

impl Drop for Qsbr {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; readers, tables and what they hold borrow it and are gone.
        unsafe { dealloc(self.raw.as_ptr().cast(), Self::memory(self.readers)) };
    }
}
