// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's functions for interrupt callbacks, replaced for net_memif.
//!
//! The dynamic linker finds the functions here before those of the libraries, because the program
//! comes first. Calls of other drivers are passed on. A callback of net_memif is registered as a
//! function of this module, which checks that the callback is still registered, takes the turn,
//! stops the polling, and calls it.
//!
//! `recvmsg` is replaced too, because the driver trusts all peers and leaks descriptors that they
//! send ([`peers`]). It also leaves callbacks registered: the one of a server that was removed, and
//! the one of a peer whose greeting failed. In both cases it frees the handle before the callback's
//! argument, so the callback is unregistered when the handle is freed. With DPDK's archives
//! (feature `static`) these functions are not found first, and the driver behaves as without them.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

use super::{TURN, gate, peers};
use crate::mutex::locked;

type Handle = *mut c_void;
type Callback = unsafe extern "C" fn(*mut c_void);
type Ended = unsafe extern "C" fn(Handle, *mut c_void);

type Register = unsafe extern "C" fn(Handle, Option<Callback>, *mut c_void) -> c_int;
type Pending = unsafe extern "C" fn(Handle, Option<Callback>, *mut c_void, Option<Ended>) -> c_int;
type Free = unsafe extern "C" fn(Handle);
type Fd = unsafe extern "C" fn(Handle) -> c_int;
type Receive = unsafe extern "C" fn(c_int, *mut libc::msghdr, c_int) -> isize;

/// The functions that would be called without this module: DPDK's, and libc's `recvmsg`.
struct Dpdk {
    register: Register,
    unregister: Register,
    unregister_pending: Pending,
    free: Free,
    fd: Fd,
    receive: Receive,
}

fn dpdk() -> &'static Dpdk {
    static DPDK: OnceLock<Dpdk> = OnceLock::new();
    let find = |name: &CStr| {
        // SAFETY: a name; the library that has it is loaded for as long as the process lives.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        assert!(!found.is_null(), "DPDK has no {name:?}");
        found
    };
    // SAFETY: the types are those of DPDK's headers.
    DPDK.get_or_init(|| unsafe {
        Dpdk {
            register: mem::transmute::<Handle, Register>(find(c"rte_intr_callback_register")),
            unregister: mem::transmute::<Handle, Register>(find(c"rte_intr_callback_unregister")),
            unregister_pending: mem::transmute::<Handle, Pending>(find(
                c"rte_intr_callback_unregister_pending",
            )),
            free: mem::transmute::<Handle, Free>(find(c"rte_intr_instance_free")),
            fd: mem::transmute::<Handle, Fd>(find(c"rte_intr_fd_get")),
            receive: mem::transmute::<Handle, Receive>(find(c"recvmsg")),
        }
    })
}

/// A registered callback of the driver. Pointers are compared, and never followed.
#[derive(Clone, Copy)]
struct Entry {
    handle: usize,
    slot: usize,
    argument: usize,
    fd: c_int,
    /// The file behind the descriptor, because the driver may have closed it.
    file: Option<(u64, u64)>,
    /// The argument of the callback that registered this one: for a peer that has connected, the
    /// server's.
    parent: usize,
    /// Its messages are not read, and the driver finds the end of the file.
    refused: bool,
}

static ENTRIES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// The driver has two callbacks.
const SLOTS: usize = 4;
static CALLBACKS: [AtomicPtr<c_void>; SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];
const OURS: [Callback; SLOTS] = [run::<0>, run::<1>, run::<2>, run::<3>];

