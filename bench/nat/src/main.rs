// SPDX-License-Identifier: BSD-3-Clause
//! Translates addresses of frames in place, with several libraries in turn, and prints each one's
//! rate.
//!
//! ```text
//! nat-bench BLOCKS SEED            a line of JSON for each arm, cell and block
//! nat-bench count ARM CELL SWEEPS  translates the cell's frames so many times, for callgrind
//! nat-bench list                   a line of JSON for each arm and cell, and how many frames a sweep has
//! ```
//!
//! Every block runs every arm twice (`ARM` and `ARM-again`), in an order drawn anew, each on its own copy of the
//! frames, each with the same addresses. After each block all copies must be the same, byte for byte, and as a slow
//! reference makes them; otherwise the program ends with an error.

mod arms;
mod by_hand;
mod frames;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use packet::random::Random;
use serde_json::json;

use arms::{ARMS, Arm};
use frames::{CELLS, COUNT, Cell, Frames, Nat};

/// An arm's turn in a block is timed in this many pieces of `SWEEPS` sweeps; the fastest one counts,
/// because other work on the machine can only slow a piece down.
const PIECES: u32 = 12;
const SWEEPS: u32 = 40;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match *words {
        ["list"] => {
            for cell in CELLS {
                for arm in ARMS {
                    println!("{}", json!({"cell": cell.name, "arm": arm.name, "frames": COUNT}));
                }
            }
            Ok(())
        }
        ["count", arm, cell, sweeps] => count(arm, cell, sweeps),
        [blocks, seed] => compare(blocks, seed),
        _ => Err("usage: nat-bench BLOCKS SEED | count ARM CELL SWEEPS | list".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nat-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word:?} is not a number"))
}

fn count(arm: &str, cell: &str, sweeps: &str) -> Result<(), String> {
    let arm = ARMS.iter().find(|each| each.name == arm).ok_or(format!("no arm {arm:?}"))?;
    let cell = CELLS.iter().find(|each| each.name == cell).ok_or(format!("no cell {cell:?}"))?;
    let mut frames = Frames::new(cell);
    let mut list = frames.list();
    for sweep in 0..number(sweeps)? {
        run(arm, cell, &mut list, &Nat::of_sweep(sweep))?;
    }
    Ok(())
}

fn compare(blocks: &str, seed: &str) -> Result<(), String> {
    let mut random = Random::new(number(seed)?);
    // The first block warms everything up and is not printed.
    for block in 0..=number::<u64>(blocks)? {
        for cell in CELLS {
            let runs: Vec<(&Arm, &str)> =
                ARMS.iter().flat_map(|arm| [(arm, ""), (arm, "-again")]).collect();
            let mut found = Vec::new();
            for at in shuffled(runs.len(), &mut random) {
                let (arm, suffix) = runs[at];
                let mut frames = Frames::new(cell);
                let mut list = frames.list();
                let mut rate = 0f64;
                for piece in 0..PIECES {
                    let start = Instant::now();
                    for sweep in piece * SWEEPS..(piece + 1) * SWEEPS {
                        run(arm, cell, &mut list, &Nat::of_sweep(sweep))?;
                    }
                    let frames = SWEEPS as usize * COUNT;
                    rate = rate.max(frames as f64 / start.elapsed().as_secs_f64());
                }
                frames.check(cell, &Nat::of_sweep(PIECES * SWEEPS - 1)).map_err(|what| {
                    format!("{} left wrong bytes in {}: {what}", arm.name, cell.name)
                })?;
                found.push((at, format!("{}{suffix}", arm.name), rate));
            }
            found.sort_by_key(|(at, _, _)| *at);
            for (_, arm, rate) in found.iter().filter(|_| block > 0) {
                println!(
                    "{}",
                    json!({"cell": cell.name, "arm": arm, "block": block - 1, "rate": rate})
                );
            }
        }
    }
    Ok(())
}

fn run(arm: &Arm, cell: &Cell, frames: &mut [&mut [u8]], nat: &Nat) -> Result<(), String> {
    let sweep = if cell.ports { arm.ports } else { arm.address };
    match sweep(black_box(frames), black_box(nat)) {
        COUNT => Ok(()),
        done => Err(format!("{} translated {done} of {COUNT} frames", arm.name)),
    }
}

fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.between(0, last as u128) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arm_leaves_the_same_bytes() {
        compare_bytes(20);
    }

    mod second_tier {
        #[test]
        fn every_arm_leaves_the_same_bytes_in_many_sweeps() {
            super::compare_bytes(70);
        }
    }

    fn compare_bytes(sweeps: u32) {
        for cell in CELLS {
            for arm in ARMS {
                let mut frames = Frames::new(cell);
                for sweep in 0..sweeps {
                    run(arm, cell, &mut frames.list(), &Nat::of_sweep(sweep)).unwrap();
                    frames.check(cell, &Nat::of_sweep(sweep)).unwrap();
                }
                let wrong = frames.check(cell, &Nat::of_sweep(sweeps)).unwrap_err();
                assert!(wrong.starts_with("frame 0, byte "), "{wrong}");
            }
        }
    }

    #[test]
    fn orders_are_drawn_anew() {
        let mut random = Random::new(1);
        let orders: Vec<_> = (0..4).map(|_| shuffled(9, &mut random)).collect();
        assert!(orders.windows(2).any(|pair| pair[0] != pair[1]));
        for mut order in orders {
            order.sort_unstable();
            assert_eq!(order, (0..9).collect::<Vec<_>>());
        }
    }
}
