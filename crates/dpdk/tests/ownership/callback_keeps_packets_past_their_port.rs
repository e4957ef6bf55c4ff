// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! Packets that a callback has kept, while their port stops.

use std::sync::{Arc, Mutex};

use dpdk::{Burst, Port, Started};

pub fn keep(mut port: Port<'_, Started>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let mut queues = port.queues();
    let aside = kept.clone();
    let _ = queues.rx[0].add_callback(move |packets| aside.lock().unwrap().extend(packets.pop()));
    queues.rx[0].receive(&mut Burst::<32>::new());
    drop(queues);
    #[cfg(not(fault))]
    drop(kept);
    let _ = port.stop();
    #[cfg(fault)]
    drop(kept);
}
