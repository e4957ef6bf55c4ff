// SPDX-License-Identifier: BSD-3-Clause
//! Tables from keys to values: flows, sessions, neighbours (`librte_hash`, cuckoo hashing).
//!
//! # Lifecycle
//! A [`struct@Hash`] has room for a fixed number of keys. Keys and values are [`Plain`] data. A
//! value has at most 8 bytes: the value itself, or an index into data of the program. The table's
//! memory and name are freed when it is dropped.
//!
//! # Threads
//! Any number of threads look up through `&Hash` at once; changes need `&mut Hash`. The table is
//! created without any of `RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY`, `_RW_CONCURRENCY_LF`,
//! `_MULTI_WRITER_ADD` and `_TRANS_MEM_SUPPORT`: lookups then take no lock and write nothing, and
//! the borrow checker ensures that nobody changes the table meanwhile. (With `_RW_CONCURRENCY` each
//! lookup would take a lock that all readers write to.) [`Replaceable`](crate::qsbr::Replaceable)
//! exchanges a whole table while it is read; a [`SharedHash`] can be changed in place while it is
//! read.
//!
//! # Bulk lookups
//! [`Lookups::lookup_bulk`] prefetches the buckets of 64 keys (32 in extendable and shared tables)
//! before it looks into any. In a table larger than the cache this is several times faster than
//! single lookups.
//!
//! ```standalone_crate
//! use dpdk::hash::{Hash, HashConfig};
//!
//! # fn run(eal: &dpdk::Eal) -> Result<(), Box<dyn std::error::Error>> {
//! // From addresses and ports to the number of a session.
//! let config = HashConfig { capacity: 100_000, ..HashConfig::named("sessions") };
//! let mut sessions = Hash::<[u32; 3], u32>::new(eal, &config)?;
//! sessions.insert(&[0x0a00_0001, 0x0a00_0002, 80 << 16 | 1024], 7)?;
//! let mut numbers = [0; 2];
//! let hits = sessions.lookup_bulk(
//!     &[[0x0a00_0001, 0x0a00_0002, 80 << 16 | 1024], [0; 3]],
//!     &mut numbers,
//!     u32::MAX,
//! )?;
//! assert_eq!((hits, numbers), (1, [7, u32::MAX]));
//! # Ok(())
//! # }
//! # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
//! # run(&eal)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod iter;
mod lookup;
mod plain;
mod shared;

use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use dpdk_sys::{layout, rte_hash, rte_hash_parameters};

use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::names::{c_name, unique};
use crate::numa::socket_id;
use crate::port;
use lookup::marked;
use plain::{pack, unpack};

pub use error::{Full, HashError, LookupError};
pub use iter::Iter;
pub use lookup::Lookups;
pub use plain::Plain;
pub use shared::{HashReader, HashWriter, SharedHash};

/// The hash function of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashFunction {
    /// `rte_hash_crc`: CRC-32C, by the processor's instruction where it has one (SSE4.2, ARMv8).
    /// DPDK's own default on such processors.
    #[default]
    Crc,
    /// `rte_jhash`: Jenkins' hash; for keys whose size is a multiple of 4 bytes.
    Jhash,
}

/// Parameters of a table.
#[derive(Clone, Debug)]
pub struct HashConfig {
    /// Unique in the process among hash tables; at most 21 bytes, because DPDK's names for a table's parts
    /// begin with it.
    pub name: String,
    /// The number of keys that it has room for: 8 to 2^30.
    pub capacity: u32,
    /// Its hash function.
    pub function: HashFunction,
    /// The initial value of the hash function: keys that collide with one seed need not collide
    /// with another.
    pub seed: u32,
    /// Adds further buckets to full ones, so that every table holds as many keys as its capacity
    /// (`RTE_HASH_EXTRA_FLAGS_EXT_TABLE`). Without this, an insertion may fail before that.
    pub extendable: bool,
    /// NUMA node; `None` for any.
    pub socket: Option<u32>,
}

