// SPDX-License-Identifier: BSD-3-Clause
//! Random sequences of attaching, configuring, starting, filtering, stopping, dropping and
//! detaching. Whatever was requested and refused in between, at the end pools are full and no port
//! is left.

use std::collections::BTreeMap;

use dpdk::vdev::{Null, Ring};
use dpdk::{
    Burst, Configured, Eal, Mempool, Port, PortConfig, PortControl, PortError, Request, Reta, Rss,
    RssHashTypes, RxOffloads, Started, TxOffloads, Unconfigured, VlanModes, XstatIds,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::devices::queues;

/// Devices that come and go.
const DEVICES: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Attach(usize),
    Configure { at: usize, queues: usize, key: usize, reta: Vec<u16>, rx: u64, tx: u64 },
    Start(usize),
    Poll(usize),
    Change { at: usize, number: u16 },
    Stop(usize),
    Unconfigure(usize),
    Drop(usize),
    Detach(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let at = || 0..DEVICES;
    let configure =
        (at(), 1..5usize, 38..42usize, prop::collection::vec(0..5u16, 0..4), any::<u64>())
            .prop_map(|(at, queues, key, reta, bits)| Step::Configure {
                at,
                queues,
                key,
                reta,
                rx: bits,
                tx: bits >> 7,
            });
    prop_oneof![
        3 => at().prop_map(Step::Attach),
        6 => configure,
        5 => at().prop_map(Step::Start),
        4 => at().prop_map(Step::Poll),
        6 => (at(), any::<u16>()).prop_map(|(at, number)| Step::Change { at, number }),
        3 => at().prop_map(Step::Stop),
        1 => at().prop_map(Step::Unconfigure),
        1 => at().prop_map(Step::Drop),
        1 => at().prop_map(Step::Detach),
    ]
}

enum Stage<'eal> {
    Idle(Port<'eal, Unconfigured>),
    Ready(Port<'eal, Configured>),
    Running(Port<'eal, Started>),
}

impl<'eal> Stage<'eal> {
    fn control(&self) -> PortControl<'eal> {
        match self {
            Self::Idle(port) => port.control(),
            Self::Ready(port) => port.control(),
            Self::Running(port) => port.control(),
        }
    }

    fn idle(self) -> Port<'eal, Unconfigured> {
        match self {
            Self::Idle(port) => port,
            Self::Ready(port) => port.unconfigure(),
            Self::Running(port) => port.stop().unwrap().unconfigure(),
        }
    }
}

struct State<'eal> {
    eal: &'eal Eal,
    pool: Mempool<'eal>,
    ports: BTreeMap<usize, Stage<'eal>>,
    ids: Vec<XstatIds>,
}

/// Those members of a set whose bits, by index, are set.
fn some<S: Copy + std::ops::BitOr<Output = S>>(all: &[S], bits: u64, none: S) -> S {
    let chosen = all.iter().enumerate().filter(|(place, _)| bits >> place & 1 != 0);
    chosen.fold(none, |set, (_, member)| set | *member)
}

const RX: [RxOffloads; 4] =
    [RxOffloads::SCATTER, RxOffloads::VLAN_STRIP, RxOffloads::RSS_HASH, RxOffloads::TIMESTAMP];
const TX: [TxOffloads; 3] = [TxOffloads::MULTI_SEGS, TxOffloads::TCP_TSO, TxOffloads::VLAN_INSERT];
const TYPES: [RssHashTypes; 3] = [RssHashTypes::IP, RssHashTypes::L3_SRC_ONLY, RssHashTypes::TCP];