thread_local! {
    /// The argument of the callback that this thread runs; 0 outside.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
    /// Whether it is that of a peer who is refused.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// The slot of a callback, if it is net_memif's.
fn slot_of(callback: Option<Callback>) -> Option<usize> {
    let address = callback? as *mut c_void;
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: fills the struct in if it returns anything but 0; the name lives as long as the library.
    let is_memif = unsafe {
        libc::dladdr(address, found.as_mut_ptr()) != 0
            && !found.assume_init_ref().dli_fname.is_null()
            && CStr::from_ptr(found.assume_init_ref().dli_fname)
                .to_string_lossy()
                .contains("librte_net_memif")
    };
    let takes = |slot: &AtomicPtr<c_void>| {
        let free = ptr::null_mut();
        let taken = slot.compare_exchange(free, address, Ordering::AcqRel, Ordering::Acquire);
        taken.map_or_else(|other| other == address, |_| true)
    };
    CALLBACKS.iter().position(|slot| is_memif && takes(slot))
}

/// DPDK's interrupt thread calls this in place of the driver's callback.
unsafe extern "C" fn run<const SLOT: usize>(argument: *mut c_void) {
    let _turn = locked(&TURN);
    // While this thread waited, the callback may have been unregistered, and its argument may be
    // freed soon.
    let is_own = |entry: &&Entry| entry.slot == SLOT && entry.argument == argument as usize;
    let Some(entry) = locked(&ENTRIES).iter().find(is_own).copied() else { return };
    // The event belonged to an earlier descriptor of the same number: the driver would wait for a
    // message.
    if !is_ready(entry.fd) {
        return;
    }
    let _raised = gate::raise();
    RUNNING.set(entry.argument);
    REFUSED.set(entry.refused);
    let callback = CALLBACKS[SLOT].load(Ordering::Acquire);
    // SAFETY: it was registered with this argument, and is still.
    unsafe { mem::transmute::<*mut c_void, Callback>(callback)(argument) };
    RUNNING.set(0);
    close_sent();
}

/// Closes descriptors of peers that are gone. Called by the thread that has the turn, when the
/// driver is done with such a peer.
pub(super) fn close_sent() {
    peers::close_left(|argument| locked(&ENTRIES).iter().any(|entry| entry.argument == argument));
}

/// libc's `recvmsg`; it returns the end of the file where a peer of the driver is refused, or has
/// sent what it must not.
///
/// # Safety
/// As POSIX documents it.
#[cfg_attr(not(feature = "static"), unsafe(no_mangle))]
#[cfg_attr(feature = "static", allow(dead_code))]
unsafe extern "C" fn recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
    let argument = RUNNING.get();
    if argument != 0 && REFUSED.get() {
        return 0;
    }
    // SAFETY: the contract is the caller's.
    let received = unsafe { (dpdk().receive)(fd, message, flags) };
    match usize::try_from(received) {
        // SAFETY: the kernel has filled the message in.
        Ok(bytes @ 1..) if argument != 0 && !unsafe { peers::take(message, bytes, argument) } => 0,
        _ => received,
    }
}

fn is_ready(fd: c_int) -> bool {
    let mut wanted = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one element, which lives as long as the call.
    unsafe { libc::poll(&raw mut wanted, 1, 0) != 0 }
}

/// Forgets the callback; from now on it is not run.
fn forget(slot: usize, argument: *mut c_void) {
    let is_own = |entry: &Entry| entry.slot == slot && entry.argument == argument as usize;
    locked(&ENTRIES).retain(|entry| !is_own(entry));
}

/// # Safety
/// As DPDK documents it.
#[cfg_attr(not(feature = "static"), unsafe(no_mangle))]
unsafe extern "C" fn rte_intr_callback_register(
    handle: Handle,
    callback: Option<Callback>,
    argument: *mut c_void,
) -> c_int {
    let Some(slot) = slot_of(callback) else {
        // SAFETY: the contract is the caller's.
        return unsafe { (dpdk().register)(handle, callback, argument) };
    };
    // SAFETY: the contract is the caller's.
    let fd = unsafe { (dpdk().fd)(handle) };
    // A peer that sends but does not read must not block the interrupt thread, because queues would
    // wait for it.
    peers::never_wait(fd);
    // SAFETY: the driver has just opened it.
    let refused = unsafe { peers::refuse_stranger(fd) };
    let (file, parent) = (peers::inode_of(fd), RUNNING.get());
    // Before the callback is registered, because it may run at once.
    let (handle_address, argument_address) = (handle as usize, argument as usize);
    let entry = Entry {
        handle: handle_address,
        slot,
        argument: argument_address,
        fd,
        file,
        parent,
        refused,
    };
    locked(&ENTRIES).push(entry);
    // SAFETY: the contract is the caller's.
    let code = unsafe { (dpdk().register)(handle, Some(OURS[slot]), argument) };
    if code < 0 {
        forget(slot, argument);
    }
    code
}

