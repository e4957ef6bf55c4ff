// SPDX-License-Identifier: BSD-3-Clause
//! An `Eal` for tests, without root, hugepages or devices other than those named; and its ports.
#![allow(dead_code)] // No test uses all of it.

pub mod holdings;
pub mod namespace;
pub mod property;
pub mod skip;

use dpdk::{
    Burst, Eal, Mbuf, Mempool, Port, PortConfig, RxConfig, RxQueue, SharedMbuf, Started, TxConfig,
};

const MEGABYTES: u32 = 256;

/// Starts DPDK with these devices and two lcores, on the first and the last CPU that the test may use.
pub fn eal(vdevs: &[&str]) -> Eal {
    eal_with(vdevs, MEGABYTES, &[])
}

/// The same with this much memory.
pub fn large_eal(megabytes: u32) -> Eal {
    eal_with(&[], megabytes, &[])
}

/// The same for a test in which DPDK refuses a lot: it logs less about that.
pub fn quiet_eal(vdevs: &[&str]) -> Eal {
    eal_with(vdevs, MEGABYTES, &["--log-level=critical"])
}

fn eal_with(vdevs: &[&str], megabytes: u32, more: &[&str]) -> Eal {
    let cpus = host::allowed_cpus();
    let (first, last) = (cpus.first().unwrap(), cpus.last().unwrap());
    let mut arguments = vec![
        "test".to_owned(),
        "--lcores".into(),
        format!("0@{first},1@{last}"),
        "--no-pci".into(),
        "--no-huge".into(),
        "--no-shconf".into(),
        "-m".into(),
        megabytes.to_string(),
        "--file-prefix".into(),
        format!("linerate-test-{}", std::process::id()),
    ];
    arguments.extend(more.iter().map(|&argument| argument.to_owned()));
    for vdev in vdevs {
        arguments.extend(["--vdev".to_owned(), (*vdev).to_owned()]);
    }
    Eal::init(arguments).unwrap().0
}

/// The port of a device, started with one queue in each direction.
pub fn started<'eal>(eal: &'eal Eal, pool: &Mempool<'eal>, name: &str) -> Port<'eal, Started> {
    started_with(eal, pool, name, 1)
}

/// The port of a device, started with this many queues in each direction.
pub fn started_with<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    name: &str,
    queues: usize,
) -> Port<'eal, Started> {
    let id = eal.port_named(name).unwrap();
    eal.take_port(id)
        .unwrap()
        .configure(&PortConfig {
            rx: (0..queues).map(|_| RxConfig::new(pool)).collect(),
            tx: (0..queues).map(|_| TxConfig::default()).collect(),
            no_packet_types: true,
            ..PortConfig::default()
        })
        .unwrap()
        .start()
        .unwrap()
}

/// Frees the packets that wait in a queue.
pub fn empty(queue: &mut RxQueue<'_>) {
    let mut burst = Burst::<64>::new();
    while queue.receive(&mut burst) > 0 {
        burst.clear();
    }
}

/// A packet that is writable, or one that is shared.
pub enum Packet<'m> {
    Own(Mbuf<'m>),
    Shared(SharedMbuf<'m>),
}

impl<'m> Packet<'m> {
    pub fn get(&self) -> &Mbuf<'m> {
        match self {
            Self::Own(mbuf) => mbuf,
            Self::Shared(shared) => shared,
        }
    }
}
