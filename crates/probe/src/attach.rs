// SPDX-License-Identifier: BSD-3-Clause
//! Finding ports and queues, and keeping callbacks on them.
//!
//! DPDK does not report that a port starts or a queue is set up, so a thread checks periodically.
//! It adds callbacks to queue 0, 1, .. until DPDK knows no such queue. Callbacks may be added
//! before a port starts, and stay while it is stopped, started and configured again.
//!
//! They are removed when DPDK reports that a port is being released. The thread is kept out
//! meanwhile: [`PORTS`] is locked in both places, and a port that is being released is left alone
//! until DPDK announces a new one in its slot. So port data that DPDK frees is never accessed.
//!
//! A thread that holds [`PORTS`] may lock the registry of `poller.rs`, never the other way round.
//! Lcores lock only the registry, and only when they begin to poll differently.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::num::NonZeroU32;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::callbacks::Callbacks;
use crate::cpus;
use crate::dpdk::{Dpdk, EVENT_DESTROY, EVENT_NEW};
use crate::memory;
use crate::poller::registry;
use crate::receive::RxQueue;
use crate::say;
use crate::send::TxQueue;
use crate::settings::{Settings, SettingsError};
use crate::signals;
use crate::stamp::{Sampling, Stamp};

/// The interval between checks after a change, and how long it applies.
const SOON: Duration = Duration::from_millis(1);
const ALERT_LOOKS: u32 = 2000;
/// The interval otherwise: the first packets of a new queue may be missed for so long.
const LATER: Duration = Duration::from_millis(10);
/// The interval while it keeps no callbacks: the thread shares the CPUs that the program may use,
/// so it must cost nothing.
const IDLE: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Port {
    rx: Callbacks<RxQueue>,
    tx: Callbacks<TxQueue>,
    /// DPDK is releasing it.
    going: bool,
}

struct Ports {
    settings: Settings,
    /// Where stamps are stored, once EAL has started and if there is room.
    stamp: Option<Stamp>,
    ports: BTreeMap<u16, Port>,
}

static PORTS: Mutex<Ports> = Mutex::new(Ports {
    settings: Settings { polling: true, one_in: 0 },
    stamp: None,
    ports: BTreeMap::new(),
});

/// Notified when the settings change; waited for with [`PORTS`].
static CHANGED: Condvar = Condvar::new();

fn ports() -> MutexGuard<'static, Ports> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The present state of the probe.
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

/// Changes what is measured, by the parameters of a telemetry command. Changing `one_in` loses no
/// poll; with `polling` off there are no callbacks.
pub fn change(dpdk: &Dpdk, parameters: &str) -> Result<(), SettingsError> {
    let mut ports = ports();
    let settings = ports.settings.changed(parameters)?;
    if ports.settings != settings {
        ports.settings = settings;
        ports.look(dpdk);
        ports.apply(dpdk);
        CHANGED.notify_all();
    }
    Ok(())
}

/// Starts the thread that looks for ports, as long as the process lives.
pub fn begin(dpdk: &'static Dpdk, settings: Settings) -> std::io::Result<()> {
    ports().settings = settings;
    // The program's CPUs, before EAL binds this thread to its main lcore.
    let allowed = host::allowed_cpus();
    signals::blocked(|| {
        thread::Builder::new().name("linerate-probe".into()).spawn(move || {
            if await_ports(dpdk) {
                watch(dpdk, &allowed);
            }
        })
    })?;
    Ok(())
}

/// Waits for the first port, because EAL then has memory and lcores; then registers for events of
/// ports that are created and released.
fn await_ports(dpdk: &Dpdk) -> bool {
    // Some programs create their first port hours later, or never.
    let mut alert = ALERT_LOOKS;
    while !any_port(dpdk) {
        thread::sleep(if alert > 0 { SOON } else { LATER });
        alert = alert.saturating_sub(1);
    }
    // RTE_ETH_ALL is the number of ports that DPDK was built for; `find_next` returns that if there
    // is no next port.
    // SAFETY: any number may be passed.
    let all = unsafe { (dpdk.find_next)(u16::MAX) };
    for event in [EVENT_NEW, EVENT_DESTROY] {
        // SAFETY: a function that lives for ever.
        let code = unsafe { (dpdk.register_event)(all, event, changing, std::ptr::null_mut()) };
        if code != 0 {
            // Without the event a callback could be left behind, or freed port data be read.
            say(format_args!("DPDK does not report closed ports ({code}): nothing is measured"));
            return false;
        }
    }
    true
}

fn any_port(dpdk: &Dpdk) -> bool {
    // SAFETY: both look into an array of the library's own, at any number.
    unsafe { (dpdk.is_valid_port)((dpdk.find_next)(0)) != 0 }
}

