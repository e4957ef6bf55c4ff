// SPDX-License-Identifier: BSD-3-Clause
//! Queues between lcores, without locks (`librte_ring`).
//!
//! # Lifecycle
//! A [`Ring`] has room for a fixed number of items, whose size is a multiple of 4 bytes: packets,
//! boxes, numbers, small structs. It owns the items inside. When the ring is dropped, it drops them
//! and frees its name and memory. Packets that a port has received must leave the ring before that
//! port stops, as with a [`Burst`](crate::Burst).
//!
//! # Threads
//! Any number of threads enqueue and dequeue through `&Ring`. [`Ring::split`] makes a [`Producer`]
//! and a [`Consumer`], each for one thread, which need no atomic exchange; one of the two may be
//! for many threads. If a thread is interrupted in the middle of an operation, other threads at the
//! same end wait for it, as in C: they spin, and then yield their CPU.
//!
//! # Bulks and bursts
//! A *bulk* operation takes all items or none, a *burst* operation as many as possible. Both take
//! items from a [`Burst`](crate::Burst) or a `Vec`, or append to it ([`Items`]); arrays are
//! enqueued and dequeued as bulks.
//!
//! ```standalone_crate
//! use dpdk::Burst;
//! use dpdk::ring::{Ring, RingConfig};
//!
//! # fn run(eal: &dpdk::Eal, mut rx: dpdk::RxQueue<'_>, mut tx: dpdk::TxQueue<'_>) -> Result<(), dpdk::ring::RingError> {
//! let mut ring = Ring::new(eal, &RingConfig { capacity: 512, ..RingConfig::named("work") })?;
//! let (mut producer, mut consumer) = ring.split();
//! std::thread::scope(|threads| {
//!     threads.spawn(move || {
//!         let mut burst = Burst::<32>::new();
//!         for _ in 0..10_000 {
//!             rx.receive(&mut burst);
//!             producer.enqueue_burst(&mut burst);
//!             burst.clear(); // what found no room is freed
//!         }
//!     });
//!     threads.spawn(move || {
//!         let mut burst = Burst::<32>::new();
//!         for _ in 0..10_000 {
//!             consumer.dequeue_burst(&mut burst);
//!             tx.send(&mut burst);
//!             burst.clear();
//!         }
//!     });
//! });
//! # Ok(())
//! # }
//! # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256 --vdev net_null0".split(' '))?;
//! # let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig { count: 2047, ..dpdk::PoolConfig::named("packets") })?;
//! # let config = dpdk::PortConfig { rx: vec![dpdk::RxConfig::new(&pool)], tx: vec![Default::default()], ..Default::default() };
//! # let mut port = eal.take_port(eal.ports()[0])?.configure(&config)?.start()?;
//! # let mut queues = port.queues();
//! # run(&eal, queues.rx.remove(0), queues.tx.remove(0))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ends;
mod error;
mod items;

use std::cell::Cell;
use std::ffi::CString;
use std::marker::PhantomData;
use std::ptr::NonNull;

use dpdk_sys::{layout, rte_ring};

use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::names::{c_name, unique};
use crate::numa::socket_id;
use crate::port;

pub use ends::{Consumer, Consumers, Producer, Producers};
pub use error::{NoRoom, RingError, TooFew};
pub use items::Items;

/// Parameters of a ring.
#[derive(Clone, Debug)]
pub struct RingConfig {
    /// Unique in the process among rings; at most 28 bytes.
    pub name: String,
    /// The exact number of items that fit (`RING_F_EXACT_SZ`).
    pub capacity: u32,
    /// NUMA node; `None` for any.
    pub socket: Option<u32>,
}

impl RingConfig {
    /// For 1023 items, on any NUMA node.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), capacity: 1023, socket: None }
    }

    /// [`named`](Self::named), with a number behind the name: an old and a new ring live side by side.
    #[must_use]
    pub fn unique(name: impl Into<String>) -> Self {
        Self::named(unique(name))
    }

    fn check(&self, item: usize) -> Result<CString, RingError> {
        let most = layout::RING_NAME_SIZE - 1;
        let name = c_name(&self.name, most, |name, most| RingError::Name { name, most })?;
        if port::reserves_ring(&self.name) {
            return Err(RingError::Reserved(self.name.clone()));
        }
        let most = largest(item);
        if !(1..=most).contains(&self.capacity) {
            return Err(RingError::Capacity {
                name: self.name.clone(),
                given: self.capacity,
                most,
            });
        }
        Ok(name)
    }
}

