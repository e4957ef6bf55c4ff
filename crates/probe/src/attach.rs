// SPDX-License-Identifier: BSD-3-Clause
//! Finding ports and queues, and keeping callbacks on them.
//!
//! DPDK tells of no port that starts and of no queue that is set up, so a thread looks. It asks for
//! callbacks on queue 0, 1, .. until DPDK knows no such queue; callbacks may be there before a port
//! starts, and stay while it is stopped, started and configured again.
//!
//! DPDK keeps callbacks in the slot of a port even after the port is closed, for whoever gets the slot
//! next. So they are taken off when DPDK says that a port is being released. While it says so, the
//! thread is kept out: [`PORTS`] is locked in both places, and a port that is going is left alone until
//! DPDK announces a new one in its slot. Port data that DPDK frees is therefore never looked at.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::cpus;
use crate::dpdk::{Callback, Dpdk, EVENT_DESTROY, EVENT_NEW};
use crate::poller::registry;
use crate::receive::{RxQueue, received};
use crate::say;
use crate::send::{TxQueue, sending};
use crate::settings::Settings;
use crate::stamp::Stamp;

/// How often the thread looks while something has just changed, and how long that is.
const SOON: Duration = Duration::from_millis(1);
const ALERT_LOOKS: u32 = 2000;
/// How often it looks otherwise: the first packets of a queue that appears later may go uncounted so long.
const LATER: Duration = Duration::from_millis(10);

/// A callback in DPDK's list. DPDK's pointers may be used from any thread.
struct Added(*const Callback);

// SAFETY: the probe does not look behind the pointer, and DPDK locks its lists.
unsafe impl Send for Added {}

#[derive(Default)]
struct Port {
    rx: Vec<Added>,
    tx: Vec<Added>,
    /// DPDK is releasing it.
    going: bool,
}

struct Ports {
    settings: Settings,
    /// Where stamps are, once EAL has started and if there is room.
    stamp: Option<Stamp>,
    ports: BTreeMap<u16, Port>,
}

static PORTS: Mutex<Ports> = Mutex::new(Ports {
    settings: Settings { polling: true, one_in: 0 },
    stamp: None,
    ports: BTreeMap::new(),
});

fn ports() -> MutexGuard<'static, Ports> {
    PORTS.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// What the probe does at present.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub settings: Settings,
    /// Queues with a callback.
    pub rx_queues: usize,
    pub tx_queues: usize,
}

pub fn state() -> State {
    let ports = ports();
    State {
        settings: ports.settings,
        rx_queues: ports.ports.values().map(|port| port.rx.len()).sum(),
        tx_queues: ports.ports.values().map(|port| port.tx.len()).sum(),
    }
}

/// Changes what is measured: callbacks are taken off, and put back as the settings say.
pub fn change(dpdk: &Dpdk, settings: Settings) {
    let mut ports = ports();
    if ports.settings == settings {
        return;
    }
    ports.settings = settings;
    let known: Vec<u16> = ports.ports.keys().copied().collect();
    for id in known {
        // A poll may be under way: what DPDK has of the callbacks is left to it.
        ports.take_off(dpdk, id, false);
    }
    ports.look(dpdk);
}

/// Starts the thread that looks for ports for as long as the process lives.
pub fn begin(dpdk: &'static Dpdk, settings: Settings) -> std::io::Result<()> {
    ports().settings = settings;
    // The program's, before EAL binds this thread to its main lcore.
    let allowed = cpus::allowed();
    thread::Builder::new().name("linerate-probe".into()).spawn(move || {
        if await_ports(dpdk) {
            watch(dpdk, &allowed);
        }
    })?;
    Ok(())
}

/// Waits for the first port, with which EAL has memory and lcores; then asks to be told of ports that
/// come and go.
fn await_ports(dpdk: &Dpdk) -> bool {
    // SAFETY: looks into an array of the library's own.
    while !unsafe { any_port(dpdk) } {
        thread::sleep(SOON);
    }
    // RTE_ETH_ALL is the number of ports that DPDK was built for, which is what "no next one" is.
    // SAFETY: any number may be asked for.
    let all = unsafe { (dpdk.find_next)(u16::MAX) };
    for event in [EVENT_NEW, EVENT_DESTROY] {
        // SAFETY: a function that lives for ever.
        let code = unsafe { (dpdk.register_event)(all, event, changing, std::ptr::null_mut()) };
        if code != 0 {
            // Without it a callback could be left behind, or port data be read that is gone.
            say(format_args!(
                "DPDK does not tell of ports that close ({code}): nothing is measured"
            ));
            return false;
        }
    }
    true
}

/// # Safety
/// None.
unsafe fn any_port(dpdk: &Dpdk) -> bool {
    // SAFETY: any number may be asked for.
    unsafe { (dpdk.is_valid_port)((dpdk.find_next)(0)) != 0 }
}