/// # Safety
/// As DPDK documents it.
#[cfg_attr(not(feature = "static"), unsafe(no_mangle))]
unsafe extern "C" fn rte_intr_callback_unregister(
    handle: Handle,
    callback: Option<Callback>,
    argument: *mut c_void,
) -> c_int {
    let Some(slot) = slot_of(callback) else {
        // SAFETY: the contract is the caller's.
        return unsafe { (dpdk().unregister)(handle, callback, argument) };
    };
    // SAFETY: the contract is the caller's.
    let code = unsafe { (dpdk().unregister)(handle, Some(OURS[slot]), argument) };
    if code > 0 {
        forget(slot, argument);
    }
    code
}

/// # Safety
/// As DPDK documents it.
#[cfg_attr(not(feature = "static"), unsafe(no_mangle))]
unsafe extern "C" fn rte_intr_callback_unregister_pending(
    handle: Handle,
    callback: Option<Callback>,
    argument: *mut c_void,
    ended: Option<Ended>,
) -> c_int {
    match slot_of(callback) {
        // SAFETY: the contract is the caller's.
        Some(slot) => unsafe { end(handle, slot, argument, ended) },
        // SAFETY: the contract is the caller's.
        None => unsafe { (dpdk().unregister_pending)(handle, callback, argument, ended) },
    }
}

/// Unregisters a callback, even while its event is being handled; `ended` is called when it is
/// removed.
///
/// # Safety
/// The handle is valid, and `argument` what the callback was registered with.
unsafe fn end(handle: Handle, slot: usize, argument: *mut c_void, ended: Option<Ended>) -> c_int {
    forget(slot, argument);
    loop {
        // SAFETY: the contract is the caller's.
        let code =
            unsafe { (dpdk().unregister_pending)(handle, Some(OURS[slot]), argument, ended) };
        if code != -libc::EAGAIN {
            return code;
        }
        // The event is over, which the driver does not expect.
        // SAFETY: as above.
        let code = unsafe { (dpdk().unregister)(handle, Some(OURS[slot]), argument) };
        if code != -libc::EAGAIN {
            if let Some(ended) = ended.filter(|_| code > 0) {
                // SAFETY: the callback is out, as DPDK would call this.
                unsafe { ended(handle, argument) };
            }
            return code;
        }
    }
}

/// Closes the descriptor of a callback that the driver has leaked.
unsafe extern "C" fn close(handle: Handle, _: *mut c_void) {
    // SAFETY: nobody else uses it: the driver has freed the struct that held it.
    unsafe { libc::close((dpdk().fd)(handle)) };
}

/// # Safety
/// As DPDK documents it.
#[cfg_attr(not(feature = "static"), unsafe(no_mangle))]
unsafe extern "C" fn rte_intr_instance_free(handle: Handle) {
    let found = |entry: &&Entry| entry.handle == handle as usize;
    let entry = locked(&ENTRIES).iter().find(found).copied();
    if let Some(entry) = entry {
        let peers: Vec<Entry> = {
            let entries = locked(&ENTRIES);
            entries.iter().filter(|peer| peer.parent == entry.argument).copied().collect()
        };
        // A server is freed after its devices: the remaining peers are those that no device has
        // accepted.
        for entry in peers.into_iter().chain([entry]) {
            // Skipped if the driver has closed it, as it does for a peer whose greeting failed.
            let is_open = entry.file.is_some() && peers::inode_of(entry.fd) == entry.file;
            let closing: Option<Ended> = if is_open { Some(close) } else { None };
            // SAFETY: the callback was registered so; handles of entries are not freed yet.
            unsafe {
                end(entry.handle as Handle, entry.slot, entry.argument as *mut c_void, closing)
            };
        }
    }
    // SAFETY: the contract is the caller's.
    unsafe { (dpdk().free)(handle) };
}

/// Returns true if drivers call the functions of this module. They do not if the program is linked
/// with DPDK's archives.
pub(super) fn is_found() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let finds = |name: &CStr, own: *const ()| {
        // SAFETY: a name.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        ptr::eq(found.cast_const().cast(), own)
    };
    *FOUND.get_or_init(|| {
        finds(c"rte_intr_callback_register", rte_intr_callback_register as *const ())
            && finds(c"rte_intr_callback_unregister", rte_intr_callback_unregister as *const ())
            && finds(
                c"rte_intr_callback_unregister_pending",
                rte_intr_callback_unregister_pending as *const (),
            )
            && finds(c"rte_intr_instance_free", rte_intr_instance_free as *const ())
    })
}
