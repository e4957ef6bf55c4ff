// SPDX-License-Identifier: BSD-3-Clause
//! A forwarder that holds each burst back for a known time, and records what it did: the reference
//! for the probe's latency (`tests/test_probe_latency.py`).
//!
//! From port 0 to port 1: `waiting EAL-OPTIONS -- bursts=N wait=CYCLES longer=CYCLES every=K way=WAY`.
//! Every `K`th burst waits for `longer` cycles instead of `wait`. `way` is what is done with a
//! burst:
//! - `plain`: it is sent;
//! - `drop`: every other packet of it is freed before;
//! - `copy`: a copy of each packet is sent after it;
//! - `clone`: clones that share the packets' bytes are sent before it;
//! - `again`: it is offered up to three times, until the port has taken it, then freed.
//!
//! At the end it prints, for every burst, the cycles between its own clock readings directly inside
//! the receive and send calls (after one has returned, before the other is called) and directly
//! outside of them: the probe's result must lie between the two.

mod support;

use dpdk::{Burst, Eal, Mbuf, Mempool, PoolConfig, SharedMbuf, TxQueue, tsc};
use serde_json::json;
use support::{Books, Done, Options, await_probe, configured, tell};

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Plain,
    Drop,
    Copy,
    Clone,
    Again,
}

/// Packets that a burst holds besides those received.
const WITH_COPIES: usize = 64;
const RECEIVED: usize = 32;

fn main() -> Done {
    let (eal, words) = Eal::init(std::env::args_os())?;
    let options = Options::new(words)?;
    let way = match options.text("way")? {
        "plain" => Way::Plain,
        "drop" => Way::Drop,
        "copy" => Way::Copy,
        "clone" => Way::Clone,
        "again" => Way::Again,
        other => return Err(format!("way={other}?").into()),
    };
    let (bursts, every) = (options.number("bursts")?, options.number("every")?);
    let waits = [options.number("wait")?, options.number("longer")?];

    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets"))?;
    let mut from = configured(&eal, &pool, 0, 1)?.start()?;
    let mut to = configured(&eal, &pool, 1, 1)?.start()?;
    await_probe(2)?;

    let mut books = Books::default();
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    let (mut from_queues, mut to_queues) = (from.queues(), to.queues());
    let (rx, tx) = (&mut from_queues.rx[0], &mut to_queues.tx[0]);
    let (mut offered, mut refused) = (0, 0);
    for number in 1..=bursts {
        let mut burst = Burst::<RECEIVED>::new();
        let before = tsc::now();
        books.receive(rx, &mut burst);
        let received = tsc::now();
        let wait = waits[usize::from(number % every == 0)];
        let mut ready = prepared(way, &mut burst, &pool, tx)?;
        offered += ready.len() as u64;
        while tsc::now().wrapping_sub(received) < wait {}
        let sending = tsc::now();
        tx.send(&mut ready);
        let sent = tsc::now();
        inside.push(sending.wrapping_sub(received));
        outside.push(sent.wrapping_sub(before));
        refused += u64::from(!ready.is_empty());
        if way == Way::Again {
            again(tx, &mut ready);
        }
    }
    let packets = books.packets();
    tell(&json!({
        "books": books.json(), "packets": packets, "offered": offered, "refused": refused,
        "inside": inside, "outside": outside,
    }))
}

/// The packets to be offered: the received ones first.
fn prepared<'m>(
    way: Way,
    received: &mut Burst<'m, RECEIVED>,
    pool: &Mempool<'m>,
    tx: &mut TxQueue<'m>,
) -> Done<Burst<'m, WITH_COPIES>> {
    let mut ready = Burst::new();
    match way {
        Way::Plain | Way::Again => ready.append(received),
        Way::Drop => {
            for (number, mbuf) in received.drain().enumerate() {
                if number % 2 == 0 {
                    put(&mut ready, mbuf)?;
                }
            }
        }
        Way::Copy => {
            let mut copies = Burst::<RECEIVED>::new();
            for mbuf in received.iter() {
                put(&mut copies, mbuf.copy_into(pool)?)?;
            }
            ready.append(received);
            ready.append(&mut copies);
        }
        Way::Clone => {
            let shared: Vec<SharedMbuf<'_>> = received.drain().map(Mbuf::share).collect();
            let mut clones = Burst::<RECEIVED>::new();
            for packet in &shared {
                put(&mut clones, packet.clone_into(pool)?)?;
            }
            tx.send(&mut clones);
            drop(clones);
            for packet in shared {
                put(&mut ready, packet.unshare().map_err(|_| "the port kept a clone")?)?;
            }
        }
    }
    Ok(ready)
}

fn put<'m, const N: usize>(burst: &mut Burst<'m, N>, mbuf: Mbuf<'m>) -> Done {
    burst.push(mbuf).map_err(|_| "more packets than room".into())
}

/// Offers packets that the port refused twice more.
fn again(tx: &mut TxQueue<'_>, burst: &mut Burst<'_, WITH_COPIES>) {
    for _ in 0..2 {
        tx.send(burst);
    }
}
