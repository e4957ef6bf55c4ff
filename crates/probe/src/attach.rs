// SPDX-License-Identifier: BSD-3-Clause
//! Finding ports and queues, and keeping callbacks on them.
//!
//! DPDK tells of no port that starts and of no queue that is set up, so a thread looks. It asks for
//! callbacks on queue 0, 1, .. until DPDK knows no such queue; callbacks may be there before a port
//! starts, and stay while it is stopped, started and configured again.
//!
//! They are taken off when DPDK says that a port is being released. While it says so, the thread is kept
//! out: [`PORTS`] is locked in both places, and a port that is going is left alone until DPDK announces a
//! new one in its slot. Port data that DPDK frees is therefore never looked at.
//!
//! Whoever holds [`PORTS`] may lock the registry of `poller.rs`, never the other way round. Lcores lock the
//! registry alone, and not while they poll as before.

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

/// How often the thread looks while something has just changed, and how long that is.
const SOON: Duration = Duration::from_millis(1);
const ALERT_LOOKS: u32 = 2000;
/// How often it looks otherwise: the first packets of a queue that appears later may go uncounted so long.
const LATER: Duration = Duration::from_millis(10);
/// And while it keeps no callbacks: it shares the CPUs that the program may use, so it must cost nothing.
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
    /// Where stamps are, once EAL has started and if there is room.
    stamp: Option<Stamp>,
    ports: BTreeMap<u16, Port>,
}

static PORTS: Mutex<Ports> = Mutex::new(Ports {
    settings: Settings { polling: true, one_in: 0 },
    stamp: None,
    ports: BTreeMap::new(),
});

/// Told when the settings change, to those who wait with [`PORTS`].
static CHANGED: Condvar = Condvar::new();

fn ports() -> MutexGuard<'static, Ports> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Changes what is measured, by the parameters of a telemetry command. A change of `one_in` loses no poll;
/// with `polling` off there are no callbacks.
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

/// Starts the thread that looks for ports for as long as the process lives.
pub fn begin(dpdk: &'static Dpdk, settings: Settings) -> std::io::Result<()> {
    ports().settings = settings;
    // The program's, before EAL binds this thread to its main lcore.
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

/// Waits for the first port, with which EAL has memory and lcores; then asks to be told of ports that
/// come and go.
fn await_ports(dpdk: &Dpdk) -> bool {
    // Some programs make their first port hours later, or never.
    let mut alert = ALERT_LOOKS;
    while !any_port(dpdk) {
        thread::sleep(if alert > 0 { SOON } else { LATER });
        alert = alert.saturating_sub(1);
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

fn any_port(dpdk: &Dpdk) -> bool {
    // SAFETY: both look into an array of the library's own, at any number.
    unsafe { (dpdk.is_valid_port)((dpdk.find_next)(0)) != 0 }
}

fn watch(dpdk: &Dpdk, allowed: &[usize]) {
    let (mut alert, mut idle) = (ALERT_LOOKS, false);
    for look in 0u64.. {
        // Every now and then: lcores may come later.
        if idle || look % 100 == 0 {
            cpus::leave_lcores(dpdk, allowed);
        }
        let mut known = ports();
        // rte_eal_cleanup has unmapped everything; what is left of the program needs no looking.
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
        // SAFETY: DPDK is about to release the port, and waits. Whoever closes it has stopped polling.
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
            // Sending first: a stamp is to find the callback that takes it off.
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
    /// Adds callbacks wherever there are none yet; whether any was added.
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

    /// Whether there is nothing to do until the settings change.
    fn is_idle(&self) -> bool {
        !self.settings.polling
            && self.ports.values().all(|port| port.rx.len() == 0 && port.tx.len() == 0)
    }

    /// Whether DPDK's memory is no longer mapped. Not every bus closes its ports in `rte_eal_cleanup`:
    /// those that are left look as before, and their data is gone.
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

    /// How bursts are to be stamped, if they are.
    fn sampling(&self) -> Option<Sampling> {
        let one_in = NonZeroU32::new(self.settings.one_in)?;
        Some(Sampling { stamp: self.stamp?, one_in })
    }

    /// Makes the settings those of the callbacks that are in place.
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