/// The largest capacity, for items of this size in bytes: one less than a power of two. DPDK
/// computes the size of the slots in 32 bits, which overflow beyond it.
fn largest(item: usize) -> u32 {
    const MOST: usize = 1 << 30; // a power of two below RTE_RING_SZ_MASK
    let slots = ((1 << 31) / item).min(MOST);
    (1 << slots.ilog2()) - 1
}

/// A queue of a fixed size, first in, first out.
///
/// `'eal` is the lifetime of its memory. `T` is the type of the items; their own lifetimes stay the
/// same inside:
/// ```compile_fail
/// use dpdk::{Mbuf, ring::Ring};
///
/// fn extend<'long: 'short, 'short>(ring: Ring<'long, Mbuf<'short>>) -> Ring<'long, Mbuf<'long>> {
///     ring
/// }
/// ```
pub struct Ring<'eal, T> {
    raw: NonNull<rte_ring>,
    /// Items go in and come out through `&self`: no lifetime in `T` may become longer or shorter.
    items: PhantomData<Cell<T>>,
    eal: PhantomData<&'eal Eal>,
}

impl_debug!([T] Ring<'_, T>, ring => len: ring.len(), capacity: ring.capacity());

// SAFETY: a ring belongs to no thread; what is inside may go to any.
unsafe impl<T: Send> Send for Ring<'_, T> {}
// SAFETY: it is used by atomic accesses, and each item is one thread's at a time.
unsafe impl<T: Send> Sync for Ring<'_, T> {}

impl<'eal, T> Ring<'eal, T> {
    const FITS: () = {
        let (size, align) = (size_of::<T>(), align_of::<T>());
        assert!(size > 0 && size % 4 == 0, "a ring's items are a multiple of 4 bytes");
        assert!(
            size <= 1024 && align <= 64,
            "a ring's items are 1024 bytes at most: box larger ones"
        );
    };

    /// An empty ring (`rte_ring_create_elem`).
    ///
    /// # Errors
    /// See [`RingError`].
    pub fn new(_eal: &'eal Eal, config: &RingConfig) -> Result<Self, RingError> {
        let () = Self::FITS;
        let name = config.check(size_of::<T>())?;
        let socket = socket_id(config.socket)
            .map_err(|node| RingError::Node { name: config.name.clone(), node })?;
        // SAFETY: EAL runs (there is an Eal), the name is a C string, which DPDK copies; the size of the
        // slots was checked.
        let made = unsafe {
            let (size, capacity) = (size_of::<T>() as u32, config.capacity);
            dpdk_sys::rte_ring_create_elem(
                name.as_ptr(),
                size,
                capacity,
                socket,
                layout::RING_EXACT,
            )
        };
        match NonNull::new(made) {
            Some(raw) => Ok(Self { raw, items: PhantomData, eal: PhantomData }),
            None => Err(RingError::Refused { name: config.name.clone(), errno: Errno::last() }),
        }
    }

    /// Returns one end for a thread that enqueues and one for a thread that dequeues.
    pub fn split(&mut self) -> (Producer<'_, T>, Consumer<'_, T>) {
        (Producer::new(self.raw), Consumer::new(self.raw))
    }

    /// Returns one end for threads that enqueue, each with its clone, and one for a thread that
    /// dequeues.
    pub fn split_many_to_one(&mut self) -> (Producers<'_, T>, Consumer<'_, T>) {
        (Producers::new(self.raw), Consumer::new(self.raw))
    }

    /// Returns one end for a thread that enqueues, and one for threads that dequeue, each with its
    /// clone.
    pub fn split_one_to_many(&mut self) -> (Producer<'_, T>, Consumers<'_, T>) {
        (Producer::new(self.raw), Consumers::new(self.raw))
    }
}

impl<T> Drop for Ring<'_, T> {
    fn drop(&mut self) {
        /// Drops the remaining items when the drop of one has panicked. A second panic ends the
        /// process, as with a `Vec`.
        struct Rest<'r, 'eal, T>(&'r Ring<'eal, T>);

        impl<T> Drop for Rest<'_, '_, T> {
            fn drop(&mut self) {
                while let Some(item) = self.0.dequeue() {
                    drop(item);
                }
                // SAFETY: the ring is being dropped, and empty.
                unsafe { dpdk_sys::rte_ring_free(self.0.raw.as_ptr()) };
            }
        }

        let rest = Rest(self);
        while let Some(item) = rest.0.dequeue() {
            drop(item);
        }
    }
}
