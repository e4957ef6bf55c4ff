// SPDX-License-Identifier: BSD-3-Clause
//! `callback-cost`: compares the cost of a callback that is a closure with that of a C-style DPDK
//! callback.
//!
//!     callback-cost [EAL options] --vdev net_ring0 -- none|raw|closure|empty-raw|empty-closure POLLS
//!
//! Sends 32 packets to itself and receives them, POLLS times, with a receive callback that adds up
//! their lengths. `raw` is a C-style callback: a function on pointers, with a pointer to its state.
//! `empty-..` polls an empty queue. `scripts/count-callbacks` counts the instructions.

use std::ffi::c_void;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dpdk::{Burst, Eal, Mempool, PoolConfig, PortConfig, RxConfig, RxQueue, TxConfig};
use dpdk_sys::{layout, rte_mbuf};

/// The sum of the callbacks, where the compiler must keep it.
static BYTES: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("callback-cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (eal, words) = Eal::init(std::env::args_os())?;
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let [kind, polls] = words.as_slice() else { return Err("KIND POLLS are missing".into()) };
    let polls: u64 = polls.parse()?;
    let id = *eal.ports().first().ok_or("no port: add --vdev net_ring0")?;
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets"))?;
    let config = PortConfig {
        rx: vec![RxConfig::new(&pool)],
        tx: vec![TxConfig::default()],
        ..PortConfig::default()
    };
    let mut port = eal.take_port(id)?.configure(&config)?.start()?;
    let mut queues = port.queues();
    let Some((rx, tx)) = queues.rx.first_mut().zip(queues.tx.first_mut()) else {
        return Err("no queues".into());
    };
    let (empty, how) = match kind.strip_prefix("empty-") {
        Some(how) => (true, how),
        None => (false, kind.as_str()),
    };
    match how {
        "none" => {}
        "raw" => add_raw(rx)?,
        "closure" => {
            let mut bytes = 0;
            rx.add_callback(move |packets| {
                for packet in packets.iter() {
                    bytes += packet.packet_len() as u64;
                }
                BYTES.store(bytes, Relaxed);
            })?;
        }
        other => return Err(format!("no kind {other:?}").into()),
    }
    let mut burst = Burst::<32>::new();
    if empty {
        (0..polls).for_each(|_| assert_eq!(rx.receive(&mut burst), 0));
    } else {
        pool.fill(&mut burst, 32)?;
        burst.iter_mut().for_each(|packet| drop(packet.resize(60)));
        for _ in 0..polls {
            tx.send(&mut burst);
            rx.receive(&mut burst);
        }
    }
    println!("{}", BYTES.load(Relaxed));
    Ok(())
}

/// The state of the raw callback.
static mut STATE: u64 = 0;

fn add_raw(rx: &RxQueue<'_>) -> Result<(), &'static str> {
    // SAFETY: the port is started with this queue, and the function and its state live for ever.
    let record = unsafe {
        dpdk_sys::rte_eth_add_rx_callback(
            rx.port().index(),
            rx.queue(),
            Some(raw),
            (&raw mut STATE).cast(),
        )
    };
    if record.is_null() { Err("the callback was refused") } else { Ok(()) }
}

unsafe extern "C" fn raw(
    _port: u16,
    _queue: u16,
    packets: *mut *mut rte_mbuf,
    received: u16,
    _room: u16,
    state: *mut c_void,
) -> u16 {
    // SAFETY: DPDK passes this many packets, and the pointer that it was given.
    unsafe {
        let mut bytes = *state.cast::<u64>();
        for index in 0..usize::from(received) {
            let packet = (*packets.add(index)).cast::<u8>();
            bytes += u64::from(packet.add(layout::MBUF_PKT_LEN).cast::<u32>().read());
        }
        *state.cast::<u64>() = bytes;
        BYTES.store(bytes, Relaxed);
    }
    received
}
