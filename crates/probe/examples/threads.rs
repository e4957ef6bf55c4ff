// SPDX-License-Identifier: BSD-3-Clause
//! Threads that poll in other ways than one lcore per queue, and unusual ways to end
//! (`tests/test_probe_lifecycle.py`).
//!
//! `threads EAL-OPTIONS -- way=WAY ...`, with one lcore and one port:
//! - `turns`: the main lcore and a thread without an lcore id poll one queue in turn;
//! - `comers rounds=N`: threads that live for a few polls, under an lcore id and without one;
//! - `many queues=N`: queue n of N is polled n + 1 times;
//! - `forward end=END`: forwards until told to end, by END: `return` from main, `exit` in the midst of
//!   it, `cleanup` (`rte_eal_cleanup` with the port open), or `full`, which means `return`, after all
//!   dynamic fields of mbufs were taken.

mod support;

use std::ffi::c_int;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use dpdk::{Burst, Eal, Mempool, PoolConfig, Port, RxQueue, Started};
use serde_json::{Value, json};
use support::{Books, Done, Options, await_probe, configured, malloced, tell};

unsafe extern "C" {
    fn rte_thread_register() -> c_int;
    fn rte_thread_unregister();
}

/// `LCORE_ID_ANY`, of a thread without an lcore id.
const NO_LCORE: u32 = u32::MAX;

fn main() -> Done {
    let (eal, words) = Eal::init(std::env::args_os())?;
    let options = Options::new(words)?;
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets"))?;
    match options.text("way")? {
        "turns" => turns(&eal, &pool),
        "comers" => comers(&eal, &pool, options.number("rounds")?),
        "many" => many(&eal, &pool, options.number("queues")? as usize),
        "forward" => match options.text("end")? {
            "return" => forward(&eal, &pool),
            "exit" => exit_in_the_midst(&eal, &pool),
            "full" => {
                take_all_fields();
                forward(&eal, &pool)
            }
            "cleanup" => clean_up(&eal, &pool),
            other => Err(format!("end={other}?").into()),
        },
        other => Err(format!("way={other}?").into()),
    }
}

fn poll(books: &mut Books, queue: &mut RxQueue<'_>, polls: usize) {
    let mut burst = Burst::<32>::new();
    for _ in 0..polls {
        books.receive(queue, &mut burst);
        burst.clear();
    }
}

fn by_lcore(books: &[(u32, Books)]) -> Value {
    books.iter().map(|(lcore, books)| json!({ "lcore": lcore, "queues": books.json() })).collect()
}

fn turns(eal: &Eal, pool: &Mempool<'_>) -> Done {
    const TURNS: usize = 20_000;
    let mut port = seen(eal, pool)?;
    let mut queues = port.queues();
    // The queue, and whose turn it is.
    let shared = (Mutex::new((queues.rx.remove(0), false)), Condvar::new());
    let take_turns = |other: bool| {
        let mut books = Books::default();
        let (queue, changed) = &shared;
        for turn in 0..TURNS {
            let guard = queue.lock().unwrap_or_else(|poison| poison.into_inner());
            let mut guard = changed
                .wait_while(guard, |(_, whose)| *whose != other)
                .unwrap_or_else(|poison| poison.into_inner());
            poll(&mut books, &mut guard.0, turn % 3);
            guard.1 = !other;
            changed.notify_one();
        }
        books
    };
    let books = std::thread::scope(|threads| -> Done<_> {
        let other = threads.spawn(|| take_turns(true));
        let own = take_turns(false);
        let other = other.join().map_err(|_| "the other thread panicked")?;
        Ok([(eal.main_lcore().id(), own), (NO_LCORE, other)])
    })?;
    tell(&json!({ "books": by_lcore(&books) }))
}

/// A thread's polls under a new lcore id, or without one; returns that id, too.
fn come(queue: &mut RxQueue<'_>, registered: bool) -> Done<(u32, Books)> {
    let mut books = Books::default();
    // SAFETY: no preconditions.
    if registered && unsafe { rte_thread_register() } != 0 {
        return Err("DPDK has no lcore id left".into());
    }
    // SAFETY: reads a variable of this thread.
    let lcore = unsafe { dpdk_sys::lr_lcore_id() };
    poll(&mut books, queue, 5);
    if registered {
        // SAFETY: it is registered, and uses nothing of DPDK after this.
        unsafe { rte_thread_unregister() };
    }
    Ok((lcore, books))
}

