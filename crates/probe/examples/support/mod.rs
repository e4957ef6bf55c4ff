// SPDX-License-Identifier: BSD-3-Clause
//! What the programs for testing the probe share: options, communication with the test, their own
//! counts.
#![allow(dead_code)] // No program uses all of it.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::io::{BufRead as _, Write as _};

use dpdk::{Burst, Configured, Eal, Mempool, Port, PortConfig, RxConfig, RxQueue, TxConfig};
use serde_json::{Value, json};

pub type Done<T = ()> = Result<T, Box<dyn Error>>;

/// The words after EAL's `--`: `name=value`.
pub struct Options(BTreeMap<String, String>);

impl Options {
    pub fn new(words: Vec<OsString>) -> Done<Self> {
        let split = |word: OsString| -> Done<(String, String)> {
            let word = word.to_string_lossy().into_owned();
            let (name, value) = word.split_once('=').ok_or(format!("{word} is not NAME=VALUE"))?;
            Ok((name.into(), value.into()))
        };
        Ok(Self(words.into_iter().map(split).collect::<Done<_>>()?))
    }

    pub fn text(&self, name: &str) -> Done<&str> {
        Ok(self.0.get(name).ok_or(format!("{name}=... is missing"))?)
    }

    pub fn number(&self, name: &str) -> Done<u64> {
        Ok(self.text(name)?.parse()?)
    }
}

/// Prints a line of JSON and waits until the test answers with a line, or is gone.
pub fn tell(line: &Value) -> Done {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    drop(out);
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

/// Waits until the test has seen the probe on so many receive queues.
pub fn await_probe(rx_queues: usize) -> Done {
    tell(&json!({ "rx_queues": rx_queues }))
}

/// A port with so many queues each way, not started.
pub fn configured<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    port: u16,
    queues: usize,
) -> Done<Port<'eal, Configured>> {
    let id = eal.ports().into_iter().find(|id| id.index() == port).ok_or("a port is missing")?;
    Ok(eal.take_port(id)?.configure(&PortConfig {
        rx: vec![RxConfig::new(pool); queues],
        tx: vec![TxConfig::default(); queues],
        ..PortConfig::default()
    })?)
}

/// Polls of each (port, queue) that returned 0, 1, .. packets.
#[derive(Default)]
pub struct Books(BTreeMap<(u16, u16), Vec<u64>>);

impl Books {
    /// Polls a queue, and records what it received.
    pub fn receive<'m, 'q: 'm, const N: usize>(
        &mut self,
        queue: &mut RxQueue<'q>,
        burst: &mut Burst<'m, N>,
    ) -> usize {
        let received = queue.receive(burst);
        let polls = self.0.entry((queue.port().index(), queue.queue())).or_default();
        if polls.len() <= received {
            polls.resize(received + 1, 0);
        }
        polls[received] += 1;
        received
    }

    pub fn join(&mut self, other: Self) {
        for (queue, polls) in other.0 {
            let sum = self.0.entry(queue).or_default();
            sum.resize(sum.len().max(polls.len()), 0);
            sum.iter_mut().zip(polls).for_each(|(sum, more)| *sum += more);
        }
    }

    pub fn packets(&self) -> u64 {
        self.0.values().flat_map(|polls| (0..).zip(polls)).map(|(size, n): (u64, _)| size * n).sum()
    }

    pub fn json(&self) -> Value {
        let entry = |((port, queue), polls): (&(u16, u16), &Vec<u64>)| json!({ "port": port, "queue": queue, "burst_histogram": polls });
        self.0.iter().map(entry).collect()
    }
}

/// Bytes that all code of this process has allocated by `malloc`.
pub fn malloced() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::mallinfo2() }.uordblks
}
