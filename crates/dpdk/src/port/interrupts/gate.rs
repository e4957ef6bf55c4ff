// SPDX-License-Identifier: BSD-3-Clause
//! Burst functions that wait while an interrupt handler runs.
//!
//! A started port's entry in `rte_eth_fp_ops` points to [`receive`] and [`send`] instead of the
//! driver's functions, so C code in this process is kept apart as well, and ports of other drivers
//! pay nothing. Each queue marks in its own cache line that it is inside the driver, and reads a
//! line that is written only when a handler runs. The handler pays for the barrier between the two
//! (`membarrier`), if the kernel offers it.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering, compiler_fence, fence};
use std::sync::{Arc, Mutex, Once};
use std::thread;

use dpdk_sys::{layout, rte_mbuf};

use crate::fast::ethdev::{self, BurstFn};
use crate::mutex::locked;
use crate::port::id::PortId;

/// A handler runs or waits for queues.
const RAISED: u8 = 1;
/// The kernel has no `membarrier`: queues pay for the barrier.
const FENCED: u8 = 2;

#[repr(align(64))]
struct State(AtomicU8);

static STATE: State = State(AtomicU8::new(0));
static QUEUES: Mutex<Vec<Arc<Gated>>> = Mutex::new(Vec::new());
static REGISTERED: Once = Once::new();

/// A queue behind the gate. DPDK gets its address for the driver's queue.
#[repr(align(64))]
struct Gated {
    inside: AtomicBool,
    burst: BurstFn,
    queue: *mut c_void,
}

// SAFETY: `queue` is only handed to the driver, by the thread that may poll the queue; the rest is
// constant or atomic.
unsafe impl Send for Gated {}
// SAFETY: as above.
unsafe impl Sync for Gated {}

impl Gated {
    #[inline(always)]
    fn enter(&self) -> bool {
        self.inside.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        STATE.0.load(Ordering::Acquire) == 0 || self.enter_slowly()
    }

    #[cold]
    fn enter_slowly(&self) -> bool {
        fence(Ordering::SeqCst);
        let open = STATE.0.load(Ordering::Acquire) & RAISED == 0;
        if !open {
            self.leave();
        }
        open
    }

    #[inline(always)]
    fn leave(&self) {
        self.inside.store(false, Ordering::Release);
    }
}

/// Receives nothing while a handler runs: waiting packets are still there afterwards.
unsafe extern "C" fn receive(gated: *mut c_void, packets: *mut *mut rte_mbuf, count: u16) -> u16 {
    // SAFETY: the entry of the port leads here with its own queues only, which live until it is stopped.
    let gated = unsafe { &*gated.cast::<Gated>() };
    if !gated.enter() {
        return 0;
    }
    // SAFETY: the contract is the caller's, as for the driver's own function.
    let received = unsafe { (gated.burst)(gated.queue, packets, count) };
    gated.leave();
    received
}

/// Waits while a handler runs, because a sender may drop packets that are not taken.
unsafe extern "C" fn send(gated: *mut c_void, packets: *mut *mut rte_mbuf, count: u16) -> u16 {
    // SAFETY: as in `receive`.
    let gated = unsafe { &*gated.cast::<Gated>() };
    while !gated.enter() {
        thread::yield_now();
    }
    // SAFETY: as in `receive`.
    let sent = unsafe { (gated.burst)(gated.queue, packets, count) };
    gated.leave();
    sent
}

/// The queues of a started port behind the gate; it lives longer than the port is started.
pub(in crate::port) struct Gate {
    queues: Vec<Arc<Gated>>,
    /// What the port's entry points to.
    _arrays: [Box<[AtomicPtr<c_void>]>; 2],
}

impl Gate {
    /// # Safety
    /// The port has just been started with so many queues, and none has been used yet.
    pub(in crate::port) unsafe fn before(id: PortId, rx: u16, tx: u16) -> Self {
        REGISTERED.call_once(|| {
            if !membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
                STATE.0.fetch_or(FENCED, Ordering::SeqCst);
            }
        });
        let mut queues = Vec::new();
        // SAFETY: the contract is the caller's; the offsets are those of the C struct.
        let arrays = unsafe {
            [
                lead(id, layout::FP_RX_PKT_BURST, layout::FP_RXQ_DATA, rx, receive, &mut queues),
                lead(id, layout::FP_TX_PKT_BURST, layout::FP_TXQ_DATA, tx, send, &mut queues),
            ]
        };
        locked(&QUEUES).extend(queues.iter().cloned());
        Self { queues, _arrays: arrays }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let is_own = |queue: &Arc<Gated>| self.queues.iter().any(|own| Arc::ptr_eq(own, queue));
        locked(&QUEUES).retain(|queue| !is_own(queue));
    }
}

/// # Safety
/// As [`Gate::before`]; the offsets are those of the entry's burst function and of its array of queues.
unsafe fn lead(
    id: PortId,
    burst: usize,
    data: usize,
    count: u16,
    through: BurstFn,
    queues: &mut Vec<Arc<Gated>>,
) -> Box<[AtomicPtr<c_void>]> {
    let entry = ethdev::fp_ops(id.index()).cast_mut();
    // SAFETY: the contract is the caller's: nobody polls the port, so two stores are enough.
    unsafe {
        let driver = ethdev::read_burst(entry, burst);
        let array: *mut *mut c_void = ethdev::read(entry, data).cast();
        let first = queues.len();
        queues.extend((0..usize::from(count)).map(|queue| {
            let queue = *array.add(queue);
            Arc::new(Gated { inside: AtomicBool::new(false), burst: driver, queue })
        }));
        let pointer = |gated: &Arc<Gated>| AtomicPtr::new(Arc::as_ptr(gated).cast_mut().cast());
        let own: Box<[_]> = queues[first..].iter().map(pointer).collect();
        if count > 0 {
            let slot = |offset| AtomicPtr::<c_void>::from_ptr(entry.add(offset).cast());
            slot(data).store(own.as_ptr().cast_mut().cast(), Ordering::Release);
            slot(burst).store(through as *mut c_void, Ordering::Release);
        }
        own
    }
}

/// No queue is polled while this lives.
pub(super) struct Raised(());

/// Waits until each queue has been seen outside the driver. A thread that is inside needs no lock
/// to leave. One call at a time: the caller has the turn.
pub(super) fn raise() -> Raised {
    let before = STATE.0.fetch_or(RAISED, Ordering::SeqCst);
    if before & FENCED == 0 && !membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
        // Nothing was registered because no port has been started: nobody polls.
        fence(Ordering::SeqCst);
    }
    fence(Ordering::SeqCst);
    for queue in locked(&QUEUES).iter() {
        while queue.inside.load(Ordering::Acquire) {
            thread::yield_now();
        }
    }
    Raised(())
}

impl Drop for Raised {
    fn drop(&mut self) {
        STATE.0.fetch_and(!RAISED, Ordering::Release);
    }
}

fn membarrier(command: libc::membarrier_cmd) -> bool {
    let none: *const c_void = ptr::null();
    // SAFETY: a system call that touches none of the program's memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command as libc::c_long, 0, none) == 0 }
}
