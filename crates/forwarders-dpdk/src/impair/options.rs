// SPDX-License-Identifier: BSD-3-Clause
//! The command line.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::getopt::{Opt, flag, valued};
use crate::options::{CommandLine, OptionsError, period, port_mask, wrong};

const USAGE: &str = "\
impair [EAL options] -- [-p PORTMASK] [-P] [effects] [-T PERIOD] [--json-stats FILE]
  -p PORTMASK: hexadecimal bitmask of one port, to echo on, or two, to connect (default: all)
  -P : Enable promiscuous mode
  Effects, in the order in which they work:
  --drop N: drop every Nth frame
  --corrupt N[:OFFSET]: flip a bit of every Nth frame, in byte OFFSET, from the end when negative
      (default -4, in the time stamp of a generator's frame)
  --duplicate N: send every Nth frame twice
  --reorder N[:DISTANCE]: hold every Nth frame back until DISTANCE later ones have come (default 1)
  --delay MICROSECONDS[:JITTER]: hold every frame that long, and up to JITTER microseconds longer
  --hold FRAMES: most frames in their delay at once on each path (default 8192)
  --random SEED: every Nth by chance 1/N instead of each Nth; the same frames for the same SEED
  -T PERIOD: the file is written each PERIOD seconds (default 10, 0 for at the end only, 86399 maximum)
  --json-stats FILE: write statistics to FILE as JSON
";

/// The corruption of some frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupt {
    /// Every how many frames.
    pub every: u32,
    /// The byte's offset; from the end if negative (-1 is the last).
    pub offset: i32,
}

/// Some frames are held back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reordering {
    /// Every how many frames.
    pub every: u32,
    /// The number of later frames received before it leaves.
    pub distance: u32,
}

/// All frames are delayed. Times are microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delaying {
    /// The minimum.
    pub microseconds: u32,
    /// The most that is added at random.
    pub jitter: u32,
}

/// The options of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Ports; `None` for all.
    pub port_mask: Option<u32>,
    /// True if ports are promiscuous.
    pub promiscuous: bool,
    /// One frame in this many is dropped.
    pub drop: Option<u32>,
    /// Which frames are corrupted.
    pub corrupt: Option<Corrupt>,
    /// One frame in this many is sent twice.
    pub duplicate: Option<u32>,
    /// Which frames are held back.
    pub reorder: Option<Reordering>,
    /// How long each frame is delayed.
    pub delay: Option<Delaying>,
    /// The most frames of a path in their delay at one time.
    pub hold: u32,
    /// The seed, if frames are chosen at random.
    pub random: Option<u64>,
    /// Seconds between statistics; 0 for none before the end.
    pub period: u32,
    /// The file for statistics as JSON.
    pub json_stats: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port_mask: None,
            promiscuous: false,
            drop: None,
            corrupt: None,
            duplicate: None,
            reorder: None,
            delay: None,
            hold: 8192,
            random: None,
            period: 10,
            json_stats: None,
        }
    }
}

/// The default byte to corrupt: in the generator's time stamp, so that the generator still
/// recognises the frame by the signature around it.
const OFFSET: i32 = -4;
/// Each frame held back has an mbuf.
const MAX_DISTANCE: u32 = 65_535;
/// Each frame in its delay has one, too: at 2 KiB each this is 2 GiB.
const MAX_HOLD: u32 = 1 << 20;
/// Ten minutes.
const MAX_MICROSECONDS: u32 = 600_000_000;

const OPTIONS: &[Opt] = &[
    valued("p"),
    flag("P"),
    valued("T"),
    valued("drop"),
    valued("corrupt"),
    valued("duplicate"),
    valued("reorder"),
    valued("delay"),
    valued("hold"),
    valued("random"),
    valued("json-stats"),
];

impl CommandLine for Options {
    const USAGE: &'static str = USAGE;
    const OPTIONS: &'static [Opt] = OPTIONS;

    fn set(&mut self, option: &'static str, value: &OsStr) -> Result<(), OptionsError> {
        match option {
            "p" => self.port_mask = Some(port_mask(value)?),
            "P" => self.promiscuous = true,
            "T" => self.period = period(value)?,
            "drop" => self.drop = Some(every("--drop", value)?),
            "corrupt" => self.corrupt = Some(corrupt(value)?),
            "duplicate" => self.duplicate = Some(every("--duplicate", value)?),
            "reorder" => self.reorder = Some(reorder(value)?),
            "delay" => self.delay = Some(delay(value)?),
            "hold" => self.hold = hold(value)?,
            "random" => self.random = Some(random(value)?),
            _ => self.json_stats = Some(PathBuf::from(value)),
        }
        Ok(())
    }
}

/// Parses the two numbers of `FIRST[:SECOND]`. No blanks, plus signs or other bases.
fn pair<A: FromStr, B: FromStr>(value: &OsStr) -> Option<(A, Option<B>)> {
    let text = value.to_str()?;
    let (first, second) = match text.split_once(':') {
        Some((first, second)) => (first, Some(second)),
        None => (text, None),
    };
    let second = match second {
        Some(text) => Some(number(text)?),
        None => None,
    };
    Some((number(first)?, second))
}

