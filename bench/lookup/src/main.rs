// SPDX-License-Identifier: BSD-3-Clause
//! `lookup-bench [EAL options] -- [--library BUILD=FILE.so]...`: reads one JSON request per line
//! from standard input, and answers each with one line of JSON, until the input ends.
//!
//! - `{"do":"cells"}`: lists the cells, the arms, and the number of operations in a round of each
//!   cell;
//! - `{"do":"run","cell":CELL,"arm":ARM,"rounds":N}`, or with `"ms":N` in place of rounds: runs one
//!   window.
//!
//! The client decides the order and the number of requests. Only the loops are timed.

mod c;
mod loops;
mod packets;
mod tables;

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::process::ExitCode;

use dpdk::{Burst, Eal, tsc};
use serde_json::{Value, json};

use c::Loops;
use loops::PACKETS;
use tables::{ACL, HASH, LOOKUPS, LPM, POOL, RING, Tables};

/// The loops, each with the number of operations in a round.
const CELLS: [(&str, usize); 13] = [
    ("lpm", LOOKUPS),
    ("lpm-x4", LOOKUPS),
    ("hash", LOOKUPS),
    // In C the same as `hash`.
    ("flows", LOOKUPS),
    ("acl", LOOKUPS),
    ("pool", PACKETS),
    ("ring", PACKETS),
    ("ring-single", PACKETS),
    ("header", PACKETS),
    ("prepend-adj", PACKETS),
    ("append-trim", PACKETS),
    ("checksum", PACKETS),
    ("ipip", PACKETS),
];
/// The loops through the safe API.
const RUST: &str = "rust";
/// Most rounds of a window.
const MOST_ROUNDS: u64 = 1 << 32;
const WARM: u64 = 2;

struct Bench {
    libraries: Vec<Loops>,
    tables: Tables,
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "lookup-bench: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), String> {
    let (eal, arguments) = Eal::init(std::env::args_os()).map_err(|error| error.to_string())?;
    let eal: &'static Eal = Box::leak(Box::new(eal));
    let libraries = libraries(arguments)?;
    let tables = Tables::new(eal).map_err(|error| error.to_string())?;
    let mut bench = Bench { libraries, tables };
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("standard input: {error}"))?;
        let answer = bench.answer(&line).unwrap_or_else(|reason| json!({ "error": reason }));
        // The client is gone, so there is no more work.
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(())
}

fn libraries(arguments: Vec<OsString>) -> Result<Vec<Loops>, String> {
    let mut libraries = Vec::new();
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        let value = match word.to_str() {
            Some("--library") => words.next().and_then(|value| value.into_string().ok()),
            _ => return Err(format!("unknown option {word:?}; there is --library BUILD=FILE")),
        };
        let value = value.unwrap_or_default();
        let (build, file) = value
            .split_once('=')
            .filter(|(build, _)| !build.is_empty())
            .ok_or_else(|| format!("--library takes BUILD=FILE, not {value:?}"))?;
        let loops = Loops::load(build, file.as_ref())
            .map_err(|error| format!("--library {value}: {error}"))?;
        libraries.push(loops);
    }
    Ok(libraries)
}

impl Bench {
    fn answer(&mut self, line: &str) -> Result<Value, String> {
        let asked: Value =
            serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
        match asked["do"].as_str() {
            Some("cells") => {
                let in_c = self.libraries.iter().map(|library| format!("c/{}", library.build));
                let arms: Vec<String> = in_c.chain([RUST.to_owned()]).collect();
                let cells = CELLS
                    .map(|(cell, operations)| json!({ "cell": cell, "operations": operations }));
                Ok(json!({ "arms": arms, "cells": cells }))
            }
            Some("run") => self.run(&asked),
            _ => Err(format!("\"do\" is \"cells\" or \"run\", not {}", asked["do"])),
        }
    }