fn comers(eal: &Eal, pool: &Mempool<'_>, rounds: u64) -> Done {
    let mut port = seen(eal, pool)?;
    let mut queues = port.queues();
    let queue = &mut queues.rx[0];
    let mut all: Vec<(u32, Books)> = Vec::new();
    for round in 1..=rounds {
        for registered in [true, false] {
            let came = std::thread::scope(|threads| {
                threads.spawn(|| come(queue, registered).map_err(|error| error.to_string())).join()
            });
            let (lcore, books) = came.map_err(|_| "a thread panicked")??;
            match all.iter_mut().find(|(known, _)| *known == lcore) {
                Some((_, sum)) => sum.join(books),
                None => all.push((lcore, books)),
            }
        }
        if round % 200 == 0 {
            tell(&json!({ "round": round, "malloced": malloced() }))?;
        }
    }
    tell(&json!({ "books": by_lcore(&all) }))
}

fn many(eal: &Eal, pool: &Mempool<'_>, count: usize) -> Done {
    let mut port = configured(eal, pool, 0, count)?.start()?;
    await_probe(count)?;
    let mut queues = port.queues();
    let mut books = Books::default();
    for (number, queue) in queues.rx.iter_mut().enumerate() {
        poll(&mut books, queue, number + 1);
    }
    tell(&json!({ "books": by_lcore(&[(eal.main_lcore().id(), books)]) }))
}

/// The port, started, when the probe is on it.
fn seen<'eal>(eal: &'eal Eal, pool: &Mempool<'eal>) -> Done<Port<'eal, Started>> {
    let port = configured(eal, pool, 0, 1)?.start()?;
    await_probe(1)?;
    Ok(port)
}

/// Receives and sends until `stop`.
fn echo(port: &mut Port<'_, Started>, stop: &AtomicBool) -> Books {
    let mut queues = port.queues();
    let mut books = Books::default();
    while !stop.load(Ordering::Relaxed) {
        let mut burst = Burst::<32>::new();
        books.receive(&mut queues.rx[0], &mut burst);
        queues.tx[0].send(&mut burst);
    }
    books
}

fn forward(eal: &Eal, pool: &Mempool<'_>) -> Done {
    let mut port = seen(eal, pool)?;
    let stop = AtomicBool::new(false);
    let books = std::thread::scope(|threads| {
        threads.spawn(|| {
            let _ = tell(&json!({ "forwarding": true }));
            stop.store(true, Ordering::Relaxed);
        });
        echo(&mut port, &stop)
    });
    tell(&json!({ "books": by_lcore(&[(eal.main_lcore().id(), books)]) }))
}

/// The lcore goes on polling while another thread ends the process.
fn exit_in_the_midst(eal: &Eal, pool: &Mempool<'_>) -> Done {
    let mut port = seen(eal, pool)?;
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let _ = tell(&json!({ "forwarding": true }));
            exit(0);
        });
        echo(&mut port, &AtomicBool::new(false));
    });
    Ok(())
}

fn clean_up(eal: &Eal, pool: &Mempool<'_>) -> Done {
    let port = seen(eal, pool)?;
    // SAFETY: this program uses nothing of DPDK from here on, nor gives anything back.
    let code = unsafe { dpdk_sys::rte_eal_cleanup() };
    tell(&json!({ "cleaned_up": code }))?;
    let _ = &port;
    exit(0)
}

/// Uses up the room that mbufs have for dynamic fields.
fn take_all_fields() {
    let mut taken = 0;
    loop {
        let mut field = dpdk_sys::rte_mbuf_dynfield { name: [0; 64], size: 1, align: 1, flags: 0 };
        let name = format!("taken_{taken}");
        field.name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as _);
        // SAFETY: a description that DPDK copies.
        if unsafe { dpdk_sys::rte_mbuf_dynfield_register(&field) } < 0 {
            return;
        }
        taken += 1;
    }
}
