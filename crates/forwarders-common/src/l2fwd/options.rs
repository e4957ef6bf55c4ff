// SPDX-License-Identifier: BSD-3-Clause
//! The command line, as the C example reads it.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::getopt::{Opt, flag, valued};
use crate::options::{CommandLine, OptionsError, in_brackets, period, port_mask, strtoul, wrong};

/// Ports that a process can have (`RTE_MAX_ETHPORTS` of the distribution's DPDK).
const MAX_PORTS: u64 = 32;
const MAX_PAIRS: usize = MAX_PORTS as usize / 2;
/// A C program's buffer for one pair, its NUL included.
const MAX_PAIR_TEXT: usize = 256;
const MAX_PORTS_PER_LCORE: u64 = 16;

/// The usage text, printed after every error.
pub const USAGE: &str = "\
l2fwd [EAL options] -- -p PORTMASK [-P] [-q NQ] [-T PERIOD] [--json-stats FILE]
  -p PORTMASK: hexadecimal bitmask of ports to configure
  -P : Enable promiscuous mode
  -q NQ: number of queue (=ports) per lcore (default is 1)
  -T PERIOD: statistics will be refreshed each PERIOD seconds (0 to disable, 10 default, 86399 maximum)
  --[no-]mac-updating: Enable or disable MAC addresses updating (enabled by default)
      When enabled:
       - The source MAC address is replaced by the TX port MAC address
       - The destination MAC address is replaced by 02:00:00:00:00:TX_PORT_ID
  --portmap=(A,B)[,(C,D)..]: Configure forwarding port pair mapping
      Default: alternate port pairs
  --burst-forwarding: send each received burst at once, without the TX buffer
  --json-stats FILE: write statistics to FILE as JSON, each PERIOD seconds (-T) and at the end
";

/// The options of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Enabled ports; 0 when none were named.
    pub port_mask: u32,
    /// True if ports are promiscuous.
    pub promiscuous: bool,
    /// Ports that one lcore polls.
    pub ports_per_lcore: usize,
    /// Seconds between statistics screens; 0 for none.
    pub period: u32,
    /// True if MAC addresses are rewritten.
    pub mac_updating: bool,
    /// Pairs of ports; `None` to pair adjacent ones.
    pub pairs: Option<Vec<[u16; 2]>>,
    /// True if each burst is sent at once, as it was received.
    pub burst_forwarding: bool,
    /// The file for statistics as JSON.
    pub json_stats: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port_mask: 0,
            promiscuous: false,
            ports_per_lcore: 1,
            period: 10,
            mac_updating: true,
            pairs: None,
            burst_forwarding: false,
            json_stats: None,
        }
    }
}

/// The options of [`Options`].
pub const OPTIONS: &[Opt] = &[
    valued("p"),
    flag("P"),
    valued("q"),
    valued("T"),
    flag("mac-updating"),
    flag("no-mac-updating"),
    valued("portmap"),
    flag("burst-forwarding"),
    valued("json-stats"),
];

impl CommandLine for Options {
    const USAGE: &'static str = USAGE;
    const OPTIONS: &'static [Opt] = OPTIONS;

    fn set(&mut self, option: &'static str, value: &OsStr) -> Result<(), OptionsError> {
        match option {
            "p" => self.port_mask = port_mask(value)?,
            "P" => self.promiscuous = true,
            "q" => self.ports_per_lcore = ports_per_lcore(value)?,
            "T" => self.period = period(value)?,
            "mac-updating" => self.mac_updating = true,
            "no-mac-updating" => self.mac_updating = false,
            "portmap" => self.pairs = Some(port_map(value)?),
            "burst-forwarding" => self.burst_forwarding = true,
            _ => self.json_stats = Some(PathBuf::from(value)),
        }
        Ok(())
    }
}

fn ports_per_lcore(value: &OsStr) -> Result<usize, OptionsError> {
    match strtoul(&value.to_string_lossy(), 10) {
        Some((n @ 1..MAX_PORTS_PER_LCORE, "")) => Ok(n as usize),
        _ => Err(wrong("invalid queue number", "-q", "1 to 15", value)),
    }
}

fn port_map(value: &OsStr) -> Result<Vec<[u16; 2]>, OptionsError> {
    let takes = "pairs of ports such as (0,1)(2,3)";
    pairs(&value.to_string_lossy())
        .ok_or_else(|| wrong("Invalid config", "--portmap", takes, value))
}

/// Pairs of ports in brackets, parsed as leniently as in the C example: text between brackets is
/// skipped, and so is text after a number.
fn pairs(text: &str) -> Option<Vec<[u16; 2]>> {
    let mut pairs = Vec::new();
    for inner in in_brackets(text, MAX_PAIR_TEXT)? {
        let (first, second) = inner.split_once(',')?;
        let port = |field: &str| match strtoul(field, 0) {
            Some((port @ 0..MAX_PORTS, _)) => Some(port as u16),
            _ => None,
        };
        if pairs.len() == MAX_PAIRS {
            return None;
        }
        pairs.push([port(first)?, port(second)?]);
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(line.split_whitespace())
    }

    #[test]
    fn every_option_is_read() {
        let options = parse(
            "-p 0x3 -P -q 2 -T 0 --no-mac-updating --portmap=(0,1) --burst-forwarding \
             --json-stats /run/s.json",
        );
        assert_eq!(
            options.unwrap(),
            Options {
                port_mask: 3,
                promiscuous: true,
                ports_per_lcore: 2,
                period: 0,
                mac_updating: false,
                pairs: Some(vec![[0, 1]]),
                burst_forwarding: true,
                json_stats: Some(PathBuf::from("/run/s.json")),
            }
        );
        assert_eq!(parse("-p3 --no-mac").unwrap().port_mask, 3);
        assert!(parse("--no-mac-updating --mac-updating").unwrap().mac_updating);
    }

    #[test]
    fn pairs_are_read_as_the_c_example_reads_them() {
        assert_eq!(pairs("(0,1)(2,3)"), Some(vec![[0, 1], [2, 3]]));
        assert_eq!(pairs("(0,1),(0x2, 3x)"), Some(vec![[0, 1], [2, 3]]));
        assert_eq!(pairs("none"), Some(vec![]));
        for wrong in ["(0,1", "(0)", "(,1)", "(0,)", "(0,32)", "()"] {
            assert_eq!(pairs(wrong), None, "{wrong:?}");
        }
        assert!(pairs(&"(0,1)".repeat(16)).is_some());
        assert_eq!(pairs(&"(0,1)".repeat(17)), None);
    }

    #[test]
    fn mistakes_name_the_option() {
        for (line, option) in [
            ("-p 0", "-p"),
            ("-p xyz", "-p"),
            ("-q 0", "-q"),
            ("-q 16", "-q"),
            ("-T -1", "-T"),
            ("-T 86400", "-T"),
            ("--portmap=(1", "--portmap"),
            ("--bogus", "--bogus"),
            ("-z", "-z"),
            ("-p", "-p"),
            ("-p=3", "-p"),
            ("--json-stats", "--json-stats"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(option), "{line}: {error}");
        }
    }
}