fn number<N: FromStr>(text: &str) -> Option<N> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

const NUMBER: &str = "invalid number";

fn every(option: &'static str, value: &OsStr) -> Result<u32, OptionsError> {
    value
        .to_str()
        .and_then(number)
        .filter(|n| *n > 0)
        .ok_or_else(|| wrong(NUMBER, option, "N, 1 to 4294967295 (leave it out for none)", value))
}

fn corrupt(value: &OsStr) -> Result<Corrupt, OptionsError> {
    match pair(value) {
        Some((every @ 1.., offset)) => Ok(Corrupt { every, offset: offset.unwrap_or(OFFSET) }),
        _ => Err(wrong(
            NUMBER,
            "--corrupt",
            "N or N:OFFSET, N from 1 and OFFSET a byte's place",
            value,
        )),
    }
}

fn reorder(value: &OsStr) -> Result<Reordering, OptionsError> {
    let read = pair(value).map(|(every, distance)| (every, distance.unwrap_or(1)));
    match read {
        Some((every @ 1.., distance @ 1..=MAX_DISTANCE)) => Ok(Reordering { every, distance }),
        _ => {
            let takes = "N or N:DISTANCE, N from 1 and DISTANCE 1 to 65535 frames";
            Err(wrong(NUMBER, "--reorder", takes, value))
        }
    }
}

fn delay(value: &OsStr) -> Result<Delaying, OptionsError> {
    let read = pair(value).map(|(least, jitter)| (least, jitter.unwrap_or(0)));
    match read {
        Some((microseconds @ 0..=MAX_MICROSECONDS, jitter @ 0..=MAX_MICROSECONDS)) => {
            Ok(Delaying { microseconds, jitter })
        }
        _ => {
            let takes = "MICROSECONDS or MICROSECONDS:JITTER, each 0 to 600000000";
            Err(wrong(NUMBER, "--delay", takes, value))
        }
    }
}

fn hold(value: &OsStr) -> Result<u32, OptionsError> {
    match value.to_str().and_then(number) {
        Some(frames @ 1..=MAX_HOLD) => Ok(frames),
        _ => Err(wrong(NUMBER, "--hold", "1 to 1048576 frames", value)),
    }
}

fn random(value: &OsStr) -> Result<u64, OptionsError> {
    value
        .to_str()
        .and_then(number)
        .ok_or_else(|| wrong("invalid seed", "--random", "a number from 0 to 2^64 - 1", value))
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
            "-p 3 -P --drop 100 --corrupt 7:-18 --duplicate=50 --reorder 20:3 --delay 150:20 \
             --hold 64 --random 18446744073709551615 -T 0 --json-stats /run/i.json",
        );
        let expected = Options {
            port_mask: Some(3),
            promiscuous: true,
            drop: Some(100),
            corrupt: Some(Corrupt { every: 7, offset: -18 }),
            duplicate: Some(50),
            reorder: Some(Reordering { every: 20, distance: 3 }),
            delay: Some(Delaying { microseconds: 150, jitter: 20 }),
            hold: 64,
            random: Some(u64::MAX),
            period: 0,
            json_stats: Some(PathBuf::from("/run/i.json")),
        };
        assert_eq!(options.unwrap(), expected);
        assert_eq!(parse("").unwrap(), Options::default());
        let short = parse("--corrupt 2 --reorder 3 --delay 0").unwrap();
        assert_eq!(short.corrupt, Some(Corrupt { every: 2, offset: -4 }));
        assert_eq!(short.reorder, Some(Reordering { every: 3, distance: 1 }));
        assert_eq!(short.delay, Some(Delaying { microseconds: 0, jitter: 0 }));
        assert_eq!(parse("--corrupt 1:60").unwrap().corrupt.unwrap().offset, 60);
    }

    #[test]
    fn mistakes_name_the_option_and_the_value() {
        for (option, values) in [
            ("--drop", &["0", "-1", "x", "", "3:1", "+3", "4294967296", "1.5"][..]),
            ("--duplicate", &["0", "many"]),
            ("--corrupt", &["0", "0:4", "3:", "3:x", ":4", "3:4:5", "3:+4", "3:2147483648"]),
            ("--reorder", &["0:1", "2:0", "2:65536", "2:-1", "2:x"]),
            ("--delay", &["-1", "600000001", "5:-1", "5:600000001", "5us", ":"]),
            ("--hold", &["0", "1048577", "x"]),
            ("--random", &["", "-1", "x", "18446744073709551616"]),
            ("-p", &["0", "z"]),
            ("-T", &["-1", "86400"]),
        ] {
            for value in values {
                let error = Options::parse([option, value]).unwrap_err().to_string();
                assert!(error.contains(option) && error.contains(&format!("{value:?}")), "{error}");
            }
            assert!(Options::parse([option]).unwrap_err().to_string().contains(option));
        }
        assert!(parse("--lose 3").unwrap_err().to_string().contains("--lose"));
    }
}
