// SPDX-License-Identifier: BSD-3-Clause
//! Pools of packet buffers.
//!
//! A pool lives until the [`Eal`] ends. That is deliberate: buffers move into drivers, rings and
//! other lcores' caches, and it would be costly to find out when the last one is back. Because the
//! pool lives as long as the `Eal`, an mbuf cannot outlive its pool.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr::NonNull;

use dpdk_sys::{layout, rte_mempool};

use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::names::{c_name, unique};
use crate::numa::{UnknownNode, socket_id};

/// The smallest buffer that [`Mempool::packet_pool`] makes.
/// [`Mbuf::header_mut`](crate::Mbuf::header_mut) relies on it: a header of up to 64 bytes lies
/// inside every received buffer.
const LEAST_ROOM: u16 = layout::PKTMBUF_HEADROOM + LEAST_DATA;
/// Bytes that every mbuf has after its headroom.
pub(crate) const LEAST_DATA: u16 = 64;

/// Why a pool was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MempoolError {
    /// The machine has no such NUMA node.
    #[error("mempool {name:?}: {node}")]
    Node {
        /// Its name.
        name: String,
        /// The reason.
        node: UnknownNode,
    },
    /// The name holds a NUL byte, is empty, or is too long.
    #[error("mempool {name:?}: a name has 1 to {most} bytes and no NUL byte")]
    Name {
        /// The name.
        name: String,
        /// The most bytes.
        most: usize,
    },
    /// The buffers are too small for headroom and the smallest frame.
    #[error(
        "mempool {name:?} with mbufs of {data_room} bytes: at least {LEAST_ROOM} are needed (headroom and 64)"
    )]
    Room {
        /// The pool's name.
        name: String,
        /// Bytes per mbuf asked for.
        data_room: u16,
    },
    /// EAL was configured for pools that only one thread may use.
    #[error(
        "the mempool backend {0:?} is for one thread only: leave --mbuf-pool-ops-name out, or use ring_mp_mc"
    )]
    OneThread(String),
    /// DPDK refused: `EEXIST` for a name in use, `ENOMEM` for too little memory, `EINVAL` for an
    /// invalid cache size.
    #[error(
        "mempool {name:?} with {count} mbufs of {data_room} bytes: {errno}; choose another name, or give EAL more \
         memory (-m, --socket-mem): each mbuf takes about 200 bytes more; a cache is 512 at most, and of two thirds of \
         the mbufs"
    )]
    Refused {
        /// The pool's name.
        name: String,
        /// Mbufs asked for.
        count: u32,
        /// Bytes per mbuf, headroom included.
        data_room: u16,
        /// The reason.
        errno: Errno,
    },
}

/// The pool had fewer free mbufs than requested; none was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the mempool has too few free mbufs")]
pub struct Exhausted;

/// Parameters of a pool.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Unique in the process, at most 25 bytes.
    pub name: String,
    /// Number of mbufs; 2^n - 1 uses memory best. The sum of these is enough: the rings of all
    /// queues (`descriptors` of each [`RxConfig`](crate::RxConfig) and
    /// [`TxConfig`](crate::TxConfig)), `cache` for each lcore, and the packets that the program
    /// holds. When a pool runs out, its ports receive nothing.
    pub count: u32,
    /// Mbufs in each lcore's own cache, at most 512 and two thirds of `count`; 0 for none.
    pub cache: u32,
    /// Bytes of each mbuf's buffer, the headroom of 128 included; 192 or more.
    pub data_room: u16,
    /// NUMA node; `None` for any.
    pub socket: Option<u32>,
}

impl PoolConfig {
    /// 8191 mbufs of 2176 bytes, a cache of 256, on any NUMA node.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), count: 8191, cache: 256, data_room: 2176, socket: None }
    }

    /// [`named`](Self::named), with a number behind the name: an old and a new pool live side by side.
    #[must_use]
    pub fn unique(name: impl Into<String>) -> Self {
        Self::named(unique(name))
    }
}

