// SPDX-License-Identifier: BSD-3-Clause
//! A port and its states.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use dpdk_sys::layout;

use super::agreement::Agreement;
use super::callback::Registry;
use super::config::PortConfig;
use super::control::{PortControl, configuration};
use super::driver::Driver;
use super::error::{PortError, check, refused};
use super::id::{PortId, valid_ports};
use super::info::{self, PortInfo};
use super::interrupts::{self, Gate, apart};
use super::leftover;
use super::lock::lock;
use super::offloads::{RxOffloads, TxOffloads};
use super::promiscuity::Flag;
use super::rss_key;
use super::rx::RxQueue;
use super::shortfall::Shortfall;
use super::tx::TxQueue;
use super::tx_guard::TxGuard;
use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::mutex::locked;

/// A port without queues.
#[derive(Debug)]
pub enum Unconfigured {}
/// A port whose queues are set up.
#[derive(Debug)]
pub enum Configured {}
/// A port that receives and sends.
#[derive(Debug)]
pub enum Started {}

/// A port in state `S`: [`Unconfigured`], [`Configured`] or [`Started`].
///
/// Transitions consume the port. If one fails, the port is given back to the [`Eal`], from which it
/// can be taken again. Dropping a port stops it; its device stays. The port is closed by
/// [`Eal::detach`], or with the `Eal` (`rte_eth_dev_close`); buffers that a device receives into
/// may return to their pool only then (see [`Mempool::is_full`](crate::Mempool::is_full)).
///
/// A queue keeps its port from being stopped:
/// ```compile_fail,E0505
/// fn stop_too_early(mut port: dpdk::Port<'_, dpdk::Started>) {
///     let queues = port.queues();
///     let _ = port.stop();
///     drop(queues);
/// }
/// ```
pub struct Port<'eal, S> {
    claim: Claim<'eal>,
    agreement: Agreement,
    state: PhantomData<S>,
}

impl_debug!([S] Port<'_, S>, port => id: port.claim.id, rx: port.agreement.rx, tx: port.agreement.tx);

/// The exclusive right to configure a port.
pub(super) struct Claim<'eal> {
    eal: &'eal Eal,
    id: PortId,
    started: bool,
    /// The callbacks on the port's queues.
    callbacks: Registry,
    /// The change to packets that its driver needs when it sends.
    guard: Option<TxGuard<'eal>>,
    /// Callbacks that make sent packets pass the guard while the port is started.
    sentinels: Registry,
    /// Keeps its queues apart from its driver's interrupt handlers while the port is started.
    gate: Option<Gate>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.started {
            // SAFETY: queues borrow from the port that holds this claim and are gone.
            unsafe { self.callbacks.abandon(self.id.0) };
            // SAFETY: as above; they borrow nothing.
            unsafe { self.sentinels.clear(self.id.0) };
            let _alone = lock();
            let _apart = apart(self.id);
            // SAFETY: as above.
            unsafe { dpdk_sys::rte_eth_dev_stop(self.id.0) };
        }
        locked(&self.eal.taken).remove(&self.id.0);
    }
}

impl Eal {
    /// Returns the exclusive handle of a port. It excludes other handles, like an owner
    /// (`rte_eth_dev_owner_set`), but DPDK does not know of it: C code in the same process can
    /// still use the port.
    ///
    /// # Errors
    /// [`PortError::Absent`] if there is no such port, [`PortError::Owned`] if it belongs to
    /// another port, [`PortError::Taken`] while a handle exists.
    pub fn take_port(&self, id: PortId) -> Result<Port<'_, Unconfigured>, PortError> {
        let mut taken = locked(&self.taken);
        let alone = lock();
        if !id.exists() {
            return Err(PortError::Absent(id));
        }
        if !id.is_free() {
            return Err(PortError::Owned(id));
        }
        drop(alone);
        if !taken.insert(id.0) {
            return Err(PortError::Taken(id));
        }
        drop(taken);
        Ok(Port {
            claim: Claim {
                eal: self,
                id,
                started: false,
                callbacks: Registry::default(),
                guard: None,
                sentinels: Registry::default(),
                gate: None,
            },
            agreement: Agreement::default(),
            state: PhantomData,
        })
    }
}

impl<'eal, S> Port<'eal, S> {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> PortId {
        self.claim.id
    }