fn watch(dpdk: &Dpdk, allowed: &libc::cpu_set_t) {
    let mut alert = ALERT_LOOKS;
    loop {
        if ports().look(dpdk) {
            alert = ALERT_LOOKS;
        }
        // Every now and then: lcores may come later.
        if alert % 100 == 0 {
            cpus::leave_lcores(dpdk, allowed);
        }
        alert = if alert == 0 { 100 } else { alert - 1 };
        thread::sleep(if alert > 100 { SOON } else { LATER });
    }
}

/// `rte_eth_dev_cb_fn`: on the thread that makes or closes the port, before and after it can be used.
unsafe extern "C" fn changing(
    port: u16,
    event: c_uint,
    _user: *mut c_void,
    _detail: *mut c_void,
) -> c_int {
    let Ok(dpdk) = Dpdk::find() else { return 0 };
    let mut ports = ports();
    if event == EVENT_DESTROY {
        ports.take_off(dpdk, port, true);
    }
    ports.ports.entry(port).or_default().going = event == EVENT_DESTROY;
    0
}

impl Ports {
    /// Adds callbacks wherever there are none yet; whether any was added.
    fn look(&mut self, dpdk: &Dpdk) -> bool {
        if !self.settings.polling {
            return false;
        }
        self.reserve_stamp(dpdk);
        let mut added = false;
        let mut id = 0;
        loop {
            // SAFETY: any number may be asked for; ports are not released while `self` is locked.
            unsafe {
                id = (dpdk.find_next)(id);
                if (dpdk.is_valid_port)(id) == 0 {
                    return added;
                }
                added |= self.put_on(dpdk, id);
            }
            id += 1;
        }
    }

    fn reserve_stamp(&mut self, dpdk: &Dpdk) {
        // SAFETY: see there.
        if self.settings.one_in == 0 || self.stamp.is_some() || !unsafe { any_port(dpdk) } {
            return;
        }
        match Stamp::reserve(dpdk) {
            Ok(stamp) => self.stamp = Some(stamp),
            Err(error) => {
                say(error);
                self.settings.one_in = 0;
            }
        }
    }

    /// # Safety
    /// The port is valid.
    unsafe fn put_on(&mut self, dpdk: &Dpdk, id: u16) -> bool {
        let sampling = self.stamp.map(|stamp| (stamp, self.settings.one_in));
        let sampling = sampling.filter(|(_, one_in)| *one_in > 0);
        let port = self.ports.entry(id).or_default();
        if port.going {
            return false;
        }
        let before = port.rx.len() + port.tx.len();
        // Sending first: a stamp is to find the callback that takes it off.
        if let Some((stamp, _)) = sampling {
            add_all(&mut port.tx, |queue| {
                let data = Box::into_raw(Box::new(TxQueue::new(id, queue, stamp)));
                // SAFETY: `data` is what the function expects; it is freed only if DPDK did not take it.
                unsafe {
                    let added = (dpdk.add_tx_callback)(id, queue, sending, data.cast());
                    kept(added, data)
                }
            });
        }
        add_all(&mut port.rx, |queue| {
            let data = Box::into_raw(Box::new(RxQueue::new(id, queue, sampling)));
            // SAFETY: as above.
            unsafe {
                let added = (dpdk.add_first_rx_callback)(id, queue, received, data.cast());
                kept(added, data)
            }
        });
        port.rx.len() + port.tx.len() > before
    }

    /// Takes the callbacks off a port; `quiet`: nobody can be polling it, so that they can be freed.
    fn take_off(&mut self, dpdk: &Dpdk, id: u16, quiet: bool) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let take =
            |queue: u16,
             added: Added,
             remove: unsafe extern "C" fn(u16, u16, *const Callback) -> c_int| {
                // SAFETY: a port that DPDK knows, or an error; and what DPDK returned when it was added.
                // It is freed as DPDK's documentation says: removed, and no poll under way.
                unsafe {
                    if remove(id, queue, added.0) == 0 && quiet {
                        (dpdk.free)(added.0.cast_mut().cast());
                    }
                }
            };
        for (queue, added) in (0..).zip(port.rx.drain(..)) {
            take(queue, added, dpdk.remove_rx_callback);
            registry().leave(id, queue);
        }
        for (queue, added) in (0..).zip(port.tx.drain(..)) {
            take(queue, added, dpdk.remove_tx_callback);
        }
    }
}

/// Adds callbacks to the queues after the last known one until DPDK knows no further queue.
fn add_all(known: &mut Vec<Added>, add: impl Fn(u16) -> *const Callback) {
    while let Ok(queue) = u16::try_from(known.len()) {
        let added = add(queue);
        if added.is_null() {
            return;
        }
        known.push(Added(added));
    }
}

/// What DPDK returned for a callback; frees the callback's data if it did not take it.
///
/// # Safety
/// `data` came from a box, and only DPDK may have it.
unsafe fn kept<T>(added: *const Callback, data: *mut T) -> *const Callback {
    if added.is_null() {
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(data) });
    }
    added
}