/// A pool of packet buffers. Cheap to copy: it refers to a pool that lives as long as the [`Eal`].
///
/// ```standalone_crate
/// use dpdk::{Burst, Mempool, PoolConfig};
/// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
///
/// let config = PoolConfig { count: 2047, ..PoolConfig::named("packets") };
/// let pool = Mempool::packet_pool(&eal, &config)?;
/// let mut burst = Burst::<32>::new();
/// pool.fill(&mut burst, 20)?; // all of them, or none
/// for mbuf in burst.iter_mut() {
///     mbuf.append(60).ok_or("a packet of 60 bytes fits")?.fill(0);
/// }
/// assert_eq!((burst.len(), pool.in_use()), (20, 20));
/// drop(burst);
/// assert!(pool.is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Mempool<'eal> {
    raw: NonNull<rte_mempool>,
    eal: PhantomData<&'eal Eal>,
}

impl_debug!([] Mempool<'_>, pool => name: pool.name(), capacity: pool.capacity());

// SAFETY: the backend ring is multi-producer and multi-consumer, and each lcore uses its own cache
// (threads that are no lcore use none), so a pool may be used from any number of threads.
unsafe impl Send for Mempool<'_> {}
// SAFETY: as above.
unsafe impl Sync for Mempool<'_> {}

/// Returns true if DPDK would keep each mbuf inside one small page although it need not: if devices
/// use virtual addresses, memory that is contiguous for the CPU is contiguous for them.
fn pages_are_small(eal: &Eal) -> bool {
    // SAFETY: reads EAL's configuration.
    !eal.has_hugepages() && unsafe { dpdk_sys::rte_eal_iova_mode() } == dpdk_sys::RTE_IOVA_VA
}

/// Returns true if the backend is a ring for one producer or consumer, which its name shows
/// (`ring_sp_sc`). EAL's `--mbuf-pool-ops-name` may request one, but a pool here is for every
/// thread.
fn is_for_one_thread(ops: &CStr) -> bool {
    ops.to_str().is_ok_and(|name| name.split('_').any(|word| word == "sp" || word == "sc"))
}

/// `rte_pktmbuf_pool_create` without its alignment to pages. An mbuf of the usual size takes more
/// than half a page of 4 KiB, so each would be on a page of its own. Their first cache lines would
/// then share one set of the first-level cache, which holds eight, and a burst of 32 would always
/// miss.
///
/// # Safety
/// EAL runs.
unsafe fn create_dense(
    name: &CStr,
    config: &PoolConfig,
    socket: i32,
) -> Result<NonNull<rte_mempool>, Errno> {
    // SAFETY: zeros are valid for a struct of integers.
    let mut private: dpdk_sys::rte_pktmbuf_pool_private =
        unsafe { std::mem::MaybeUninit::zeroed().assume_init() };
    private.mbuf_data_room_size = config.data_room;
    // SAFETY: DPDK copies the name and the private data; the pool is ours alone until it is returned,
    // and its functions are called in the order in which rte_pktmbuf_pool_create calls them.
    unsafe {
        let pool = dpdk_sys::rte_mempool_create_empty(
            name.as_ptr(),
            config.count,
            layout::MBUF_SIZE as u32 + u32::from(config.data_room),
            config.cache,
            size_of_val(&private) as u32,
            socket,
            layout::MEMPOOL_NO_IOVA_CONTIG,
        );
        let made = NonNull::new(pool).ok_or_else(Errno::last)?;
        let ops = dpdk_sys::rte_mbuf_best_mempool_ops();
        let mut code = dpdk_sys::rte_mempool_set_ops_byname(pool, ops, std::ptr::null_mut());
        if code == 0 {
            dpdk_sys::rte_pktmbuf_pool_init(pool, (&raw mut private).cast());
            code = dpdk_sys::lr_mempool_populate_dense(pool);
        }
        if code < 0 {
            dpdk_sys::rte_mempool_free(pool);
            return Err(Errno(-code));
        }
        dpdk_sys::rte_mempool_obj_iter(
            pool,
            Some(dpdk_sys::rte_pktmbuf_init),
            std::ptr::null_mut(),
        );
        Ok(made)
    }
}

impl<'eal> Mempool<'eal> {
    /// Makes a pool of mbufs like `rte_pktmbuf_pool_create`, but packed side by side if that
    /// function would begin each mbuf on a page of its own (no huge pages).
    ///
    /// # Errors
    /// See [`MempoolError`].
    pub fn packet_pool(eal: &'eal Eal, config: &PoolConfig) -> Result<Self, MempoolError> {
        // DPDK lists the pool as MP_ and its name, in the list of rings too.
        const NAME: usize = layout::RING_NAME_SIZE - 1 - "MP_".len();
        let name = c_name(&config.name, NAME, |name, most| MempoolError::Name { name, most })?;
        if config.data_room < LEAST_ROOM {
            return Err(MempoolError::Room {
                name: config.name.clone(),
                data_room: config.data_room,
            });
        }
        // SAFETY: the name of the backend is a C string that lives as long as EAL.
        let ops = unsafe { CStr::from_ptr(dpdk_sys::rte_mbuf_best_mempool_ops()) };
        if is_for_one_thread(ops) {
            return Err(MempoolError::OneThread(ops.to_string_lossy().into_owned()));
        }
        let socket = socket_id(config.socket)
            .map_err(|node| MempoolError::Node { name: config.name.clone(), node })?;
        // SAFETY: EAL runs (there is an Eal) and `name` is a C string.
        let made = unsafe {
            if pages_are_small(eal) {
                create_dense(&name, config, socket)
            } else {
                let pool = dpdk_sys::rte_pktmbuf_pool_create(
                    name.as_ptr(),
                    config.count,
                    config.cache,
                    0,
                    config.data_room,
                    socket,
                );
                NonNull::new(pool).ok_or_else(Errno::last)
            }
        };
        match made {
            Ok(raw) => Ok(Self { raw, eal: PhantomData }),
            Err(errno) => Err(MempoolError::Refused {
                name: config.name.clone(),
                count: config.count,
                data_room: config.data_room,
                errno,
            }),
        }
    }

    /// The pool's name.
    #[must_use]
    pub fn name(&self) -> String {
        // SAFETY: the pool lives, and its name begins it (`layout.c` gives the offset) and ends with a NUL.
        unsafe { CStr::from_ptr(self.raw.as_ptr().cast::<c_char>().add(layout::MEMPOOL_NAME)) }
            .to_string_lossy()
            .into_owned()
    }

    /// Bytes of each mbuf's buffer, the head room included (`rte_pktmbuf_data_room_size`).
    #[must_use]
    pub fn data_room(&self) -> u16 {
        // SAFETY: the pool lives and is one of mbufs.
        unsafe { dpdk_sys::lr_pktmbuf_data_room_size(self.raw.as_ptr()) }
    }

    /// Mbufs in each lcore's own cache.
    #[must_use]
    pub fn cache(&self) -> u32 {
        // SAFETY: the pool lives; the field never changes.
        unsafe {
            self.raw.as_ptr().cast::<u8>().add(layout::MEMPOOL_CACHE_SIZE).cast::<u32>().read()
        }
    }

    /// The number of mbufs that are free now, including the lcores' caches
    /// (`rte_mempool_avail_count`). Slow, and only exact while nothing else uses the pool.
    #[must_use]
    pub fn available(&self) -> usize {
        // SAFETY: the pool lives.
        unsafe { dpdk_sys::rte_mempool_avail_count(self.raw.as_ptr()) as usize }
    }

    /// The number of mbufs that are in use (`rte_mempool_in_use_count`): in variables, bursts,
    /// rings, and held by devices. As exact as [`available`](Self::available).
    #[must_use]
    pub fn in_use(&self) -> usize {
        // SAFETY: the pool lives.
        unsafe { dpdk_sys::rte_mempool_in_use_count(self.raw.as_ptr()) as usize }
    }

    /// The number of mbufs that the pool was made with.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.available() + self.in_use()
    }

    /// Returns true if every mbuf is back (`rte_mempool_full`): none was lost. As exact as
    /// [`available`](Self::available).
    ///
    /// Devices hold mbufs as well: those that they receive into, and those that they were given to
    /// send. Each driver returns them at its own time. In DPDK 22.11, net_tap does so when
    /// [`Eal::detach`] closes its port and not when the port stops. net_ring never returns packets
    /// that were sent into it and not received again. net_null keeps none.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.in_use() == 0
    }

    pub(crate) fn as_ptr(&self) -> *mut rte_mempool {
        self.raw.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_for_one_thread_are_known_by_name() {
        for name in [c"ring_sp_sc", c"ring_mp_sc", c"ring_sp_mc"] {
            assert!(is_for_one_thread(name));
        }
        for name in
            [c"ring_mp_mc", c"ring_mt_rts", c"ring_mt_hts", c"stack", c"lf_stack", c"bucket"]
        {
            assert!(!is_for_one_thread(name));
        }
    }
}
