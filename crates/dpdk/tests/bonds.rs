// SPDX-License-Identifier: BSD-3-Clause
//! A bond sends on queues of other ports, where no guard checks packets: configuration fails if a
//! driver that needs a guard is present.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use dpdk::{Mempool, PoolConfig, PortConfig, PortError, RxConfig, TxConfig};

#[test]
fn bonds_are_kept_from_guarded_drivers() {
    let directory = tempfile::tempdir().unwrap();
    let guarded = format!("net_vhost0,iface={}", directory.path().join("s").display());
    let eal = support::eal(&["net_null0", &guarded, "net_bonding0,mode=1"]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    let one = || PortConfig {
        rx: vec![RxConfig::new(&pool)],
        tx: vec![TxConfig::default()],
        ..PortConfig::default()
    };
    let configure = |name: &str| {
        let port = eal.take_port(eal.port_named(name).unwrap()).unwrap();
        port.configure(&one()).map(drop)
    };
    let refused = configure("net_bonding0").unwrap_err();
    assert!(matches!(refused, PortError::Unsafe(..)), "{refused}");
    assert!(refused.to_string().contains("sends on queues of other ports"), "{refused}");
    configure("net_null0").unwrap();
    configure("net_vhost0").unwrap();
}
