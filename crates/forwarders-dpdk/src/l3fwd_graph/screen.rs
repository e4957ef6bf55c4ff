// SPDX-License-Identifier: BSD-3-Clause
//! Prints the nodes' statistics, once a second.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forwarders_common::say_on;
use graph::NodeStats;

use super::desk::Desk;

const PERIOD: Duration = Duration::from_secs(1);

/// Prints the nodes, summed over all lcores.
pub struct Screen {
    desks: Vec<Arc<Desk>>,
    shown: Instant,
    /// Object count of each node at the last time.
    before: Vec<u64>,
}

impl Screen {
    /// Of these lcores.
    pub fn new(desks: Vec<Arc<Desk>>) -> Self {
        Self { desks, shown: Instant::now(), before: Vec::new() }
    }

    /// The time until it is due.
    pub fn due(&self) -> Duration {
        PERIOD.saturating_sub(self.shown.elapsed())
    }

    /// Clears the terminal and prints the nodes, if a second has passed.
    pub fn tick(&mut self) {
        let elapsed = self.shown.elapsed();
        if elapsed < PERIOD {
            return;
        }
        self.shown = Instant::now();
        let nodes = together(self.desks.iter().map(|desk| desk.stats()));
        let text = table(&nodes, &self.before, elapsed.as_secs_f64());
        self.before = nodes.iter().map(|node| node.objects.unwrap_or(0)).collect();
        say_on!("{text}");
    }
}

/// The sum of the counters of several graphs with the same nodes.
fn together(graphs: impl Iterator<Item = Vec<NodeStats>>) -> Vec<NodeStats> {
    let add = |one: &mut Option<u64>, other: Option<u64>| {
        *one = one.zip(other).map(|(one, other)| one + other).or(*one).or(other);
    };
    graphs.filter(|nodes| !nodes.is_empty()).fold(Vec::new(), |mut sum, nodes| {
        if sum.is_empty() {
            return nodes;
        }
        for (sum, node) in sum.iter_mut().zip(nodes) {
            add(&mut sum.calls, node.calls);
            add(&mut sum.objects, node.objects);
            add(&mut sum.cycles, node.cycles);
            sum.dropped += node.dropped;
        }
        sum
    })
}

fn table(nodes: &[NodeStats], before: &[u64], seconds: f64) -> String {
    let mut text = String::from("\u{1b}[2J\u{1b}[1;1H");
    let _ = writeln!(
        text,
        "{:<14}{:>16}{:>18}{:>12}{:>12}{:>14}{:>12}",
        "Node", "calls", "packets", "dropped", "packets/s", "packets/call", "cycles/call"
    );
    for (place, node) in nodes.iter().enumerate() {
        let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let per_call = |value: Option<u64>| match value.zip(node.calls) {
            Some((value, calls)) if calls > 0 => format!("{:.1}", value as f64 / calls as f64),
            _ => "-".to_owned(),
        };
        let earlier = before.get(place).copied().unwrap_or(0);
        let rate = node.objects.map(|n| (n.saturating_sub(earlier) as f64 / seconds) as u64);
        let _ = writeln!(
            text,
            "{:<14}{:>16}{:>18}{:>12}{:>12}{:>14}{:>12}",
            node.name,
            number(node.calls),
            number(node.objects),
            node.dropped,
            number(rate),
            per_call(node.objects),
            per_call(node.cycles),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(calls: Option<u64>, objects: u64) -> NodeStats {
        let (cycles, dropped) = (calls.map(|n| n * 100), 1);
        NodeStats { name: "classify".to_owned(), calls, objects: Some(objects), cycles, dropped }
    }

    #[test]
    fn graphs_are_added_up_and_what_nobody_counted_is_no_number() {
        let sum = together([vec![], vec![node(Some(2), 10)], vec![node(Some(3), 5)]].into_iter());
        assert_eq!(sum, [NodeStats { dropped: 2, ..node(Some(5), 15) }]);
        let text = table(&sum, &[5], 2.0);
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row, ["classify", "5", "15", "2", "5", "3.0", "100.0"]);
        let text = table(&[node(None, 15)], &[], 1.0);
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row, ["classify", "-", "15", "1", "15", "-", "-"]);
    }
}
