// SPDX-License-Identifier: BSD-3-Clause
//! Random cases: no more than a number, and no further one after some seconds. Who fails names the seed that leads there again.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestRunner};

/// Seconds after the first case in which further ones begin. The first tier of the tests takes fewer (`LINERATE_RANDOM_SECONDS`).
const LONGEST: u64 = 5;
/// The least that are run of those asked for, however slow the machine is.
const LEAST: u32 = 10;
/// Milliseconds for making a case that failed smaller.
const SHRINKING: u32 = 20_000;

/// Tries up to so many random values. `PROPTEST_RNG_SEED` chooses which.
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
        // Smaller ones of a case that failed are always tried.
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
        panic!("{error}\nThe same again: PROPTEST_RNG_SEED={seed}");
    }
}