    fn run(&mut self, asked: &Value) -> Result<Value, String> {
        let name = asked["cell"].as_str().ok_or("\"cell\" is the name of a cell")?;
        let arm = asked["arm"].as_str().ok_or("\"arm\" is the name of an arm")?;
        let (cell, operations) = *CELLS
            .iter()
            .find(|(cell, _)| *cell == name)
            .ok_or_else(|| format!("there is no cell {name:?}"))?;
        let absent = || format!("there is no arm {arm:?}");
        let tables = &mut self.tables;
        let library = match arm {
            RUST => None,
            _ => {
                let build = arm.strip_prefix("c/").ok_or_else(absent)?;
                let found = self.libraries.iter().find(|library| library.build == build);
                Some(found.ok_or_else(absent)?)
            }
        };
        let mut walk = |rounds| rounds_of(cell, library, tables, rounds);
        walk(WARM)?;
        let rounds = match (asked["rounds"].as_u64(), asked["ms"].as_u64()) {
            (Some(rounds @ 1..=MOST_ROUNDS), None) => rounds,
            (None, Some(ms @ 1..=10_000)) => {
                let wanted = tsc::hz() / 1000 * ms;
                let mut rounds = WARM;
                loop {
                    let (cycles, _) = walk(rounds)?;
                    if cycles >= wanted / 10 || rounds >= MOST_ROUNDS {
                        break (rounds as f64 * wanted as f64 / cycles.max(1) as f64) as u64 + 1;
                    }
                    rounds *= 2;
                }
            }
            _ => {
                return Err(format!(
                    "\"rounds\" is 1 to {MOST_ROUNDS}, or \"ms\" 1 to 10000 in its place"
                ));
            }
        };
        let (cycles, sum) = walk(rounds)?;
        Ok(json!({
            "cell": cell,
            "arm": arm,
            "operations": rounds * operations as u64,
            "tsc_cycles": cycles,
            // The same for all arms.
            "work": format!("{:x}", sum / rounds),
        }))
    }
}

/// Returns the cycles of this many rounds, and the sum of what they found.
fn rounds_of(
    cell: &str,
    library: Option<&Loops>,
    tables: &mut Tables,
    rounds: u64,
) -> Result<(u64, u64), String> {
    let Tables { lpm, addresses, hash, flows, keys, acl, headers, pool, ring } = tables;
    let mut burst = Burst::<PACKETS>::new();
    if cell.starts_with("ring") {
        pool.fill(&mut burst, PACKETS).map_err(|error| error.to_string())?;
    }
    // The C side makes its own packets: any pointers do.
    let mut packets = [std::ptr::null_mut(); PACKETS];
    let begin = tsc::now();
    let sum = match (cell, library) {
        ("lpm", None) => loops::lpm(lpm, addresses, rounds),
        ("lpm", Some(c)) => c.lpm(LPM, addresses, rounds),
        ("lpm-x4", None) => loops::lpm_x4(lpm, addresses, rounds),
        ("lpm-x4", Some(c)) => c.lpm_x4(LPM, addresses, rounds),
        ("hash", None) => loops::hash(hash, keys, rounds),
        ("flows", None) => loops::flows(flows, keys, rounds),
        ("hash" | "flows", Some(c)) => c.hash(HASH, keys, rounds),
        ("acl", None) => loops::acl(acl, headers, rounds),
        ("acl", Some(c)) => c.acl(ACL, headers, rounds),
        ("pool", None) => loops::pool(pool, rounds),
        ("pool", Some(c)) => c.pool(POOL, rounds),
        ("ring", None) => loops::ring(ring, &mut burst, rounds),
        ("ring", Some(c)) => c.ring(RING, &mut packets, rounds),
        ("ring-single", None) => loops::ring_single(ring, &mut burst, rounds),
        ("ring-single", Some(c)) => c.ring_single(RING, &mut packets, rounds),
        ("header", None) => packets::header(pool, rounds),
        ("prepend-adj", None) => packets::prepend_adj(pool, rounds),
        ("append-trim", None) => packets::append_trim(pool, rounds),
        ("checksum", None) => packets::checksum(pool, rounds),
        ("ipip", None) => packets::ipip(pool, rounds),
        ("header" | "prepend-adj" | "append-trim" | "checksum" | "ipip", Some(c)) => {
            c.packets(cell, POOL, rounds)
        }
        _ => return Err(format!("there is no cell {cell:?}")),
    };
    Ok((tsc::now().wrapping_sub(begin), sum))
}
