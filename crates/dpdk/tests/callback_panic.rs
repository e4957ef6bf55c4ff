// SPDX-License-Identifier: BSD-3-Clause
//! A panic in a callback ends the process with its message, and never unwinds into C.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use dpdk::{Burst, Mempool, PoolConfig};

/// Set in the process that must end.
const VICTIM: &str = "LINERATE_TEST_PANICS";

#[test]
fn a_panic_in_a_callback_ends_the_process_with_its_message() {
    match std::env::var(VICTIM).as_deref() {
        Ok("received") => panic_on(true),
        Ok(_) => panic_on(false),
        Err(_) => ["received", "sent"].into_iter().for_each(watch),
    }
}

fn watch(way: &str) {
    let output =
        Command::new(std::env::current_exe().unwrap()).env(VICTIM, way).arg("--nocapture").output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(6), "SIGABRT: {:?} {text}", output.status);
    assert!(text.contains("no such packet was expected"), "{text}");
    assert!(!text.contains("unwound"), "{text}");
}

fn panic_on(received: bool) {
    let eal = support::eal(&["net_ring0"]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    let mut port = support::started(&eal, &pool, "net_ring0");
    let mut queues = port.queues();
    if received {
        queues.rx[0].add_callback(|_| panic!("no such packet was expected")).unwrap();
    } else {
        queues.tx[0].add_callback(|_| panic!("no such packet was expected")).unwrap();
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut burst = Burst::<32>::new();
        pool.fill(&mut burst, 1).unwrap();
        queues.tx[0].send(&mut burst);
        queues.rx[0].receive(&mut burst);
    }));
    eprintln!("unwound: {}", result.is_err());
}
