// SPDX-License-Identifier: BSD-3-Clause
//! The results that are printed at the end.

use forwarders_common::document::{clock as clock_of, dict};
use forwarders_common::say;
use measure::{clock, histogram};
use telemetry::Value;

use super::exchange::Books;
use super::options::Options;

/// Quantiles, and how many frames each needs.
const QUANTILES: [(&str, f64, u64); 4] =
    [("0.5", 0.5, 5), ("0.9", 0.9, 29), ("0.99", 0.99, 299), ("0.999", 0.999, 2995)];

fn ns(cycles: u64) -> u64 {
    (u128::from(cycles) * 1_000_000_000 / u128::from(clock::hz().max(1))) as u64
}

/// Minimum, mean, quantiles and maximum in cycles; quantiles that need more frames are absent.
fn figures(books: &Books) -> Vec<(&'static str, u64)> {
    let found = &books.round_trips;
    let quantiles = QUANTILES.iter().filter(|(_, _, needed)| found.count() >= *needed);
    [("min", found.min()), ("mean", found.mean())]
        .into_iter()
        .chain(quantiles.map(|(name, quantile, _)| (*name, found.quantile(*quantile))))
        .chain([("max", found.max())])
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn counts(books: &Books) -> [(&'static str, u64); 8] {
    [
        ("sent", books.sent),
        ("not_sent", books.not_sent),
        ("received", books.round_trips.count()),
        ("late", books.late),
        ("lost", books.lost()),
        ("duplicates", books.duplicates),
        ("strangers", books.strangers),
        ("dropped", books.dropped),
    ]
}

pub(super) fn say(options: &Options, iface: &str, books: &Books) {
    let counts: Vec<String> =
        counts(books).iter().map(|(name, count)| format!("{name} {count}")).collect();
    say!("{iface}, {}, {} bytes: {}", options.kind.name(), options.size, counts.join(", "));
    for (name, cycles) in figures(books) {
        say!("{name:>5} {cycles:>12} cycles {:>12} ns", ns(cycles));
    }
    say!(
        "clock: {} Hz by CLOCK_MONOTONIC; reading it costs {} cycles, which are subtracted",
        clock::hz(),
        clock::cost()
    );
}

pub(super) fn document(options: &Options, iface: &str, books: &Books) -> Value {
    let mut entries = vec![
        ("schema", "linerate/af-packet-ping/1".into()),
        ("interface", iface.into()),
        ("protocol", options.kind.name().into()),
        ("size", (options.size as u64).into()),
        ("interval_us", (options.interval.as_micros() as u64).into()),
        ("deadline_us", (options.deadline.as_micros() as u64).into()),
        ("clock", clock_of(clock::hz())),
    ];
    entries.extend(counts(books).map(|(name, count)| (name, count.into())));
    let figures = figures(books);
    if !figures.is_empty() {
        entries.push(("cycles", dict(figures.iter().map(|(n, v)| (*n, (*v).into())).collect())));
        entries.push(("ns", dict(figures.iter().map(|(n, v)| (*n, ns(*v).into())).collect())));
        let hdr = histogram::encode([books.round_trips.counters()]);
        entries.extend(hdr.map(|hdr| ("hdr_cycles", Value::String(hdr))));
    }
    dict(entries)
}
