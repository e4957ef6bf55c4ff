// SPDX-License-Identifier: BSD-3-Clause
//! Logical cores, and work launched on them for the length of a scope.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use dpdk_sys::layout;

use crate::debug::impl_debug;
use crate::errno::Errno;
use crate::mutex::locked;

/// A logical core that DPDK runs on: an EAL thread pinned to a CPU (or to several, by `--lcores`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Lcore(u32);

impl Lcore {
    /// The number that DPDK gives it (`-l`).
    #[must_use]
    pub fn id(self) -> u32 {
        self.0
    }

    /// The NUMA node it is on (`rte_lcore_to_socket_id`); `None` where the system does not say.
    #[must_use]
    pub fn socket(self) -> Option<u32> {
        // SAFETY: any lcore number is allowed, an unknown one gives 0.
        u32::try_from(unsafe { dpdk_sys::rte_lcore_to_socket_id(self.0) } as i32).ok()
    }

    /// The CPUs that it may run on, in ascending order (`rte_lcore_cpuset`).
    pub(crate) fn cpus(self) -> Vec<usize> {
        // SAFETY: any lcore number is allowed, an unknown one gives an empty set.
        let set = unsafe { dpdk_sys::rte_lcore_cpuset(self.0) };
        let bits = u64::BITS as usize;
        let is_set = |cpu: &usize| set.__bits[cpu / bits] >> (cpu % bits) & 1 == 1;
        (0..set.__bits.len() * bits).filter(is_set).collect()
    }

    /// The calling thread's lcore, if it is one (`rte_lcore_id`).
    #[must_use]
    pub fn current() -> Option<Self> {
        let id = current_id();
        ((id as usize) < layout::MAX_LCORE).then_some(Self(id))
    }
}

/// Not asked yet. Differs from DPDK's LCORE_ID_ANY, which is `u32::MAX`.
const UNKNOWN: u32 = u32::MAX - 1;

thread_local! {
    /// DPDK keeps the lcore id in a thread-local variable of a shared library, which only a call into
    /// C can read. An lcore never changes its thread, so the answer is kept on this side.
    static CURRENT: Cell<u32> = const { Cell::new(UNKNOWN) };
}

/// The calling thread's lcore id, or a number of `MAX_LCORE` or more for a thread that is no lcore.
#[inline(always)]
pub(crate) fn current_id() -> u32 {
    let id = CURRENT.get();
    if id == UNKNOWN { ask() } else { id }
}

#[cold]
fn ask() -> u32 {
    // SAFETY: reads a thread-local integer.
    let id = unsafe { dpdk_sys::lr_lcore_id() };
    CURRENT.set(id);
    id
}

/// Called after `rte_eal_init`, which has made the calling thread the main lcore.
pub(crate) fn forget_current() {
    CURRENT.set(UNKNOWN);
}

/// The lcore that `rte_eal_init` was called on.
pub(crate) fn main() -> Lcore {
    // SAFETY: reads EAL's configuration; the caller has an Eal.
    Lcore(unsafe { dpdk_sys::rte_get_main_lcore() })
}

/// All lcores of this process, in ascending order; the main one is among them.
pub(crate) fn all() -> Vec<Lcore> {
    let mut lcores = Vec::new();
    let mut id = u32::MAX;
    loop {
        // SAFETY: reads EAL's configuration; (u32)-1 asks for the first.
        id = unsafe { dpdk_sys::rte_get_next_lcore(id, 0, 0) };
        if id as usize >= layout::MAX_LCORE {
            return lcores;
        }
        lcores.push(Lcore(id));
    }
}

/// Why work was not launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The lcore is the main one, whose thread is the caller's own.
    #[error("lcore {} is the main lcore: call the function instead of launching it", .0.id())]
    Main(Lcore),
    /// Scopes belong to the thread that called `Eal::init`.
    #[error("work can only be launched from the main lcore's thread")]
    NotMain,
    /// The lcore still runs other work. When that has returned, even within the scope, it accepts
    /// new work.
    #[error("lcore {} still runs earlier work: launch again when that has ended", .0.id())]
    Busy(Lcore),
    /// DPDK refused.
    #[error("lcore {lcore} did not start: {1}", lcore = .0.id())]
    Refused(Lcore, Errno),
}

/// Launches work on worker lcores that may borrow from outside the scope; see
/// [`Eal::scope`](crate::Eal::scope).
pub struct Scope<'scope, 'env: 'scope> {
    launched: Mutex<Vec<Lcore>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl_debug!([] Scope<'_, '_>, scope => launched: scope.launched);

type Work<'scope> = Box<dyn FnOnce() + Send + 'scope>;

impl<'scope> Scope<'scope, '_> {
    /// Runs `work` on a worker lcore (`rte_eal_remote_launch`). It is joined when the scope ends. A panic in `work` ends the
    /// process with a message: it cannot unwind into DPDK's thread.
    ///
    /// # Errors
    /// See [`LaunchError`]; `work` has then not run and is dropped.
    pub fn launch<F>(&'scope self, lcore: Lcore, work: F) -> Result<(), LaunchError>
    where
        F: FnOnce() + Send + 'scope,
    {
        if current_id() != main().id() {
            return Err(LaunchError::NotMain);
        }
        if lcore == main() {
            return Err(LaunchError::Main(lcore));
        }
        let work: Box<Work<'scope>> = Box::new(Box::new(work));
        let raw = Box::into_raw(work);
        let mut launched = locked(&self.launched);
        // SAFETY: `raw` is a boxed closure that the trampoline takes back exactly once. What it
        // borrows outlives 'scope, and the scope joins the lcore before 'scope ends, whatever happens.
        let code = unsafe {
            dpdk_sys::rte_eal_remote_launch(Some(trampoline), raw.cast::<c_void>(), lcore.id())
        };
        if code == 0 {
            launched.push(lcore);
            return Ok(());
        }
        // The work is the program's own, and may launch other work when it is dropped.
        drop(launched);
        // SAFETY: the launch was refused, so the trampoline will not take the box.
        drop(unsafe { Box::from_raw(raw) });
        Err(match Errno(-code) {
            Errno::EBUSY => LaunchError::Busy(lcore),
            errno => LaunchError::Refused(lcore, errno),
        })
    }
}

unsafe extern "C" fn trampoline(raw: *mut c_void) -> c_int {
    // SAFETY: `raw` comes from `launch`, which gave it up. The lifetime is only a name here: the scope
    // waits for this function to return.
    let work = unsafe { Box::from_raw(raw.cast::<Work<'_>>()) };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(()) => 0,
        Err(panic) => abort(&*panic),
    }
}

/// Ends the process because of a panic on a thread that Rust cannot unwind.
#[cold]
pub(crate) fn abort(panic: &(dyn Any + Send)) -> ! {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)");
    eprintln!("linerate: panic on an EAL thread, which cannot unwind: {text}");
    std::process::abort()
}

/// Runs `body` and joins every lcore that it launched, also when it panics.
pub(crate) fn scope<'env, R>(body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    struct Join<'a>(&'a Mutex<Vec<Lcore>>);
    impl Drop for Join<'_> {
        fn drop(&mut self) {
            let launched = locked(self.0);
            for lcore in launched.iter() {
                // SAFETY: waits until the lcore is idle; called on the main lcore, as the launch was.
                unsafe { dpdk_sys::rte_eal_wait_lcore(lcore.id()) };
            }
        }
    }
    let scope = Scope { launched: Mutex::new(Vec::new()), scope: PhantomData, env: PhantomData };
    let join = Join(&scope.launched);
    let result = body(&scope);
    drop(join);
    result
}
