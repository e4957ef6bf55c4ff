// SPDX-License-Identifier: BSD-3-Clause
//! The command line.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use forwarders_common::getopt::{Opt, flag, valued};
use forwarders_common::options::{CommandLine, OptionsError, wrong};
use packet::MacAddr;

use super::request::Kind;
use crate::options::number;

const USAGE: &str = "\
af-packet-ping --iface IF [options]
  --arp, --udp: send ARP requests, or UDP datagrams (default)
  --to MAC: destination of the frames (default ff:ff:ff:ff:ff:ff)
  --count N: frames (default 1000, at most 100000000)
  --interval US: microseconds from one frame to the next (default 1003, at most 1000000); a late reply delays it
  --deadline US: microseconds to wait for a reply (default 100000, at most 1000000)
  --size BYTES: of a frame with its FCS, 64 (default) to 9018
  --out FILE: write the figures to FILE as JSON, too
";

const OPTIONS: [Opt; 9] = [
    valued("iface"),
    flag("arp"),
    flag("udp"),
    valued("to"),
    valued("count"),
    valued("interval"),
    valued("deadline"),
    valued("size"),
    valued("out"),
];

/// The options of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Options {
    pub(super) iface: Option<String>,
    pub(super) kind: Kind,
    pub(super) to: [u8; 6],
    pub(super) count: u64,
    pub(super) interval: Duration,
    pub(super) deadline: Duration,
    pub(super) size: usize,
    pub(super) out: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            iface: None,
            kind: Kind::Udp,
            to: [0xff; 6],
            count: 1000,
            // Not a round number, which would meet every timer in the same phase.
            interval: Duration::from_micros(1003),
            deadline: Duration::from_millis(100),
            size: 64,
            out: None,
        }
    }
}

impl CommandLine for Options {
    const USAGE: &'static str = USAGE;
    const OPTIONS: &'static [Opt] = &OPTIONS;

    fn set(&mut self, option: &'static str, value: &OsStr) -> Result<(), OptionsError> {
        match option {
            "iface" => self.iface = Some(value.to_string_lossy().into_owned()),
            "arp" => self.kind = Kind::Arp,
            "udp" => self.kind = Kind::Udp,
            "to" => {
                let to = value.to_str().and_then(|text| text.parse::<MacAddr>().ok());
                let MacAddr(to) = to.ok_or_else(|| {
                    wrong("invalid value", "--to", "an address such as 02:00:00:00:00:01", value)
                })?;
                self.to = to;
            }
            "count" => {
                let takes = "a number from 1 to 100000000";
                self.count = number("--count", takes, 1..=100_000_000, value)?;
            }
            "interval" => {
                let takes = "microseconds from 0 to 1000000";
                self.interval =
                    Duration::from_micros(number("--interval", takes, 0..=1_000_000, value)?);
            }
            "deadline" => {
                let takes = "microseconds from 1 to 1000000";
                self.deadline =
                    Duration::from_micros(number("--deadline", takes, 1..=1_000_000, value)?);
            }
            "size" => {
                self.size = number("--size", "bytes from 64 to 9018", 64..=9018, value)?;
            }
            _ => self.out = Some(PathBuf::from(value)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(line.split_whitespace())
    }

    #[test]
    fn options_are_read_and_mistakes_named() {
        assert_eq!(parse("").unwrap(), Options::default());
        let line = "--iface x0 --arp --to 02:00:00:00:00:0a --count 7 --interval 0 --deadline 9 \
                    --size 1518 --out f";
        let read = parse(line).unwrap();
        assert_eq!((read.iface.as_deref(), read.kind), (Some("x0"), Kind::Arp));
        assert_eq!((read.to, read.count, read.size), ([2, 0, 0, 0, 0, 10], 7, 1518));
        assert_eq!((read.interval, read.deadline), (Duration::ZERO, Duration::from_micros(9)));
        assert_eq!(read.out, Some(PathBuf::from("f")));
        for (line, option) in [
            ("--count 0", "--count"),
            ("--count +1", "--count"),
            ("--interval 1000001", "--interval"),
            ("--deadline 0", "--deadline"),
            ("--size 63", "--size"),
            ("--to 1:2:3:4:5:6", "--to"),
            ("--to 01:02:03:04:05", "--to"),
            ("--to 01:02:03:04:05:06:07", "--to"),
            ("--what", "--what"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(option), "{line}: {error}");
        }
    }
}
