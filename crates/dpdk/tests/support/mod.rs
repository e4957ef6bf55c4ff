// SPDX-License-Identifier: BSD-3-Clause
//! An Eal for a test: no root, no hugepages, no devices but those named. And a port of it.
#![allow(dead_code)] // No test uses all of it.

use dpdk::{Burst, Eal, Mempool, Port, PortConfig, RxConfig, RxQueue, Started, TxConfig};

/// Starts DPDK on the first CPU that the test may use, with these devices.
pub fn eal(vdevs: &[&str]) -> Eal {
    let mut arguments = vec![
        "test".to_owned(),
        "--no-pci".into(),
        "--no-huge".into(),
        "--no-shconf".into(),
        "-m".into(),
        "256".into(),
        "--file-prefix".into(),
        format!("linerate-test-{}", std::process::id()),
    ];
    for vdev in vdevs {
        arguments.extend(["--vdev".to_owned(), (*vdev).to_owned()]);
    }
    Eal::init(arguments).unwrap().0
}

/// The port of a device, started with one queue each way.
pub fn started<'eal>(eal: &'eal Eal, pool: &Mempool<'eal>, name: &str) -> Port<'eal, Started> {
    let id = eal.ports().into_iter().find(|id| id.name().as_deref() == Some(name)).unwrap();
    eal.take_port(id)
        .unwrap()
        .configure(&PortConfig {
            rx: vec![RxConfig::new(pool)],
            tx: vec![TxConfig::default()],
            no_packet_types: true,
        })
        .unwrap()
        .start()
        .unwrap()
}

/// Frees what waits in a queue.
pub fn empty(queue: &mut RxQueue<'_>) {
    let mut burst = Burst::<64>::new();
    while queue.receive(&mut burst) > 0 {
        burst.clear();
    }
}
