// SPDX-License-Identifier: BSD-3-Clause
//! A table of IPv4 routes that one thread changes while others look up.
//!
//! DPDK writes each entry in one piece, so a lookup finds the route before or after a change. When
//! no route needs a group of entries any more, it must not be used for another prefix while a
//! lookup is still reading it: DPDK waits until the readers of the table's [`Qsbr`] have been
//! quiescent.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::net::Ipv4Addr;
use std::ptr::NonNull;

use dpdk_sys::{rte_lpm, rte_lpm_rcu_config};

use super::{Lookups, Lpm, LpmError, RouteError};
use crate::debug::impl_debug;
use crate::errno::Errno;
use crate::qsbr::{Online, Qsbr, foreign};

/// A table that is changed while it is read. Made by [`Lpm::share`].
///
/// ```standalone_crate
/// use std::net::Ipv4Addr;
/// use dpdk::lpm::{Lpm, LpmError};
/// use dpdk::qsbr::Qsbr;
///
/// fn run<'q>(routes: Lpm<'q>, qsbr: &'q Qsbr) -> Result<(), LpmError> {
///     let mut shared = routes.share(qsbr)?;
///     let (mut writer, routes) = shared.split();
///     std::thread::scope(|threads| {
///         threads.spawn(move || {
///             let Ok(mut reader) = qsbr.register() else { return };
///             let mut online = reader.online();
///             for address in 0..100_000 {
///                 let _next_hop = routes.now(&online).lookup(address);
///                 online.quiescent();
///             }
///         });
///         let _ = writer.add(Ipv4Addr::new(10, 0, 0, 0), 8, 1);
///     });
///     Ok(())
/// }
/// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
/// # let qsbr = Qsbr::new(1);
/// # let routes = Lpm::new(&eal, &dpdk::lpm::LpmConfig::named("routes"))?;
/// # run(routes, &qsbr)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedLpm<'q> {
    lpm: ManuallyDrop<Lpm<'q>>,
    qsbr: &'q Qsbr,
}

impl_debug!([] SharedLpm<'_>, shared => table: *shared.lpm, qsbr: shared.qsbr);

/// The writer of a [`SharedLpm`].
pub struct LpmWriter<'s, 'q> {
    lpm: &'s mut Lpm<'q>,
    qsbr: &'q Qsbr,
}

impl_debug!([] LpmWriter<'_, '_>, writer => table: writer.lpm, qsbr: writer.qsbr);

/// A reader of a [`SharedLpm`]. Cheap to copy, to every thread that reads.
#[derive(Clone, Copy)]
pub struct LpmReader<'s> {
    raw: NonNull<rte_lpm>,
    qsbr: &'s Qsbr,
    table: PhantomData<&'s rte_lpm>,
}

impl_debug!([] LpmReader<'_>, reader => qsbr: reader.qsbr);

// SAFETY: it only reads data that the writer writes atomically.
unsafe impl Send for LpmReader<'_> {}
// SAFETY: as above.
unsafe impl Sync for LpmReader<'_> {}

impl<'eal> Lpm<'eal> {
    /// Lets one thread change routes while readers of `qsbr` look up (`rte_lpm_rcu_qsbr_add`).
    /// Groups that routes have released wait for those readers: set a limit somewhat larger than
    /// the number needed at a time.
    ///
    /// # Errors
    /// See [`LpmError`]; the table is then dropped. `EEXIST` also if the first 20 bytes of the name
    /// are those of another shared table: DPDK uses no more of it to name the queue of waiting
    /// groups.
    pub fn share<'q>(self, qsbr: &'q Qsbr) -> Result<SharedLpm<'q>, LpmError>
    where
        'eal: 'q,
    {
        let mut config = rte_lpm_rcu_config {
            v: qsbr.as_ptr(),
            mode: dpdk_sys::RTE_LPM_QSBR_MODE_DQ,
            dq_size: 0,     // room for all groups
            reclaim_thd: 0, // with each that is given up, those that can be are taken back
            reclaim_max: 0, // DPDK's choice
        };
        // SAFETY: the table is ours, and the variable outlives it.
        if unsafe { dpdk_sys::rte_lpm_rcu_qsbr_add(self.as_ptr(), &raw mut config) } != 0 {
            let name = self.name().to_owned();
            return Err(LpmError::Refused { name, errno: Errno::last() });
        }
        Ok(SharedLpm { lpm: ManuallyDrop::new(self), qsbr })
    }
}

impl<'q> SharedLpm<'q> {
    /// Returns the writer, and a reader to copy.
    pub fn split(&mut self) -> (LpmWriter<'_, 'q>, LpmReader<'_>) {
        let (raw, qsbr) = (self.lpm.raw(), self.qsbr);
        (LpmWriter { lpm: &mut self.lpm, qsbr }, LpmReader { raw, qsbr, table: PhantomData })
    }
}

impl Drop for SharedLpm<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody reads it any more, nor uses it afterwards; writer and readers borrowed it.
        unsafe { self.qsbr.freeing(|| ManuallyDrop::drop(&mut self.lpm)) };
    }
}

impl LpmWriter<'_, '_> {
    /// [`Lpm::add`], while others look up. They find the route before or after the change.
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn add(&mut self, prefix: Ipv4Addr, len: u8, next_hop: u32) -> Result<(), RouteError> {
        let _alone = self.qsbr.writing();
        self.lpm.add(prefix, len, next_hop)
    }

    /// [`Lpm::remove`], while others look up.
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn remove(&mut self, prefix: Ipv4Addr, len: u8) -> Result<(), RouteError> {
        let _alone = self.qsbr.writing();
        self.lpm.remove(prefix, len)
    }

    /// [`Lpm::route`].
    #[must_use]
    pub fn route(&self, prefix: Ipv4Addr, len: u8) -> Option<u32> {
        self.lpm.route(prefix, len)
    }
}

impl LpmReader<'_> {
    /// Returns the lookups, which can be used until the reader is next quiescent.
    ///
    /// # Panics
    /// If `online` is a reader of another [`Qsbr`] than the table's.
    #[inline]
    #[must_use]
    pub fn now<'a>(&'a self, online: &'a Online<'_>) -> Lookups<'a> {
        if !online.is_of(self.qsbr) {
            foreign();
        }
        // SAFETY: the table lives while it is borrowed. Its writer reuses groups only after this
        // reader has been quiescent, which it is not while the result lives.
        unsafe { Lookups::new(self.raw) }
    }
}