    /// Returns the operations that are allowed at any time and from any thread.
    #[must_use]
    pub fn control(&self) -> PortControl<'eal> {
        PortControl::new(self.claim.id)
    }

    /// The requested features that the port lacks; empty before it is configured. A driver that
    /// refuses a table of queues reports it only when the port is started.
    #[must_use]
    pub fn shortfalls(&self) -> &[Shortfall] {
        &self.agreement.shortfalls
    }

    /// The offloads that the port is configured for on received packets.
    #[must_use]
    pub fn rx_offloads(&self) -> RxOffloads {
        self.agreement.rx_offloads
    }

    /// The offloads that the port is configured for on sent packets.
    #[must_use]
    pub fn tx_offloads(&self) -> TxOffloads {
        self.agreement.tx_offloads
    }

    /// Returns the driver's capabilities (`rte_eth_dev_info_get`).
    ///
    /// # Errors
    /// [`PortError::Call`] if the driver does not report them.
    pub fn info(&self) -> Result<PortInfo, PortError> {
        PortInfo::of(self.claim.id)
    }

    fn into<T>(self, agreement: Agreement) -> Port<'eal, T> {
        Port { claim: self.claim, agreement, state: PhantomData }
    }

    pub(super) fn into_claim(self) -> Claim<'eal> {
        self.claim
    }
}

impl<'eal> Port<'eal, Unconfigured> {
    /// Configures the port and sets its queues up (`rte_eth_dev_configure`).
    /// [`shortfalls`](Port::shortfalls) reports unsupported features.
    ///
    /// # Errors
    /// [`PortError::NoQueues`], [`PortError::TooManyQueues`]; [`PortError::RxOffloads`] and
    /// [`PortError::TxOffloads`] if a required offload is not supported; [`PortError::RetaQueue`];
    /// [`PortError::Call`] with the function that failed. [`PortError::Unsafe`] for a port of
    /// net_af_xdp that was configured before, because its driver frees queues only when the device
    /// is detached, and for a port of net_af_xdp or net_pcap of which a queue other than the first
    /// could not be set up.
    pub fn configure(
        mut self,
        config: &PortConfig<'eal>,
    ) -> Result<Port<'eal, Configured>, PortError> {
        let id = self.claim.id;
        if config.rx.is_empty() && config.tx.is_empty() {
            return Err(PortError::NoQueues(id));
        }
        let _alone = lock();
        let info = info::query(id)?;
        // No offloads that the driver switches on by itself: MBUF_FAST_FREE would be wrong for
        // packets with several owners or from several pools. The port's offloads are on for each
        // queue.
        let rx_conf = dpdk_sys::rte_eth_rxconf { offloads: 0, ..info.default_rxconf };
        let tx_conf = dpdk_sys::rte_eth_txconf { offloads: 0, ..info.default_txconf };
        // SAFETY: the driver has just filled it in.
        let known = unsafe { PortInfo::from_dpdk(&info) };
        if configuration::is_held(id) {
            let why = match configuration::may_be_closed(id) {
                true => {
                    "its driver cannot set up queues again: detach the device, and attach it again"
                }
                false => "some of its queues could not be set up: it cannot be used any more",
            };
            return Err(refused(id, why));
        }
        let mut agreement = Agreement::of(id, config, &known)?;
        let driver = Driver::of_port(&known.driver);
        let rooms = config.rx.iter().map(|queue| queue.pool.data_room());
        let room = |bytes: u16| bytes.saturating_sub(layout::PKTMBUF_HEADROOM);
        if rooms.map(room).any(|room| room < (driver.least_rx_room)()) {
            let why = "this release of its driver needs mbufs with room for 2048 bytes: make the pool's data_room larger";
            return Err(refused(id, why));
        }
        // The ports that it takes over are known only afterwards.
        if driver.sends_on_other_ports && valid_ports().into_iter().any(needs_guard) {
            let why = "it sends on queues of other ports, and the driver of one of them needs packets to be changed before they are sent";
            return Err(refused(id, why));
        }
        self.claim.guard = (driver.tx_guard)(&info, config);
        let (rx, tx) = (agreement.rx, agreement.tx);
        // SAFETY: plain data for which all zeros means: nothing special.
        let mut conf: dpdk_sys::rte_eth_conf = unsafe { MaybeUninit::zeroed().assume_init() };
        conf.rxmode.mtu = config.mtu.map_or(0, u32::from);
        conf.rxmode.offloads = agreement.rx_offloads.bits();
        conf.txmode.offloads = agreement.tx_offloads.bits();
        conf.intr_conf.set_lsc(agreement.link_events.into());
        if agreement.hash_types != 0 {
            // Frames reach several queues only if the device spreads them.
            conf.rxmode.mq_mode = dpdk_sys::RTE_ETH_MQ_RX_RSS;
            conf.rx_adv_conf.rss_conf.rss_hf = agreement.hash_types;
        }
        let _apart = apart(id);
        configuration::begin(id);
        let mut configure = |key: Option<&[u8]>| {
            rss_key::with_key(id, key, |pointer| {
                conf.rx_adv_conf.rss_conf.rss_key = pointer;
                conf.rx_adv_conf.rss_conf.rss_key_len = key.map_or(0, |key| key.len() as u8);
                // SAFETY: the claim makes this the only user of the port; `conf` is valid, and the key in it
                // lives until the port is configured with another.
                let code = unsafe { dpdk_sys::rte_eth_dev_configure(id.0, rx, tx, &conf) };
                check(id, "rte_eth_dev_configure", code).map(drop)
            })
        };
        match configure(agreement.key.as_deref()) {
            // Newer DPDK releases take a driver that reports no key length to support no key.
            Err(PortError::Call { errno: Errno::EINVAL, .. })
                if agreement.key.is_some() && info.hash_key_size == 0 =>
            {
                configure(None)?;
                agreement.key_left_out = true;
            }
            done => done?,
        }
        // SAFETY: looks a number up in DPDK's table.
        let socket = unsafe { dpdk_sys::rte_eth_dev_socket_id(id.0) } as u32;
        // Transmit queues first: net_tap of 24.11 and later can then cut TCP segments (in the other
        // order it refuses them).
        for (queue, setup) in (0u16..).zip(&config.tx) {
            let mut descriptors = setup.descriptors;
            adjust(id, None, Some(&mut descriptors))?;
            // SAFETY: the port is configured with this queue.
            check(id, "rte_eth_tx_queue_setup", unsafe {
                dpdk_sys::rte_eth_tx_queue_setup(id.0, queue, descriptors, socket, &tx_conf)
            })?;
        }
        for (queue, setup) in (0u16..).zip(&config.rx) {
            let mut descriptors = setup.descriptors;
            adjust(id, Some(&mut descriptors), None)?;
            let sockets = driver.leaves_sockets.then(leftover::open);
            // SAFETY: the port is configured with this queue, and the pool lives as long as the Eal.
            let code = unsafe {
                dpdk_sys::rte_eth_rx_queue_setup(
                    id.0,
                    queue,
                    descriptors,
                    socket,
                    &rx_conf,
                    setup.pool.as_ptr(),
                )
            };
            configuration::restrict(id, (driver.after_rx_setup)(queue, code));
            if let Some(before) = sockets.filter(|_| code == 0) {
                leftover::note(id, &before);
            }
            check(id, "rte_eth_rx_queue_setup", code)?;
        }
        if config.no_packet_types {
            // SAFETY: no array of types is requested. An error means that the driver does not
            // support it.
            unsafe { dpdk_sys::rte_eth_dev_set_ptypes(id.0, 0, std::ptr::null_mut(), 0) };
        }
        configuration::complete(id);
        Ok(self.into(agreement))
    }
}

