// SPDX-License-Identifier: BSD-3-Clause
//! Text tables, and a place where they are redrawn each second.

use std::io::{self, IsTerminal};

use super::figures::{Flow, Port, Snapshot};

/// The most flows that are shown while traffic runs.
pub const MOST_FLOWS: usize = 8;

/// Columns with a heading; the first is text, the others are numbers.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with this heading.
    pub fn new(head: &[&str]) -> Self {
        Table { rows: vec![head.iter().map(|text| (*text).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns true if there is a row besides the heading.
    pub fn has_rows(&self) -> bool {
        self.rows.len() > 1
    }

    /// Its lines.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells =
                row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

/// A number, or a dash if there is none.
pub fn or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// Nanoseconds as microseconds.
pub fn micros(nanoseconds: f64) -> String {
    format!("{:.2}", nanoseconds / 1e3)
}

/// A percentage, which is never shown as 0 if it is not.
pub fn percent(percent: f64) -> String {
    match percent {
        0.0 => "0".to_owned(),
        small if small < 0.001 => "<0.001".to_owned(),
        _ => format!("{percent:.3}"),
    }
}

/// The statistics of a moment as tables, with `hz` cycles per second.
pub fn tables(snapshot: &Snapshot, hz: u64, more: usize) -> Vec<String> {
    let mut lines = frames(&snapshot.flows, UNDER_WAY).lines();
    if more > 0 {
        lines.push(format!("and {more} more flows"));
    }
    let latency = latencies(&snapshot.flows, hz);
    if latency.has_rows() {
        lines.push(String::new());
        lines.extend(latency.lines());
    }
    lines.push(String::new());
    lines.extend(ports(&snapshot.ports).lines());
    lines
}

/// The headings for frames that were sent and not received: while traffic runs they may still be in
/// transit, and are lost only at the end.
const UNDER_WAY: [&str; 2] = ["missing", "missing %"];
/// The same headings at the end.
pub const LOST: [&str; 2] = ["lost", "lost %"];

/// Sent and received frames.
pub fn frames(flows: &[Flow], [lost, share]: [&str; 2]) -> Table {
    let mut table = Table::new(&[
        "flow",
        "tx frames",
        "rx frames",
        "tx Mpps",
        "rx Mpps",
        "tx Gbit/s",
        "rx Gbit/s",
        lost,
        share,
        "ingress",
        "late",
        "dup",
        "reord",
        "corrupt",
    ]);
    for flow in flows {
        let count = |value: Option<u64>| or_dash(value, |value| value.to_string());
        table.row([
            flow.name.clone(),
            flow.accepted.to_string(),
            count(flow.received),
            format!("{:.4}", flow.tx.frames / 1e6),
            or_dash(flow.rx, |rx| format!("{:.4}", rx.frames / 1e6)),
            format!("{:.4}", flow.tx.bits / 1e9),
            or_dash(flow.rx, |rx| format!("{:.4}", rx.bits / 1e9)),
            count(flow.lost()),
            or_dash(flow.loss_percent(), percent),
            flow.lost_at_ingress.to_string(),
            flow.late.to_string(),
            count(flow.duplicates),
            count(flow.reordered),
            count(flow.corrupt),
        ]);
    }
    table
}

fn latencies(flows: &[Flow], hz: u64) -> Table {
    let mut table = Table::new(&["latency, us", "min", "mean", "p99", "max", "jitter"]);
    for flow in flows {
        let Some([min, mean, max]) = flow.latency else { continue };
        let p99 = flow.latencies.as_ref().map(|all| all.quantile(0.99) as f64 * 1e9 / hz as f64);
        table.row([
            flow.name.clone(),
            micros(min),
            micros(mean),
            or_dash(p99, micros),
            micros(max),
            or_dash(flow.jitter_ns, |jitter| micros(jitter as f64)),
        ]);
    }
    table
}

/// The ports.
pub fn ports(ports: &[Port]) -> Table {
    let mut table =
        Table::new(&["port", "link", "tx frames", "rx frames", "foreign", "captured", "location"]);
    for port in ports {
        table.row([
            port.name.clone(),
            match (port.up, &port.obstacle) {
                (up, None) => if up { "up" } else { "down" }.to_owned(),
                (up, Some(obstacle)) => format!("{}: {obstacle}", if up { "up" } else { "down" }),
            },
            port.sent.to_string(),
            port.received.to_string(),
            port.foreign.to_string(),
            or_dash(port.capture.as_ref(), |capture| capture.stored.to_string()),
            port.location.clone(),
        ]);
    }
    table
}

/// One line about a flow, for output that is not a terminal.
fn plain(flow: &Flow, seconds: f64, hz: u64) -> String {
    let mut line = format!(
        "{seconds:.0} s {}: tx {} ({:.4} Mpps, {:.4} Gbit/s)",
        flow.name,
        flow.accepted,
        flow.tx.frames / 1e6,
        flow.tx.bits / 1e9
    );
    if let (Some(received), Some(rx)) = (flow.received, flow.rx) {
        let lost = or_dash(flow.lost(), |lost| lost.to_string());
        let share = or_dash(flow.loss_percent(), percent);
        line.push_str(&format!(
            " rx {received} ({:.4} Mpps) missing {lost} ({share} %)",
            rx.frames / 1e6
        ));
    }
    line.push_str(&format!(" ingress {} late {}", flow.lost_at_ingress, flow.late));
    for (name, value) in
        [("dup", flow.duplicates), ("reordered", flow.reordered), ("corrupt", flow.corrupt)]
    {
        line.push_str(&value.map(|value| format!(" {name} {value}")).unwrap_or_default());
    }
    if let (Some([min, mean, max]), Some(all)) = (flow.latency, &flow.latencies) {
        let p99 = all.quantile(0.99) as f64 * 1e9 / hz as f64;
        line.push_str(&format!(
            " latency us min {} mean {} p99 {} max {}",
            micros(min),
            micros(mean),
            micros(p99),
            micros(max)
        ));
    }
    line
}

/// Where tables are printed: on a terminal over the last ones, elsewhere one after the other.
pub struct Screen {
    terminal: bool,
    drawn: usize,
}

impl Screen {
    /// Standard output.
    pub fn new() -> Self {
        Screen { terminal: io::stdout().is_terminal(), drawn: 0 }
    }

    /// Prints the statistics of a moment, `seconds` after the start.
    pub fn draw(&mut self, snapshot: &Snapshot, seconds: f64, hz: u64, more: usize) {
        if self.terminal {
            let mut lines = vec![format!("{seconds:.0} s; Ctrl-C ends it")];
            lines.extend(tables(snapshot, hz, more));
            self.clear();
            self.drawn = lines.len();
            // Lines that are too long must not wrap.
            print(&format!("\x1b[?7l{}\n\x1b[?7h", lines.join("\n")));
        } else {
            let lines = snapshot.flows.iter().map(|flow| plain(flow, seconds, hz) + "\n");
            print(&lines.collect::<String>());
        }
    }

    /// Removes the last statistics, if possible.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            print(&format!("\x1b[{}A\x1b[J", self.drawn));
            self.drawn = 0;
        }
    }
}

impl Default for Screen {
    fn default() -> Self {
        Screen::new()
    }
}

/// Prints text. If it cannot be written, the program continues.
pub fn print(text: &str) {
    host::console::print(format_args!("{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need() {
        let mut table = Table::new(&["flow", "n"]);
        assert!(!table.has_rows());
        table.row(["a long name".to_owned(), "5".to_owned()]);
        table.row(["b".to_owned(), "1000".to_owned()]);
        assert_eq!(table.lines(), ["flow            n", "a long name     5", "b            1000"]);
    }

    #[test]
    fn what_is_not_known_is_no_zero() {
        let flow = Flow { name: "r".to_owned(), accepted: 3, replay: true, ..Flow::default() };
        let lines = frames(std::slice::from_ref(&flow), LOST).lines();
        let cells: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(cells[..3], ["r", "3", "-"]);
        assert_eq!(cells[7..9], ["-", "-"]);
        assert!(!plain(&flow, 1.0, 1).contains("rx"));
        assert!(!latencies(&[flow], 1).has_rows());
        assert_eq!(
            (percent(0.0), percent(0.0001), percent(12.5)),
            ("0".into(), "<0.001".into(), "12.500".into())
        );
    }
}
