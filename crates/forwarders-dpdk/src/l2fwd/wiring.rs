// SPDX-License-Identifier: BSD-3-Clause
//! Combines the queues of the started ports according to the plan and assigns them to the lcores.

use std::collections::BTreeMap;
use std::sync::Arc;

use dpdk::{Eal, Mempool, Port, PortControl, PortError, Queues, RxQueue, Started, TxQueue};
use forwarders_common::l2fwd::{Counts, Options, Path, Plan, Screen};

use super::counters::Counters;
use super::error::RunError;
use super::forward::{self, Buffered, Lane, Output, Unbuffered};
use crate::ethernet;
use crate::polling::QueueFigures;
use crate::stop::Stop;

/// Queues and addresses of the started ports, each to be taken once.
pub(super) struct Wiring<'port> {
    rx: BTreeMap<u16, RxQueue<'port>>,
    tx: BTreeMap<u16, TxQueue<'port>>,
    macs: BTreeMap<u16, [u8; 6]>,
    counters: &'port Counters,
    figures: &'port [Arc<QueueFigures>],
    pool: Mempool<'port>,
    mac_updating: bool,
    burst_forwarding: bool,
}

impl<'port> Wiring<'port> {
    pub(super) fn new(
        started: &'port mut [Port<'_, Started>],
        controls: &[PortControl<'_>],
        counters: &'port Counters,
        figures: &'port [Arc<QueueFigures>],
        pool: Mempool<'port>,
        options: &Options,
    ) -> Result<Self, PortError> {
        let mut wiring = Self {
            rx: BTreeMap::new(),
            tx: BTreeMap::new(),
            macs: BTreeMap::new(),
            counters,
            figures,
            pool,
            mac_updating: options.mac_updating,
            burst_forwarding: options.burst_forwarding,
        };
        for control in controls {
            wiring.macs.insert(control.id().index(), control.mac()?);
        }
        for port in started {
            let id = port.id().index();
            let Queues { rx, tx } = port.queues();
            wiring.rx.extend(rx.into_iter().map(|queue| (id, queue)));
            wiring.tx.extend(tx.into_iter().map(|queue| (id, queue)));
        }
        Ok(wiring)
    }

    /// Runs every lcore's loop until `stop`; the main lcore also prints the screen.
    pub(super) fn forward(
        self,
        eal: &Eal,
        plan: &Plan,
        screen: Screen<'_>,
        stop: &Stop,
    ) -> Result<(), RunError> {
        if self.burst_forwarding {
            self.run(eal, plan, screen, stop, Unbuffered)
        } else {
            self.run(eal, plan, screen, stop, Buffered::new)
        }
    }

    fn run<O>(
        mut self,
        eal: &Eal,
        plan: &Plan,
        mut screen: Screen<'_>,
        stop: &Stop,
        output: impl Fn(TxQueue<'port>) -> O + Copy,
    ) -> Result<(), RunError>
    where
        O: Output<'port> + Send,
    {
        let mut jobs = Vec::new();
        for lcore in eal.lcores() {
            let lanes: Vec<Lane<'port, O>> = plan
                .of(lcore.id())
                .map(|path| self.lane(path, output))
                .collect::<Result<_, _>>()?;
            if !lanes.is_empty() {
                jobs.push((lcore, lanes));
            }
        }
        let main = eal.main_lcore();
        let mut own = None;
        eal.scope(|scope| {
            let launched = jobs.into_iter().try_for_each(|(lcore, lanes)| {
                if lcore == main {
                    own = Some(lanes);
                    return Ok(());
                }
                scope.launch(lcore, move || forward::run(lanes, stop, |_| {}))
            });
            if launched.is_err() {
                stop.raise();
            }
            screen.begin();
            match own.take() {
                Some(lanes) => forward::run(lanes, stop, |cycles| screen.tick(cycles)),
                None => screen.wait(stop),
            }
            launched
        })?;
        Ok(())
    }

    /// Takes the queues of one path.
    fn lane<O>(
        &mut self,
        path: &Path,
        output: impl Fn(TxQueue<'port>) -> O,
    ) -> Result<Lane<'port, O>, RunError> {
        self.take_lane(path, output).ok_or(RunError::Unwired(path.rx_port, path.tx_port))
    }

    fn take_lane<O>(
        &mut self,
        path: &Path,
        output: impl Fn(TxQueue<'port>) -> O,
    ) -> Option<Lane<'port, O>> {
        let source = *self.macs.get(&path.tx_port)?;
        let counters = self.counters;
        Some(Lane {
            figures: self.figures.iter().find(|figures| figures.port == path.rx_port)?,
            rx_counters: counters.of(path.rx_port)?,
            tx_counters: counters.of(path.tx_port)?,
            rx: self.rx.remove(&path.rx_port)?,
            out: output(self.tx.remove(&path.tx_port)?),
            addresses: self
                .mac_updating
                .then(|| ethernet::addresses_of_l2fwd(path.tx_port, source)),
            spare: self.pool,
            counts: Counts::default(),
        })
    }
}