/// Rounds numbers of descriptors to values that the driver supports.
fn adjust(id: PortId, rx: Option<&mut u16>, tx: Option<&mut u16>) -> Result<(), PortError> {
    let pointer = |n: Option<&mut u16>| n.map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: null means that the number is not wanted.
    check(id, "rte_eth_dev_adjust_nb_rx_tx_desc", unsafe {
        dpdk_sys::rte_eth_dev_adjust_nb_rx_tx_desc(id.0, pointer(rx), pointer(tx))
    })
    .map(drop)
}

fn needs_guard(id: PortId) -> bool {
    info::query(id).is_ok_and(|info| (Driver::of_info(&info).needs_guard)())
}

impl<'eal> Port<'eal, Configured> {
    /// Starts the port (`rte_eth_dev_start`). Its link may take a while to come up; see
    /// [`PortControl::wait_link`]. A requested RSS table is set after the start, because drivers
    /// fill theirs at the start, and so is a key that the driver did not accept before. Frames that
    /// arrive in between are spread by the driver's own.
    ///
    /// # Errors
    /// [`PortError::Call`]; for net_af_xdp, net_af_packet, net_vhost and net_memif also of
    /// `rte_eth_add_tx_callback`: see [`TxQueue::send`].
    pub fn start(mut self) -> Result<Port<'eal, Started>, PortError> {
        let id = self.claim.id;
        let alone = lock();
        // DPDK restores the modes that were on before.
        let flag = Flag::of(id);
        // SAFETY: the claim makes this the only user of the port, whose queues are set up.
        let code = unsafe { dpdk_sys::rte_eth_dev_start(id.0) };
        if let Some(flag) = flag {
            flag.restore();
        }
        check(id, "rte_eth_dev_start", code)?;
        self.claim.started = true;
        let mut agreement = std::mem::take(&mut self.agreement);
        agreement.started(id);
        if interrupts::is_shared(id) {
            // SAFETY: the port has just been started with these queues, of which none is handed out yet.
            self.claim.gate = Some(unsafe { Gate::before(id, agreement.rx, agreement.tx) });
        }
        drop(alone);
        if self.claim.guard.is_some() {
            // SAFETY: the port is configured with these queues, and none is handed out yet.
            unsafe { TxGuard::post(id, agreement.tx, &self.claim.sentinels)? };
        }
        Ok(self.into(agreement))
    }

    /// Returns to the unconfigured state, for another configuration or for [`Eal::detach`].
    #[must_use]
    pub fn unconfigure(self) -> Port<'eal, Unconfigured> {
        self.into(Agreement::default())
    }
}