impl HashConfig {
    /// For 1024 keys, extendable, by CRC, on any NUMA node.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            capacity: 1024,
            function: HashFunction::Crc,
            seed: 0,
            extendable: true,
            socket: None,
        }
    }

    /// [`named`](Self::named), with a number behind the name: an old and a new table live side by side.
    #[must_use]
    pub fn unique(name: impl Into<String>) -> Self {
        Self::named(unique(name))
    }

    /// The name for C, if there is room for it behind `prefix` in the name of a ring.
    fn check_name(&self, prefix: &str) -> Result<CString, HashError> {
        let most = layout::RING_NAME_SIZE - 1 - prefix.len();
        if port::reserves_hash_table(&self.name) {
            return Err(HashError::Reserved(self.name.clone()));
        }
        c_name(&self.name, most, |name, most| HashError::Name { name, most })
    }

    fn check(&self, key: usize) -> Result<CString, HashError> {
        let name = self.check_name("HT_EXT_")?;
        let (least, most) = (8, largest(key)); // 8: RTE_HASH_BUCKET_ENTRIES
        if !(least..=most).contains(&self.capacity) {
            return Err(HashError::Capacity {
                name: self.name.clone(),
                given: self.capacity,
                most,
            });
        }
        if self.function == HashFunction::Jhash && key % 4 != 0 {
            return Err(HashError::KeyLength { name: self.name.clone(), given: key });
        }
        Ok(name)
    }

    /// Makes the table, with flags beside those of the configuration.
    fn create(&self, key: usize, flags: u32) -> Result<NonNull<rte_hash>, HashError> {
        let name = self.check(key)?;
        let socket = socket_id(self.socket)
            .map_err(|node| HashError::Node { name: self.name.clone(), node })?;
        let extended = if self.extendable { dpdk_sys::RTE_HASH_EXTRA_FLAGS_EXT_TABLE } else { 0 };
        let parameters = rte_hash_parameters {
            name: name.as_ptr(),
            entries: self.capacity,
            reserved: 0,
            key_len: key as u32,
            hash_func: match self.function {
                // SAFETY: returns one of its own functions.
                HashFunction::Crc => unsafe { dpdk_sys::lr_hash_crc(key as u32) },
                HashFunction::Jhash => Some(dpdk_sys::lr_jhash),
            },
            hash_func_init_val: self.seed,
            socket_id: socket,
            extra_flag: (extended | flags) as u8,
        };
        // SAFETY: EAL runs (the caller has an Eal); DPDK copies the parameters, including the name.
        let made = unsafe { dpdk_sys::rte_hash_create(&raw const parameters) };
        NonNull::new(made)
            .ok_or_else(|| HashError::Refused { name: self.name.clone(), errno: Errno::last() })
    }
}

/// The largest capacity, for keys of this size in bytes. DPDK multiplies a key's number with the
/// size of its entry in 32 bits: beyond that, two keys would share one place.
fn largest(key: usize) -> u32 {
    const MOST: u64 = 1 << 30; // RTE_HASH_ENTRIES_MAX
    let entry = (size_of::<*mut c_void>() + key).next_multiple_of(16) as u64; // KEY_ALIGNMENT
    // One entry is DPDK's own.
    ((1 << 32) / entry - 1).min(MOST) as u32
}

/// A table from keys to values.
pub struct Hash<'eal, K, V> {
    lookups: Lookups<K, V>,
    capacity: u32,
    eal: PhantomData<&'eal Eal>,
}

impl_debug!([K: Plain, V: Plain] Hash<'_, K, V>, hash => len: hash.len(), capacity: hash.capacity);

impl<K, V> Deref for Hash<'_, K, V> {
    type Target = Lookups<K, V>;

    #[inline]
    fn deref(&self) -> &Lookups<K, V> {
        &self.lookups
    }
}

impl<'eal, K: Plain, V: Plain> Hash<'eal, K, V> {
    const FITS: () = {
        assert!(size_of::<K>() > 0 && size_of::<K>() <= 4096, "a key has 1 to 4096 bytes");
        assert!(
            size_of::<V>() <= size_of::<*mut c_void>(),
            "a value has at most 8 bytes: store an index instead"
        );
    };

