// SPDX-License-Identifier: BSD-3-Clause
//! `graph-bench [EAL options] -- [--library BUILD=FILE.so]...`: reads one JSON request per line from standard input,
//! and answers each with one line of JSON, until the input ends.
//!
//! - `{"do":"cells"}`: lists the cells and the arms of each;
//! - `{"do":"run","cell":CELL,"arm":ARM,"walks":N}`: runs one window, of N walks, or with `"us":N` of N microseconds;
//! - `{"do":"slices","of":[{"cell":CELL,"arm":ARM,"walks":N,"again":BOOL},...]}`: runs slices one after the other.
//!   Their arms stay open for later requests. `again` selects a second instance of the arm.
//!
//! The client decides the order and the number of requests. Only the walks are timed.

mod arm;
mod c_arm;
mod cell;
mod nodes;
mod packet;
mod rust_arm;
mod shape;
mod topologies;
mod window;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::process::ExitCode;

use dpdk::{Eal, tsc};
use serde_json::{Value, json};

use arm::{Arm, Packets, Parts};
use c_arm::CNodes;
use cell::Cell;
use window::{MOST_WALKS, Waiting, Window, walks_in};

struct Bench {
    eal: &'static Eal,
    libraries: Vec<CNodes>,
    packets: Packets,
    /// The cells with their names, in the order in which they are listed.
    cells: Vec<(String, Cell)>,
    /// Open arms of slices, by cell, arm and `again`.
    open: HashMap<(String, String, bool), Box<dyn Arm>>,
    waiting: Waiting,
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
    // librte_graph keeps its nodes until the process ends, so EAL stays, too.
    let eal: &'static Eal = Box::leak(Box::new(eal));
    let libraries = libraries(arguments)?;
    let mut bench = Bench {
        eal,
        libraries,
        packets: Packets::new(),
        cells: cell::all().into_iter().map(|cell| (cell.to_string(), cell)).collect(),
        open: HashMap::new(),
        waiting: Waiting::new(),
    };
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
            Some("slices") => self.slices(&asked),
            _ => Err(format!("\"do\" is \"cells\", \"run\" or \"slices\", not {}", asked["do"])),
        }
    }

    fn offers(&self) -> Vec<Value> {
        let offer = |(name, cell): &(String, Cell)| {
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
            json!({ "cell": name, "arms": arms, "path_nodes": cell.shape.path() })
        };
        self.cells.iter().map(offer).collect()
    }

    /// Builds an arm of a cell by their names.
    fn made(&self, cell: Cell, arm: &str) -> Result<Box<dyn Arm>, String> {
        let absent = || format!("the cell {cell} has no arm {arm:?}");
        let parts = Parts::new(cell, &self.packets);
        match arm {
            "rust-graph" => {
                let made = rust_arm::librte(self.eal, &parts).map_err(|error| error.to_string())?;
                made.ok_or_else(absent)
            }
            "fused/singles" => rust_arm::fused_nodes(&parts).ok_or_else(absent),
            "fused/batches" => rust_arm::fused_batches(&parts).ok_or_else(absent),
            "one-loop" => rust_arm::one_loop(cell, &self.packets).ok_or_else(absent),
            other => {
                let build = other.strip_prefix("c-graph/").ok_or_else(absent)?;
                let library = self.libraries.iter().find(|library| library.build == build);
                Ok(Box::new(library.ok_or_else(absent)?.open(&parts)?))
            }
        }
    }

    fn named<'a>(&self, asked: &'a Value) -> Result<(Cell, &'a str), String> {
        let name = asked["cell"].as_str().ok_or("\"cell\" is the name of a cell")?;
        let cell = self.cells.iter().find(|(there, _)| there == name);
        let (_, cell) = cell.ok_or_else(|| format!("there is no cell {name:?}"))?;
        Ok((*cell, asked["arm"].as_str().ok_or("\"arm\" is the name of an arm")?))
    }

    fn run(&mut self, asked: &Value) -> Result<Value, String> {
        let (cell, arm) = self.named(asked)?;
        let mut made = self.made(cell, arm)?;
        let walks = match (asked["walks"].as_u64(), asked["us"].as_u64()) {
            (Some(walks @ 1..=MOST_WALKS), None) => walks,
            (None, Some(us @ 1..=10_000_000)) => walks_in(&mut *made, us),
            _ => {
                return Err(format!(
                    "\"walks\" is 1 to {MOST_WALKS}, or \"us\" 1 to 10000000 in its place"
                ));
            }
        };
        let window = Window::of(&mut *made, walks, &mut self.packets, &self.waiting);
        Ok(told(cell, arm, walks, &window))
    }

    /// Returns one answer per slice; a slice that cannot run has an error in its place.
    fn slices(&mut self, asked: &Value) -> Result<Value, String> {
        let of = asked["of"].as_array().ok_or("\"of\" is a list of slices")?;
        let slices: Vec<Value> = of
            .iter()
            .map(|each| self.slice(each).unwrap_or_else(|reason| json!({ "error": reason })))
            .collect();
        Ok(json!({ "slices": slices }))
    }

    fn slice(&mut self, asked: &Value) -> Result<Value, String> {
        let (cell, arm) = self.named(asked)?;
        let Some(walks @ 1..=MOST_WALKS) = asked["walks"].as_u64() else {
            return Err(format!("\"walks\" is 1 to {MOST_WALKS}"));
        };
        let again = asked["again"].as_bool().unwrap_or(false);
        let name = (cell.to_string(), arm.to_owned(), again);
        let mut made = match self.open.remove(&name) {
            Some(made) => made,
            None => self.made(cell, arm)?,
        };
        let window = Window::of(&mut *made, walks, &mut self.packets, &self.waiting);
        self.open.insert(name, made);
        Ok(told(cell, arm, walks, &window))
    }
}

fn told(cell: Cell, arm: &str, walks: u64, window: &Window) -> Value {
    json!({
        "cell": cell.to_string(),
        "arm": arm,
        "walks": walks,
        "objects": walks * u64::from(cell.batch) * cell.shape.sources() as u64,
        "sunk": window.sunk,
        "tsc_cycles": window.cycles,
        "tsc_hz": tsc::hz(),
        "waited_ns": window.waited_ns,
        "work": format!("{:016x}", window.work),
    })
}
