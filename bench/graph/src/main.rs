// SPDX-License-Identifier: BSD-3-Clause
//! `graph-bench [EAL options] -- [--library BUILD=FILE.so]...`: answers a request of JSON on each line of
//! standard input by a line of JSON, until there are no more.
//!
//! - `{"do":"cells"}`: which cells there are, and the arms of each;
//! - `{"do":"run","cell":CELL,"arm":ARM,"walks":N}` or `"ms":N` in place of walks: one window.
//!
//! Whoever asks decides the order and how often; nothing is timed but the walks.

mod arm;
mod c_arm;
mod cell;
mod nodes;
mod packet;
mod rust_arm;
mod shape;
mod topologies;

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::process::ExitCode;

use dpdk::{Eal, tsc};
use serde_json::{Value, json};

use arm::{Arm, Packets, Parts};
use c_arm::CNodes;
use cell::Cell;

/// Walks of a window at most: no request takes the machine for longer than a minute or so.
const MOST_WALKS: u64 = 1 << 32;
/// Walks before the first that is timed, so that streams have grown and code is cached.
const WARM: u64 = 8;

struct Bench {
    eal: &'static Eal,
    libraries: Vec<CNodes>,
    packets: Packets,
    cells: Vec<Cell>,
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "graph-bench: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), String> {
    let (eal, arguments) = Eal::init(std::env::args_os()).map_err(|error| error.to_string())?;
    // Librte_graph's nodes are known for as long as the process lives, and so is EAL.
    let eal: &'static Eal = Box::leak(Box::new(eal));
    let libraries = libraries(arguments)?;
    let mut bench = Bench { eal, libraries, packets: Packets::new(), cells: cell::all() };
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("standard input: {error}"))?;
        let answer = bench.answer(&line).unwrap_or_else(|reason| json!({ "error": reason }));
        // Whoever asked is gone: so is the work.
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(())
}

fn libraries(arguments: Vec<OsString>) -> Result<Vec<CNodes>, String> {
    let mut libraries = Vec::new();
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        let value = match word.to_str().map(|word| (word, word.strip_prefix("--library="))) {
            Some((_, Some(value))) => Some(value.to_owned()),
            Some(("--library", _)) => words.next().and_then(|value| value.into_string().ok()),
            _ => return Err(format!("unknown option {word:?}; there is --library BUILD=FILE")),
        };
        let value = value.unwrap_or_default();
        let (build, file) = value
            .split_once('=')
            .filter(|(build, _)| !build.is_empty())
            .ok_or_else(|| format!("--library takes BUILD=FILE, not {value:?}"))?;
        libraries.push(
            CNodes::load(build, file.as_ref())
                .map_err(|error| format!("--library {value}: {error}"))?,
        );
    }
    Ok(libraries)
}

impl Bench {
    fn answer(&mut self, line: &str) -> Result<Value, String> {
        let asked: Value =
            serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
        match asked["do"].as_str() {
            Some("cells") => Ok(json!({ "cells": self.offers() })),
            Some("run") => self.run(&asked),
            _ => Err(format!("\"do\" is \"cells\" or \"run\", not {}", asked["do"])),
        }
    }

    fn offers(&self) -> Vec<Value> {
        let offer = |cell: &Cell| {
            let mut arms: Vec<String> =
                self.libraries.iter().map(|library| format!("c-graph/{}", library.build)).collect();
            arms.push("rust-graph".to_owned());
            let parts = Parts::new(*cell, &self.packets);
            let others = [
                ("fused/singles", rust_arm::fused_nodes(&parts)),
                ("fused/batches", rust_arm::fused_batches(&parts)),
                ("one-loop", rust_arm::one_loop(*cell, &self.packets)),
            ];
            arms.extend(others.into_iter().filter_map(|(name, arm)| arm.map(|_| name.to_owned())));
            json!({ "cell": cell.to_string(), "arms": arms, "path_nodes": cell.shape.path() })
        };
        self.cells.iter().map(offer).collect()
    }

    fn run(&mut self, asked: &Value) -> Result<Value, String> {
        let name = asked["cell"].as_str().ok_or("\"cell\" is the name of a cell")?;
        let cell = self.cells.iter().find(|cell| cell.to_string() == name);
        let cell = *cell.ok_or_else(|| format!("there is no cell {name:?}"))?;
        let arm = asked["arm"].as_str().ok_or("\"arm\" is the name of an arm")?.to_owned();
        let absent = || format!("the cell {name} has no arm {arm:?}");
        let parts = Parts::new(cell, &self.packets);
        let mut made: Box<dyn Arm + '_> = match arm.as_str() {
            "rust-graph" => {
                let made = rust_arm::librte(self.eal, &parts).map_err(|error| error.to_string())?;
                made.ok_or_else(absent)?
            }
            "fused/singles" => rust_arm::fused_nodes(&parts).ok_or_else(absent)?,
            "fused/batches" => rust_arm::fused_batches(&parts).ok_or_else(absent)?,
            "one-loop" => rust_arm::one_loop(cell, &self.packets).ok_or_else(absent)?,
            other => {
                let build = other.strip_prefix("c-graph/").ok_or_else(absent)?;
                let library = self.libraries.iter_mut().find(|library| library.build == build);
                Box::new(library.ok_or_else(absent)?.open(&parts)?)
            }
        };
        let Window { walks, sunk, cycles } = Window::of(&mut *made, asked, &mut self.packets)?;
        let work = self.packets.digest();
        Ok(json!({
            "cell": name,
            "arm": arm,
            "walks": walks,
            "objects": walks * u64::from(cell.batch) * cell.shape.sources() as u64,
            "sunk": sunk,
            "tsc_cycles": cycles,
            "tsc_hz": tsc::hz(),
            "work": format!("{work:016x}"),
        }))
    }
}

/// Walks that were timed.
struct Window {
    walks: u64,
    sunk: u64,
    cycles: u64,
}

impl Window {
    /// As many walks as were asked for, or as fit into the time, behind a few that are not timed.
    fn of(arm: &mut dyn Arm, asked: &Value, packets: &mut Packets) -> Result<Self, String> {
        let walks = match (asked["walks"].as_u64(), asked["ms"].as_u64()) {
            (Some(walks @ 1..=MOST_WALKS), None) => walks,
            (None, Some(ms @ 1..=10_000)) => {
                let mut walks = WARM;
                // Until so many take a tenth of the time or more.
                loop {
                    let cycles = timed(arm, walks);
                    let wanted = tsc::hz() / 1000 * ms;
                    if cycles >= wanted / 10 || walks >= MOST_WALKS {
                        break (walks as f64 * wanted as f64 / cycles.max(1) as f64) as u64 + 1;
                    }
                    walks *= 2;
                }
            }
            _ => {
                return Err(format!(
                    "\"walks\" is 1 to {MOST_WALKS}, or \"ms\" 1 to 10000 in its place"
                ));
            }
        };
        arm.walk(WARM);
        let before = arm.sunk();
        // What the packets hold afterwards is the work of these walks alone.
        packets.reset();
        let cycles = timed(arm, walks);
        Ok(Self { walks, sunk: arm.sunk() - before, cycles })
    }
}

fn timed(arm: &mut dyn Arm, walks: u64) -> u64 {
    let begin = tsc::now();
    arm.walk(walks);
    tsc::now().wrapping_sub(begin)
}