/// The queues of a started port, each handed out once.
///
/// To give them to lcores, destructure it: `let Queues { rx, tx } = port.queues();`, or use
/// [`pairs`](Self::pairs). A variable whose two fields are moved out one by one still borrows the
/// port, for the compiler, until the end of its scope; `port.stop()` is then refused (E0505).
#[derive(Debug)]
pub struct Queues<'port> {
    /// Receive queues, by number.
    pub rx: Vec<RxQueue<'port>>,
    /// Transmit queues, by number.
    pub tx: Vec<TxQueue<'port>>,
}

impl<'port> Queues<'port> {
    /// Pairs each receive queue with the transmit queue of the same number, for an lcore to poll.
    /// Queues without a partner are dropped.
    ///
    /// ```standalone_crate
    /// use dpdk::{Burst, Eal, LaunchError};
    ///
    /// # fn run(eal: &Eal, mut port: dpdk::Port<'_, dpdk::Started>) -> Result<(), Box<dyn std::error::Error>> {
    /// let work = port.queues().pairs();
    /// eal.scope(|scope| {
    ///     for (lcore, (mut rx, mut tx)) in eal.workers().into_iter().zip(work) {
    ///         scope.launch(lcore, move || {
    ///             for _ in 0..1000 {
    ///                 let mut burst = Burst::<32>::new();
    ///                 rx.receive(&mut burst);
    ///                 tx.send(&mut burst);
    ///             }
    ///         })?;
    ///     }
    ///     Ok::<(), LaunchError>(())
    /// })?;
    /// port.stop()?; // the queues are gone
    /// # Ok(())
    /// # }
    /// # let (eal, _) = Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256 --vdev net_null0".split(' '))?;
    /// # let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig { count: 8191, ..dpdk::PoolConfig::named("packets") })?;
    /// # let config = dpdk::PortConfig { rx: vec![dpdk::RxConfig::new(&pool); 2], tx: vec![Default::default(); 2], ..Default::default() };
    /// # let port = eal.take_port(eal.ports()[0])?.configure(&config)?.start()?;
    /// # let control = port.control();
    /// # run(&eal, port)?;
    /// # assert_eq!(control.stats()?.opackets, 32_000 * eal.workers().len().min(2) as u64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pairs(self) -> Vec<(RxQueue<'port>, TxQueue<'port>)> {
        self.rx.into_iter().zip(self.tx).collect()
    }
}

impl<'eal> Port<'eal, Started> {
    /// The port's queues. They borrow the port exclusively: the method can be called again only
    /// when all of them are gone, and until then the port cannot be stopped.
    #[must_use]
    pub fn queues(&mut self) -> Queues<'_> {
        let id = self.claim.id.0;
        let (callbacks, guard) = (&self.claim.callbacks, self.claim.guard.as_ref());
        // SAFETY: those that were handed out before are gone or forgotten.
        unsafe { callbacks.abandon(id) };
        Queues {
            // SAFETY: the port is started with these queues, stays so while they borrow it, and the
            // exclusive borrow makes them the only ones.
            rx: (0..self.agreement.rx)
                .map(|queue| unsafe { RxQueue::new(id, queue, callbacks) })
                .collect(),
            // SAFETY: as above.
            tx: (0..self.agreement.tx)
                .map(|queue| unsafe { TxQueue::new(id, queue, callbacks, guard) })
                .collect(),
        }
    }

    /// Stops the port (`rte_eth_dev_stop`).
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn stop(mut self) -> Result<Port<'eal, Configured>, PortError> {
        let id = self.claim.id;
        // SAFETY: no queue is alive: each borrows the port, which is moved in here.
        unsafe { self.claim.callbacks.abandon(id.0) };
        // SAFETY: as above; they borrow nothing.
        unsafe { self.claim.sentinels.clear(id.0) };
        let alone = lock();
        let apart = apart(id);
        // SAFETY: as above.
        check(id, "rte_eth_dev_stop", unsafe { dpdk_sys::rte_eth_dev_stop(id.0) })?;
        drop(apart);
        drop(alone);
        self.claim.gate = None;
        self.claim.started = false;
        let agreement = std::mem::take(&mut self.agreement);
        Ok(self.into(agreement))
    }
}
