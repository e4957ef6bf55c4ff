// SPDX-License-Identifier: BSD-3-Clause
//! Features of ports: RSS, offloads, filters, statistics, virtual devices that come and go. The
//! results of safe calls are compared with DPDK's own.
//!
//! One test, because DPDK starts once in a process. net_null has RSS and a table of 128 entries; net_ring has neither.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod control;
#[path = "../support/devices.rs"]
mod devices;
mod offloads;
mod rss;
mod sequences;
#[path = "../support/mod.rs"]
mod support;
mod vdevs;
mod xstats;

use dpdk::{Eal, Errno, Mempool, PoolConfig, Port, PortError, Unconfigured};

#[test]
fn ports_give_what_they_can() {
    let eal = support::eal(&["net_ring0", "net_null0,size=64"]);
    let config = PoolConfig { count: 8191, cache: 256, ..PoolConfig::named("packets") };
    let pool = Mempool::packet_pool(&eal, &config).unwrap();
    rss::the_hash_is_that_of_dpdk();
    rss::a_driver_without_rss_says_so(&eal, &pool);
    rss::a_driver_with_rss_does_what_it_is_told(&eal, &pool);
    rss::what_cannot_be_is_refused(&eal, &pool);
    offloads::names_are_those_of_dpdk();
    offloads::what_is_given_is_what_dpdk_has(&eal, &pool);
    control::link_and_modes(&eal, &pool);
    control::what_happens_is_kept(&eal, &pool);
    control::addresses(&eal, &pool);
    control::vlans(&eal, &pool);
    xstats::values_are_those_of_dpdk(&eal, &pool);
    xstats::numbers_are_good_for_one_configuration(&eal, &pool);
    vdevs::memif_pair(&eal, &pool);
    vdevs::memif_wants_room(&eal);
    vdevs::pcap_files(&eal, &pool);
    vdevs::null_and_ring(&eal, &pool);
    vdevs::statistics_want_queues(&eal, &pool);
    vdevs::vhost_and_virtio_user(&eal, &pool);
    vdevs::refusals_leave_nothing_behind(&eal);
    sequences::leave_nothing_behind(&eal, &pool);
    assert!(pool.is_full());
}

/// The port of a device that exists from the start.
pub fn take<'eal>(eal: &'eal Eal, name: &str) -> Port<'eal, Unconfigured> {
    let id = eal.port_named(name).unwrap();
    eal.take_port(id).unwrap()
}

/// The number of the error with which DPDK refused any call.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, PortError>) -> Errno {
    match result.unwrap_err() {
        PortError::Call { errno, .. } => errno,
        other => panic!("{other}"),
    }
}
