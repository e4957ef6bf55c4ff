// SPDX-License-Identifier: BSD-3-Clause
//! Runs random cases, limited by number and by time. A failure prints the seed that reproduces it.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestRunner};

/// No case starts later than this many seconds after the first. The first tier of the tests sets a
/// lower limit (`LINERATE_RANDOM_SECONDS`).
const LONGEST: f64 = 5.0;
/// Milliseconds for shrinking a failed case.
const SHRINKING: u32 = 20_000;

/// Tests this many random values: the most if there is time, the fewest however slow the machine
/// is. `PROPTEST_RNG_SEED` sets the seed.
pub fn for_all<S: Strategy>(
    cases: RangeInclusive<u32>,
    values: &S,
    test: impl Fn(S::Value) -> TestCaseResult,
) {
    try_values(cases, u32::MAX, values, test);
}

/// The same for a test that leaves something behind when it fails: smaller values would fail because
/// of that, so a failed case is not shrunk.
pub fn for_all_unshrunk<S: Strategy>(
    cases: RangeInclusive<u32>,
    values: &S,
    test: impl Fn(S::Value) -> TestCaseResult,
) {
    try_values(cases, 0, values, test);
}

fn try_values<S: Strategy>(
    cases: RangeInclusive<u32>,
    max_shrink_iters: u32,
    values: &S,
    test: impl Fn(S::Value) -> TestCaseResult,
) {
    let (least, most) = cases.into_inner();
    let seed = match Config::default().rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(0),
    };
    let seconds = match std::env::var("LINERATE_RANDOM_SECONDS").map(|text| text.parse()) {
        Ok(Ok(seconds)) => seconds,
        Ok(Err(error)) => panic!("LINERATE_RANDOM_SECONDS: {error}"),
        Err(_) => LONGEST,
    };
    let longest = Duration::try_from_secs_f64(seconds)
        .unwrap_or_else(|error| panic!("LINERATE_RANDOM_SECONDS: {error}"));
    let config = Config {
        cases: most,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_time: SHRINKING,
        max_shrink_iters,
        ..Config::default()
    };
    let (begin, tried, failed) = (Instant::now(), Cell::new(0), Cell::new(false));
    let outcome = TestRunner::new(config).run(values, |value| {
        // Shrinking a failed case is not limited.
        if begin.elapsed() > longest && tried.get() >= least && !failed.get() {
            return Ok(());
        }
        tried.set(tried.get() + 1);
        failed.set(true);
        test(value)?;
        failed.set(false);
        Ok(())
    });
    println!("{} cases of {most}, PROPTEST_RNG_SEED={seed}", tried.get());
    if let Err(error) = outcome {
        panic!("{error}\nTo reproduce: PROPTEST_RNG_SEED={seed}");
    }
}