fn watch(dpdk: &Dpdk, allowed: &[usize]) {
    let (mut alert, mut idle) = (ALERT_LOOKS, false);
    for look in 0u64.. {
        // From time to time, because lcores may be added later.
        if idle || look % 100 == 0 {
            cpus::leave_lcores(dpdk, allowed);
        }
        let mut known = ports();
        // rte_eal_cleanup has unmapped everything; nothing in the rest of the program can be
        // measured.
        if known.memory_is_gone() {
            return;
        }
        alert = if known.look(dpdk) { ALERT_LOOKS } else { alert.saturating_sub(1) };
        idle = known.is_idle();
        let pause = match alert {
            _ if idle => IDLE,
            0 => LATER,
            _ => SOON,
        };
        let woken = CHANGED.wait_timeout(known, pause).unwrap_or_else(PoisonError::into_inner);
        if !woken.1.timed_out() {
            alert = ALERT_LOOKS;
        }
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
    let known = ports.ports.entry(port).or_default();
    known.going = event == EVENT_DESTROY;
    if known.going {
        // SAFETY: DPDK is about to release the port, and waits. The thread that closes it has
        // stopped polling.
        unsafe {
            known.take_off(dpdk, port);
            known.rx.free(dpdk);
            known.tx.free(dpdk);
        }
    }
    0
}

impl Port {
    /// # Safety
    /// The port is valid and not released meanwhile.
    unsafe fn put_on(&mut self, dpdk: &Dpdk, id: u16, sampling: Option<Sampling>) -> bool {
        // SAFETY: the contract is the caller's.
        unsafe {
            // Sending first: every stamp must find the callback that removes it.
            let sending = sampling.is_some_and(|Sampling { stamp, .. }| {
                self.tx.put_on(dpdk, id, |queue| TxQueue::new(id, queue, stamp), |_| {})
            });
            let make = |queue| RxQueue::new(id, queue);
            sending | self.rx.put_on(dpdk, id, make, |queue| queue.begin(sampling))
        }
    }

    /// # Safety
    /// As for [`Callbacks::take_off`].
    unsafe fn take_off(&mut self, dpdk: &Dpdk, id: u16) {
        for queue in 0..self.rx.len() {
            registry().leave(id, queue as u16);
        }
        // SAFETY: the contract is the caller's.
        unsafe {
            self.rx.take_off(dpdk, id);
            self.tx.take_off(dpdk, id);
        }
    }
}

impl Ports {
    /// Adds callbacks to all queues without one; returns true if any was added.
    fn look(&mut self, dpdk: &Dpdk) -> bool {
        self.reserve_stamp(dpdk);
        let sampling = self.sampling();
        let mut added = false;
        let mut id = 0;
        loop {
            // SAFETY: any number may be asked for; ports are not released while `self` is locked.
            unsafe {
                id = (dpdk.find_next)(id);
                if (dpdk.is_valid_port)(id) == 0 {
                    return added;
                }
                let port = self.ports.entry(id).or_default();
                if self.settings.polling && !port.going {
                    added |= port.put_on(dpdk, id, sampling);
                } else if !port.going {
                    port.rx.take_off_left(dpdk, id);
                    port.tx.take_off_left(dpdk, id);
                }
            }
            id += 1;
        }
    }

    /// Returns true if there is nothing to do until the settings change.
    fn is_idle(&self) -> bool {
        !self.settings.polling
            && self.ports.values().all(|port| port.rx.len() == 0 && port.tx.len() == 0)
    }

    /// Returns true if DPDK's memory is no longer mapped. Not every bus closes its ports in
    /// `rte_eal_cleanup`: the remaining ports seem unchanged, but their data is gone.
    fn memory_is_gone(&self) -> bool {
        let record = self.ports.values().find_map(|port| port.rx.record());
        record.is_some_and(|record| !memory::is_mapped(record))
    }

    fn reserve_stamp(&mut self, dpdk: &Dpdk) {
        let wanted = self.settings.polling && self.settings.one_in > 0;
        if !wanted || self.stamp.is_some() || !any_port(dpdk) {
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

    /// How bursts are to be stamped, if at all.
    fn sampling(&self) -> Option<Sampling> {
        let one_in = NonZeroU32::new(self.settings.one_in)?;
        Some(Sampling { stamp: self.stamp?, one_in })
    }

    /// Applies the settings to the existing callbacks.
    fn apply(&mut self, dpdk: &Dpdk) {
        let sampling = self.sampling();
        for (id, port) in self.ports.iter_mut().filter(|(_, port)| !port.going) {
            // SAFETY: ports are not released while `self` is locked; of one that is gone nothing is in
            // place. Polls may be under way, so nothing is freed.
            unsafe {
                if !self.settings.polling {
                    port.take_off(dpdk, *id);
                    continue;
                }
                port.rx.iter().for_each(|queue| queue.sample(sampling));
                if sampling.is_none() {
                    port.tx.take_off(dpdk, *id);
                }
            }
        }
    }
}
