// SPDX-License-Identifier: BSD-3-Clause
//! Runs random cases, limited by number and by time. A failure prints the seed that reproduces it.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestRunner};

/// No case starts later than this many seconds after the first. The first tier of the tests sets a
/// lower limit (`LINERATE_RANDOM_SECONDS`).
const LONGEST: u64 = 5;
/// Fewest cases to run, however slow the machine is.
const LEAST: u32 = 10;
/// Milliseconds for shrinking a failed case.
const SHRINKING: u32 = 20_000;

/// Tests at most this many random values. `PROPTEST_RNG_SEED` sets the seed.
pub fn for_all<S: Strategy>(cases: u32, values: &S, test: impl Fn(S::Value) -> TestCaseResult) {
    let seed = match Config::default().rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(0),
    };
    let longest = match std::env::var("LINERATE_RANDOM_SECONDS").map(|text| text.parse()) {
        Ok(Ok(seconds)) => Duration::from_secs(seconds),
        Ok(Err(error)) => panic!("LINERATE_RANDOM_SECONDS: {error}"),
        Err(_) => Duration::from_secs(LONGEST),
    };
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_time: SHRINKING,
        ..Config::default()
    };
    let (begin, tried, failed) = (Instant::now(), Cell::new(0), Cell::new(false));
    let outcome = TestRunner::new(config).run(values, |value| {
        // Smaller values of a failed case are always tried.
        if begin.elapsed() > longest && tried.get() >= LEAST && !failed.get() {
            return Ok(());
        }
        tried.set(tried.get() + 1);
        failed.set(true);
        test(value)?;
        failed.set(false);
        Ok(())
    });
    println!("{} cases of {cases}, PROPTEST_RNG_SEED={seed}", tried.get());
    if let Err(error) = outcome {
        panic!("{error}\nTo reproduce: PROPTEST_RNG_SEED={seed}");
    }
}
