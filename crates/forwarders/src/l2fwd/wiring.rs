// SPDX-License-Identifier: BSD-3-Clause
//! The queues of the started ports, put together as the plan says and dealt out to the lcores.

use std::collections::BTreeMap;
use std::sync::Arc;

use dpdk::{
    Eal, Mempool, Port, PortControl, PortError, Queues, RxQueue, Started, TxBuffer, TxQueue,
};

use super::counters::{Counters, Counts};
use super::forward::{self, Buffered, Lane, Output, Unbuffered};
use super::options::Options;
use super::plan::{Path, Plan};
use super::run::RunError;
use super::screen::Screen;
use crate::ethernet;
use crate::polling::Meter;
use crate::stop::Stop;

/// Queues and addresses of the started ports, each to be taken once.
pub(super) struct Wiring<'port> {
    rx: BTreeMap<u16, RxQueue<'port>>,
    tx: BTreeMap<u16, TxQueue<'port>>,
    macs: BTreeMap<u16, [u8; 6]>,
    counters: &'port Counters,
    pool: Mempool<'port>,
    mac_updating: bool,
    burst_forwarding: bool,
}

impl<'port> Wiring<'port> {
    pub(super) fn new(
        started: &'port mut [Port<'_, Started>],
        controls: &[PortControl<'_>],
        counters: &'port Counters,
        pool: Mempool<'port>,
        options: &Options,
    ) -> Result<Self, PortError> {
        let mut wiring = Self {
            rx: BTreeMap::new(),
            tx: BTreeMap::new(),
            macs: BTreeMap::new(),
            counters,
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

    /// Runs every lcore's loop until `stop`; the main lcore also sees to the screen. `meters` are those
    /// of the plan's lcores, in their order.
    pub(super) fn forward(
        self,
        eal: &Eal,
        plan: &Plan,
        meters: Vec<Meter>,
        screen: Screen<'_>,
        stop: &Stop,
    ) -> Result<(), RunError> {
        if self.burst_forwarding {
            self.run(eal, plan, meters, screen, stop, Unbuffered)
        } else {
            self.run(eal, plan, meters, screen, stop, |queue| Buffered(TxBuffer::new(queue)))
        }
    }

    fn run<O>(
        mut self,
        eal: &Eal,
        plan: &Plan,
        meters: Vec<Meter>,
        mut screen: Screen<'_>,
        stop: &Stop,
        output: impl Fn(TxQueue<'port>) -> O + Copy,
    ) -> Result<(), RunError>
    where
        O: Output<'port> + Send,
    {
        let mut jobs = Vec::new();
        for (lcore, meter) in plan.lcores().into_iter().zip(meters) {
            let lanes: Vec<Lane<'port, O>> =
                plan.of(lcore).map(|path| self.lane(path, output)).collect::<Result<_, _>>()?;
            jobs.push((lcore, lanes, meter));
        }
        let main = eal.main_lcore();
        let mut own = None;
        eal.scope(|scope| {
            let launched = jobs.into_iter().try_for_each(|(id, lanes, meter)| {
                if id == main.id() {
                    own = Some((lanes, meter));
                    return Ok(());
                }
                match eal.workers().into_iter().find(|lcore| lcore.id() == id) {
                    Some(lcore) => {
                        scope.launch(lcore, move || forward::run(lanes, meter, stop, |_| {}))
                    }
                    None => Ok(()),
                }
            });
            if launched.is_err() {
                stop.raise();
            }
            screen.begin();
            match own.take() {
                Some((lanes, meter)) => {
                    forward::run(lanes, meter, stop, |cycles| screen.tick(cycles));
                }
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
        // 02:00:00:00:00:PORT
        let destination = [2, 0, 0, 0, 0, path.tx_port as u8];
        let of = |port: u16| {
            self.counters
                .iter()
                .find(|(id, _)| *id == port)
                .map(|(_, counters)| Arc::clone(counters))
        };
        Some(Lane {
            rx_counters: of(path.rx_port)?,
            tx_counters: of(path.tx_port)?,
            rx: self.rx.remove(&path.rx_port)?,
            out: output(self.tx.remove(&path.tx_port)?),
            addresses: self.mac_updating.then(|| ethernet::addresses(destination, source)),
            spare: self.pool,
            counts: Counts::default(),
        })
    }
}
