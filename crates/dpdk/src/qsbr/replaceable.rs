// SPDX-License-Identifier: BSD-3-Clause
//! A value that is exchanged as a whole while it is read.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::reader::{Online, foreign};
use super::snapshot::Snapshot;
use super::{Qsbr, Token};
use crate::debug::impl_debug;

/// A table (an [`Acl`](crate::acl::Acl), routes, any `T`) that readers of one [`Qsbr`] read and any thread
/// exchanges.
///
/// A struct with a reference to one needs two lifetimes, `&'w Replaceable<'q, T>`. With
/// `&'q Replaceable<'q, T>` its content would have to live as long as the reference, and the compiler
/// reports that tables do not live long enough (E0597).
///
/// ```standalone_crate
/// use dpdk::Burst;
/// use dpdk::acl::{Acl, Built};
/// use dpdk::qsbr::{Online, Replaceable};
///
/// type Rules<'t> = Replaceable<'t, Acl<'t, Built, 5>>;
///
/// /// A turn of an lcore.
/// fn turn(rules: &Rules<'_>, online: &mut Online<'_>, burst: &Burst<'_, 32>) {
///     let mut verdicts = [[None; 1]; 32];
///     rules.read(online).classify_burst(burst, 14, &mut verdicts);
///     online.quiescent();
/// }
///
/// /// On a thread of the control plane. (A telemetry handler cannot borrow the rules: it tells that thread.)
/// fn reload<'t>(rules: &Rules<'t>, new: Acl<'t, Built, 5>) {
///     let old = rules.replace(new); // Packets meet the new rules from now on.
///     drop(old); // Waits for lcores that look up in the old ones.
/// }
/// # use dpdk::acl::{AclConfig, IPV4_5TUPLE, Match, Rule};
/// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
/// # let rules = |name: &str| {
/// #     let mut acl: Acl<_, 5> = Acl::new(&eal, &IPV4_5TUPLE, &AclConfig::named(name))?;
/// #     acl.add(&Rule::new(std::num::NonZeroU32::MIN, 1, [Match::Any; 5]))?;
/// #     Ok::<_, Box<dyn std::error::Error>>(acl.build()?)
/// # };
/// # let qsbr = dpdk::qsbr::Qsbr::new(1);
/// # let table = Replaceable::new(&qsbr, rules("old")?);
/// # let mut reader = qsbr.register()?;
/// # std::thread::scope(|threads| {
/// #     let reading = threads.spawn(|| {
/// #         let mut online = reader.online();
/// #         for _ in 0..1000 {
/// #             turn(&table, &mut online, &Burst::new());
/// #         }
/// #     });
/// #     reload(&table, rules("new")?);
/// #     reload(&table, rules("old")?); // the name is free again
/// #     reading.join().map_err(|_| "the reader panicked".into())
/// # })
/// # .map_err(|error: Box<dyn std::error::Error>| error)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replaceable<'q, T> {
    qsbr: &'q Qsbr,
    /// A `Box<T>`.
    current: AtomicPtr<T>,
    /// It owns one.
    owned: PhantomData<T>,
}

impl_debug!([T] Replaceable<'_, T>, replaceable => qsbr: replaceable.qsbr);

// SAFETY: readers share a `&T`, and any thread may take a `T` out.
unsafe impl<T: Send + Sync> Sync for Replaceable<'_, T> {}

impl<'q, T> Replaceable<'q, T> {
    /// Makes one with `value` in it.
    pub fn new(qsbr: &'q Qsbr, value: T) -> Self {
        let current = AtomicPtr::new(Box::into_raw(Box::new(value)));
        Self { qsbr, current, owned: PhantomData }
    }

    /// Returns the current value, which can be used until the reader is next quiescent.
    ///
    /// # Panics
    /// When `online` is a reader of another [`Qsbr`].
    #[inline]
    pub fn read<'a>(&'a self, online: &'a Online<'_>) -> &'a T {
        if !online.is_of(self.qsbr) {
            foreign();
        }
        // SAFETY: a box that is freed when every reader online was quiescent after it had been taken out;
        // this one cannot be before the borrow ends.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// Returns the value for several parts of a thread's work, which read the same one until the snapshot is renewed.
    ///
    /// # Panics
    /// When `online` is a reader of another [`Qsbr`].
    #[must_use]
    pub fn snapshot<'r>(&'r self, online: Online<'r>) -> Snapshot<'r, 'q, T> {
        Snapshot::new(self, online)
    }

    /// Exchanges the value. Readers find the new one from now on; those that found the old value
    /// may still use it, so it is returned as [`Retired`].
    pub fn replace(&self, value: T) -> Retired<'q, T> {
        let new = Box::into_raw(Box::new(value));
        let old = self.current.swap(new, Ordering::AcqRel);
        let token = self.qsbr.start();
        // SAFETY: it was made from a box.
        let old = unsafe { NonNull::new_unchecked(old) };
        Retired { qsbr: self.qsbr, old, token, owned: PhantomData }
    }
}

impl<T> Drop for Replaceable<'_, T> {
    fn drop(&mut self) {
        // SAFETY: made from a box; what was read borrowed `self`.
        drop(unsafe { Box::from_raw(*self.current.get_mut()) });
    }
}

/// A value that was in a [`Replaceable`] and may still be read. Dropping it waits until nobody
/// reads it. So a thread that is online must not drop it, because it would wait for itself; it can
/// [take it](Self::try_take) later.
#[must_use = "dropping it waits for every reader"]
pub struct Retired<'q, T> {
    qsbr: &'q Qsbr,
    /// A `Box<T>` once nobody else reads it.
    old: NonNull<T>,
    token: Token,
    owned: PhantomData<T>,
}

impl_debug!([T] Retired<'_, T>, retired => qsbr: retired.qsbr);

// SAFETY: it gives a `T` out, which other threads may be reading meanwhile.
unsafe impl<T: Send + Sync> Send for Retired<'_, T> {}

impl<T> Retired<'_, T> {
    /// Waits until it is not read any more, for ever if a reader is never quiescent.
    #[must_use]
    pub fn wait(self) -> T {
        self.qsbr.wait(self.token, || {});
        self.take()
    }

    /// Returns the old value, once it is not read any more.
    ///
    /// # Errors
    /// The handle back, to ask again later.
    pub fn try_take(self) -> Result<T, Self> {
        if self.qsbr.check(self.token) { Ok(self.take()) } else { Err(self) }
    }

    /// Call it when the value is not read any more.
    fn take(self) -> T {
        let old = self.old;
        std::mem::forget(self);
        // SAFETY: made from a box, which nobody else has.
        *unsafe { Box::from_raw(old.as_ptr()) }
    }
}

impl<T> Drop for Retired<'_, T> {
    fn drop(&mut self) {
        self.qsbr.wait(self.token, || {});
        // SAFETY: as in `take`.
        drop(unsafe { Box::from_raw(self.old.as_ptr()) });
    }
}
