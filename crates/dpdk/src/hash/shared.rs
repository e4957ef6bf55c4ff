// SPDX-License-Identifier: BSD-3-Clause
//! A table that one thread changes while others look up.
//!
//! It is created with `RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF`: DPDK then changes data that readers
//! look at by atomic stores, and readers look again if entries were moved meanwhile. The place of a
//! removed key must not get another key while a lookup compares it: DPDK waits until the readers of
//! the table's [`Qsbr`] have been quiescent (`rte_hash_rcu_qsbr_add`).

use std::mem::ManuallyDrop;

use dpdk_sys::rte_hash_rcu_config;

use super::lookup::{Lookups, MOST_WITH_MORE_TO_DO};
use super::{Full, Hash, HashConfig, HashError, Iter, Plain};
use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::qsbr::{Online, Qsbr, foreign};

/// A table that is changed while it is read.
///
/// Places of removed keys are used again only when readers have been quiescent, so give the table
/// more capacity than there are keys at a time. Its name has at most 19 bytes.
///
/// ```standalone_crate
/// use dpdk::hash::{HashConfig, HashError, SharedHash};
/// use dpdk::qsbr::Qsbr;
///
/// fn run<'q>(eal: &'q dpdk::Eal, qsbr: &'q Qsbr) -> Result<(), HashError> {
///     let mut shared = SharedHash::<u32, u32>::new(eal, &HashConfig::named("flows"), qsbr)?;
///     let (mut writer, table) = shared.split();
///     std::thread::scope(|threads| {
///         threads.spawn(move || {
///             let Ok(mut reader) = qsbr.register() else { return };
///             let mut online = reader.online();
///             for key in 0..100_000 {
///                 let _value = table.now(&online).get(&key);
///                 online.quiescent();
///             }
///         });
///         let _ = writer.insert(&7, 1);
///     });
///     Ok(())
/// }
/// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
/// # run(&eal, &dpdk::qsbr::Qsbr::new(1))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedHash<'q, K: Plain, V: Plain> {
    table: ManuallyDrop<Hash<'q, K, V>>,
    qsbr: &'q Qsbr,
}

impl_debug!([K: Plain, V: Plain] SharedHash<'_, K, V>, shared => table: *shared.table, qsbr: shared.qsbr);

/// The writer of a [`SharedHash`].
pub struct HashWriter<'s, 'q, K: Plain, V: Plain> {
    table: &'s mut Hash<'q, K, V>,
    qsbr: &'q Qsbr,
}

impl_debug!([K: Plain, V: Plain] HashWriter<'_, '_, K, V>, writer => table: writer.table, qsbr: writer.qsbr);

/// A reader of a [`SharedHash`]; each thread has its clone.
pub struct HashReader<'s, K: Plain, V: Plain> {
    /// Borrowed from the table.
    lookups: Lookups<K, V>,
    qsbr: &'s Qsbr,
}

impl_debug!([K: Plain, V: Plain] HashReader<'_, K, V>, reader => qsbr: reader.qsbr);

impl<'q, K: Plain, V: Plain> SharedHash<'q, K, V> {
    /// An empty table (`rte_hash_create`).
    ///
    /// # Errors
    /// See [`HashError`].
    pub fn new(eal: &'q Eal, config: &HashConfig, qsbr: &'q Qsbr) -> Result<Self, HashError> {
        let refused = |errno| HashError::Refused { name: config.name.clone(), errno };
        // The queue of removed places is named HASH_RCU_ and the table's name.
        config.check_name("HASH_RCU_")?;
        let flags = dpdk_sys::RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF;
        let table = Hash::with(eal, config, flags, MOST_WITH_MORE_TO_DO)?;
        let mut rcu = rte_hash_rcu_config {
            v: qsbr.as_ptr(),
            mode: dpdk_sys::RTE_HASH_QSBR_MODE_DQ,
            dq_size: 0,               // room for all keys
            trigger_reclaim_limit: 0, // with each that is removed, those that can be are taken back
            max_reclaim_size: 0,      // DPDK's choice
            key_data_ptr: std::ptr::null_mut(),
            free_key_data_func: None,
        };
        // SAFETY: the table is ours, and the variable outlives it.
        if unsafe { dpdk_sys::rte_hash_rcu_qsbr_add(table.as_ptr(), &raw mut rcu) } != 0 {
            return Err(refused(Errno::last()));
        }
        Ok(Self { table: ManuallyDrop::new(table), qsbr })
    }

    /// Returns the writer, and a reader to clone.
    pub fn split(&mut self) -> (HashWriter<'_, 'q, K, V>, HashReader<'_, K, V>) {
        let reader = HashReader { lookups: self.table.another(), qsbr: self.qsbr };
        (HashWriter { table: &mut self.table, qsbr: self.qsbr }, reader)
    }
}

impl<K: Plain, V: Plain> Drop for SharedHash<'_, K, V> {
    fn drop(&mut self) {
        // SAFETY: nobody reads it any more, nor uses it afterwards; writer and readers borrowed it.
        unsafe { self.qsbr.freeing(|| ManuallyDrop::drop(&mut self.table)) };
    }
}

impl<K: Plain, V: Plain> HashWriter<'_, '_, K, V> {
    /// [`Hash::insert`], while others look up. They find the value before or after the change.
    ///
    /// # Errors
    /// [`Full`], also when readers have not been quiescent since keys were removed.
    pub fn insert(&mut self, key: &K, value: V) -> Result<Option<V>, Full> {
        let _alone = self.qsbr.writing();
        self.table.insert(key, value)
    }

    /// [`Hash::remove`], while others look up.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let _alone = self.qsbr.writing();
        self.table.remove(key)
    }

    /// [`Lookups::get`].
    #[must_use]
    pub fn get(&self, key: &K) -> Option<V> {
        self.table.get(key)
    }

    /// Places in use (`rte_hash_count`), at most the capacity: those of keys, and those of removed
    /// keys that wait for readers. Use [`iter`](Self::iter) to count keys alone.
    #[must_use]
    pub fn used(&self) -> usize {
        self.table.len()
    }

    /// [`Hash::iter`]: for reports, say, or to find flows that have ended.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.table.iter()
    }

    /// [`Hash::retain`], while others look up.
    pub fn retain(&mut self, keep: impl FnMut(&K, V) -> bool) {
        // The program's own code runs without the lock.
        for key in self.table.keys_without(keep) {
            self.remove(&key);
        }
    }
}

impl<K: Plain, V: Plain> HashReader<'_, K, V> {
    /// Returns the lookups, which can be used until the reader is next quiescent.
    ///
    /// # Panics
    /// If `online` is a reader of another [`Qsbr`] than the table's.
    #[inline]
    #[must_use]
    pub fn now<'a>(&'a self, online: &'a Online<'_>) -> &'a Lookups<K, V> {
        if !online.is_of(self.qsbr) {
            foreign();
        }
        // The table lives while it is borrowed. Its writer reuses places only after this reader has
        // been quiescent, which it is not while the result lives.
        &self.lookups
    }
}

impl<K: Plain, V: Plain> Clone for HashReader<'_, K, V> {
    fn clone(&self) -> Self {
        Self { lookups: self.lookups.another(), qsbr: self.qsbr }
    }
}