    /// An empty table (`rte_hash_create`).
    ///
    /// # Errors
    /// See [`HashError`].
    pub fn new(eal: &'eal Eal, config: &HashConfig) -> Result<Self, HashError> {
        let at_once = if config.extendable { lookup::MOST_WITH_MORE_TO_DO } else { lookup::MOST };
        Self::with(eal, config, 0, at_once)
    }

    /// With flags beside those of the configuration.
    fn with(
        _eal: &'eal Eal,
        config: &HashConfig,
        flags: u32,
        at_once: usize,
    ) -> Result<Self, HashError> {
        let () = Self::FITS;
        let raw = config.create(size_of::<K>(), flags)?;
        Ok(Self {
            lookups: Lookups::new(raw, at_once),
            capacity: config.capacity,
            eal: PhantomData,
        })
    }

    /// Sets a key's value; returns its previous value (`rte_hash_add_key_data`).
    ///
    /// # Errors
    /// [`Full`].
    pub fn insert(&mut self, key: &K, value: V) -> Result<Option<V>, Full> {
        self.insert_hashed(key, self.hash_of(key), value)
    }

    /// [`insert`](Self::insert), with the key's hash as [`hash_of`](Lookups::hash_of) gives it
    /// (`rte_hash_add_key_with_hash_data`). With another hash it is found by that hash only.
    ///
    /// # Errors
    /// [`Full`].
    pub fn insert_hashed(&mut self, key: &K, hash: u32, value: V) -> Result<Option<V>, Full> {
        let old = self.get_hashed(key, hash);
        // SAFETY: the table is ours, exclusively or as its one writer; a key's bytes are read.
        let code = unsafe {
            let key = std::ptr::from_ref(key).cast();
            dpdk_sys::rte_hash_add_key_with_hash_data(self.as_ptr(), key, marked(hash), pack(value))
        };
        if code < 0 { Err(Full) } else { Ok(old) }
    }

    /// Removes a key; returns its value (`rte_hash_del_key`).
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.remove_hashed(key, self.hash_of(key))
    }

    /// [`remove`](Self::remove), with the key's hash (`rte_hash_del_key_with_hash`).
    pub fn remove_hashed(&mut self, key: &K, hash: u32) -> Option<V> {
        let old = self.get_hashed(key, hash)?;
        // SAFETY: as in `insert_hashed`.
        unsafe {
            let key = std::ptr::from_ref(key).cast();
            dpdk_sys::rte_hash_del_key_with_hash(self.as_ptr(), key, marked(hash));
        }
        Some(old)
    }

    /// Removes all keys (`rte_hash_reset`).
    pub fn clear(&mut self) {
        // SAFETY: the table is ours, exclusively.
        unsafe { dpdk_sys::rte_hash_reset(self.as_ptr()) };
    }

    /// The number of keys in the table (`rte_hash_count`).
    #[must_use]
    pub fn len(&self) -> usize {
        // SAFETY: the table lives; not negative for one that does.
        unsafe { dpdk_sys::rte_hash_count(self.as_ptr()) as usize }
    }

    /// Returns true if it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys that the table has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Removes the keys for which `keep` returns false.
    pub fn retain(&mut self, keep: impl FnMut(&K, V) -> bool) {
        for key in self.keys_without(keep) {
            self.remove(&key);
        }
    }

    /// Returns the keys for which `keep` returns false. DPDK moves entries when one is removed, so
    /// a walk that removes would miss some: all are found first.
    fn keys_without(&self, mut keep: impl FnMut(&K, V) -> bool) -> Vec<K> {
        self.iter().filter(|(key, value)| !keep(key, *value)).map(|(key, _)| key).collect()
    }

    /// Keys and values, in no order (`rte_hash_iterate`).
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(self)
    }
}

impl<K, V> Drop for Hash<'_, K, V> {
    fn drop(&mut self) {
        // SAFETY: the table is ours, and nobody looks up any more.
        unsafe { dpdk_sys::rte_hash_free(self.lookups.as_ptr()) };
    }
}