impl<'eal> State<'eal> {
    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Attach(at) if !self.ports.contains_key(&at) => {
                let id = match at {
                    0 => self.eal.attach_vdev(&Ring::new("net_ring_seq")),
                    _ => self.eal.attach_vdev(&Null::new(format!("net_null_seq{at}"))),
                };
                let port = self.eal.take_port(id.unwrap()).unwrap();
                self.ports.insert(at, Stage::Idle(port));
            }
            Step::Configure { at, queues: count, key, reta, rx, tx } => {
                let Some(stage) = self.ports.remove(&at) else { return Ok(()) };
                let port = stage.idle();
                let id = port.id();
                let (wanted, required) = (some(&RX, rx, RxOffloads::EMPTY), rx >> 60 == 0);
                let bad = reta.iter().any(|queue| usize::from(*queue) >= count);
                let config = PortConfig {
                    rss: Rss {
                        key: (rx >> 20 & 1 != 0).then(|| vec![key as u8; key]),
                        hash_types: Some(some(&TYPES, rx >> 24, RssHashTypes::EMPTY)),
                        reta: Reta::RoundRobin(reta),
                    },
                    rx_offloads: match required {
                        true => Request::required(wanted),
                        false => Request::wanted(wanted),
                    },
                    tx_offloads: Request::wanted(some(&TX, tx, TxOffloads::EMPTY)),
                    ..queues(&self.pool, count)
                };
                let stage = match port.configure(&config) {
                    Ok(port) => {
                        prop_assert!(!bad);
                        let missing = !(wanted - port.rx_offloads()).is_empty();
                        let said =
                            port.shortfalls().iter().any(|it| it.to_string().contains("RX off"));
                        prop_assert_eq!(missing, said);
                        Stage::Ready(port)
                    }
                    // Refused; the port was returned.
                    Err(_) => {
                        let too_many = at == 0 && count > 1;
                        prop_assert!(bad || required || too_many || count > 4 || at == 0);
                        Stage::Idle(self.eal.take_port(id).unwrap())
                    }
                };
                self.ports.insert(at, stage);
            }
            Step::Start(at) => self.change(at, |stage| match stage {
                Stage::Ready(port) => Stage::Running(port.start().unwrap()),
                other => other,
            }),
            Step::Poll(at) => {
                let pool = self.pool;
                if let Some(Stage::Running(port)) = self.ports.get_mut(&at) {
                    let mut queues = port.queues();
                    let mut burst = Burst::<8>::new();
                    for (rx, tx) in queues.rx.iter_mut().zip(&mut queues.tx) {
                        pool.fill(&mut burst, 3).unwrap();
                        tx.send(&mut burst);
                        rx.receive(&mut burst);
                        tx.send(&mut burst);
                    }
                    // Packets in rings are received, so that the pool can be counted.
                    if at == 0 {
                        queues.rx.iter_mut().for_each(super::support::empty);
                    }
                }
            }
            Step::Change { at, number } => self.adjust(at, number)?,
            Step::Stop(at) => self.change(at, |stage| match stage {
                Stage::Running(port) => Stage::Ready(port.stop().unwrap()),
                other => other,
            }),
            Step::Unconfigure(at) => self.change(at, |stage| Stage::Idle(stage.idle())),
            Step::Drop(at) => {
                let eal = self.eal;
                self.change(at, |stage| {
                    let id = stage.control().id();
                    drop(stage);
                    Stage::Idle(eal.take_port(id).unwrap())
                });
            }
            Step::Detach(at) => {
                if let Some(stage) = self.ports.remove(&at) {
                    self.eal.detach(stage.idle()).unwrap();
                }
            }
            Step::Attach(_) => {}
        }
        Ok(())
    }

    fn change(&mut self, at: usize, to: impl FnOnce(Stage<'eal>) -> Stage<'eal>) {
        if let Some(stage) = self.ports.remove(&at) {
            self.ports.insert(at, to(stage));
        }
    }

    /// Queries and changes settings, which may be refused; accepted ones must read back.
    fn adjust(&mut self, at: usize, number: u16) -> Result<(), TestCaseError> {
        let Some(stage) = self.ports.get(&at) else { return Ok(()) };
        let control = stage.control();
        let on = number & 1 != 0;
        match number >> 1 & 7 {
            0 => {
                if control.set_promiscuous(on).is_ok() {
                    prop_assert_eq!(control.promiscuous().unwrap(), on);
                }
            }
            1 => drop(control.set_vlan_modes(VlanModes {
                strip: on,
                filter: !on,
                ..VlanModes::default()
            })),
            2 => drop((control.add_vlan(number), control.remove_vlan(number))),
            3 => {
                let mac = [2, 0, 0, 0, (number >> 8) as u8, number as u8];
                if control.set_mac(mac).is_ok() {
                    prop_assert_eq!(control.mac().unwrap(), mac);
                }
                drop((
                    control.add_mac(mac),
                    control.remove_mac(mac),
                    control.set_multicast(&[mac]),
                ));
            }
            4 => {
                let table = vec![number >> 4 & 3; 128];
                if control.set_reta(&table).is_ok() {
                    prop_assert_eq!(control.reta().unwrap(), table);
                }
            }
            5 => {
                let key = [number as u8; 40];
                if control.set_rss_hash(RssHashTypes::IP, Some(&key)).is_ok() {
                    prop_assert_eq!(control.rss_key().unwrap(), key);
                }
            }
            6 => {
                for ids in &self.ids {
                    drop(control.xstats_into(ids, &mut vec![0; ids.len()]));
                }
                let ids = match control.xstat_names() {
                    Err(PortError::NotConfigured(_)) => return Ok(()),
                    names => names.unwrap().all(),
                };
                prop_assert!(control.xstats_into(&ids, &mut vec![0; ids.len()]).is_ok());
                self.ids.push(ids);
            }
            _ => drop((control.set_mtu(number), control.reset_stats(), control.reset_xstats())),
        }
        Ok(())
    }
}

pub fn leave_nothing_behind(eal: &Eal, pool: &Mempool<'_>) {
    let before = eal.ports();
    TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() })
        .run(&prop::collection::vec(step(), 1..60), |steps| {
            let mut state = State { eal, pool: *pool, ports: BTreeMap::new(), ids: Vec::new() };
            let outcome = steps.into_iter().try_for_each(|step| state.take(step));
            for stage in std::mem::take(&mut state.ports).into_values() {
                eal.detach(stage.idle()).unwrap();
            }
            outcome?;
            prop_assert_eq!(eal.ports(), before.clone());
            prop_assert!(pool.is_full());
            Ok(())
        })
        .unwrap();
}
