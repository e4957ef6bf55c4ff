// SPDX-License-Identifier: BSD-3-Clause
//! Compares command lines with the C l2fwd: both accept the same ones, use the same ports on the
//! same lcores, print the same lines, and exit on SIGTERM with the same status.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::path::Path;

use support::{Forwarder, c_l2fwd, wait_until};

/// A command line: lcores, devices, and the options after `--`.
type Case = (usize, &'static [&'static str], &'static [&'static str]);

const NULL3: &[&str] = &["net_null0", "net_null1", "net_null2"];
const NULL4: &[&str] = &["net_null0", "net_null1", "net_null2", "net_null3"];
const RING2: &[&str] = &["net_ring0", "net_ring1"];

const VALID: &[Case] = &[
    (1, NULL3, &["-p", "7", "-q", "3", "-T", "0"]),
    (1, NULL3, &["-p3", "-q2", "-T0"]),
    (1, NULL3, &["-p", "0x5", "-q", "2", "-T", "0", "--no-mac-updating"]),
    (1, NULL3, &["-p", "0X4", "-T", "0"]),
    (1, NULL3, &["-p", " 1", "-T", "0", "-P"]),
    (1, NULL3, &["-PT0", "-p1"]),
    (1, NULL3, &["-p", "1", "-T", "0", "stray", "-"]),
    (1, NULL3, &["-p", "1", "-T", "0", "--", "-p", "0"]),
    (1, NULL3, &["-p", "1", "-p", "2", "-T", "5", "-T", "0"]),
    (1, NULL3, &["-p", "100000001", "-T", "0"]),
    (1, NULL3, &["-p", "1", "-T", "86399"]),
    (1, NULL3, &["-p", "1", "-T", "4294967296"]),
    (1, NULL3, &["-p", "1", "-T", "-9223372036854775809"]),
    (1, NULL3, &["-p", "1", "-q", "+15", "-T", "0", "--no"]),
    // Port maps: one pair, in either order, a port with itself, unusual spellings.
    (1, NULL3, &["-p", "7", "-q", "3", "-T", "0", "--portmap=(0,2)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "-T", "0", "--portmap", "(2,1)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "-T", "0", "--portm=(0,1)(2,2)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "-T", "0", "--portmap=[(0x0, 01x), and ( 2,+2 )]"]),
    (1, NULL3, &["-p", "7", "-q", "3", "-T", "0", "--portmap=(0,1)", "--portmap=(1,2)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "-T", "0", "--portmap=(0,1,2)"]),
    (1, NULL4, &["-p", "f", "-q", "4", "-T", "0", "--portmap=(0,3),(1,2)"]),
    // Two ports and four, of both kinds, on one lcore and on several; lcores without a port.
    (1, RING2, &["-p", "3", "-q", "2", "-T", "0"]),
    (1, RING2, &["-p", "2", "-T", "0"]),
    (2, RING2, &["-p", "3", "-T", "0"]),
    (4, RING2, &["-p", "3", "-T", "0"]),
    (3, NULL4, &["-p", "f", "-q", "2", "-T", "0"]),
    (3, NULL4, &["-p", "f", "-q", "15", "-T", "0"]),
    (3, NULL3, &["-p", "7", "-T", "0"]),
];

const WRONG: &[Case] = &[
    (1, &[], &["-p", "1"]),
    (1, NULL3, &[]),
    (1, NULL3, &["-p", "0"]),
    (1, NULL3, &["-p", "xyz"]),
    (1, NULL3, &["-p", ""]),
    (1, NULL3, &["-p=3"]),
    (1, NULL3, &["-p", "3 "]),
    (1, NULL3, &["-p", "100000000"]),
    (1, NULL3, &["-p"]),
    (1, NULL3, &["-p", "8", "-T", "0"]),
    (1, NULL3, &["-p", "ffffffff", "-T", "0"]),
    (1, NULL3, &["-p", "7", "-T", "0"]),
    (2, NULL3, &["-p", "7", "-T", "0"]),
    (1, NULL3, &["-p", "1", "-q", "0"]),
    (1, NULL3, &["-p", "1", "-q", "16"]),
    (1, NULL3, &["-p", "1", "-q", "-1"]),
    (1, NULL3, &["-p", "1", "-q", "two"]),
    (1, NULL3, &["-p", "1", "-q", "2x"]),
    (1, NULL3, &["-p", "1", "-T", "-1"]),
    (1, NULL3, &["-p", "1", "-T", "86400"]),
    (1, NULL3, &["-p", "1", "-T", "99999999999999999999999"]),
    (1, NULL3, &["-p", "1", "-T", "9223372036854775809"]),
    (1, NULL3, &["-p", "1", "-T", "1.5"]),
    (1, NULL3, &["-p", "7", "-q", "3", "--portmap=(0,1"]),
    (1, NULL3, &["-p", "7", "-q", "3", "--portmap=(0)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "--portmap=(,1)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "--portmap=(0,99)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "--portmap=(0,-1)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "--portmap=none"]),
    (1, NULL3, &["-p", "7", "-q", "3", "--portmap"]),
    (1, NULL3, &["-p", "1", "-q", "3", "--portmap=(0,1)"]),
    (1, NULL3, &["-p", "9", "-q", "3", "--portmap=(0,3)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "--portmap=(0,1)(1,2)"]),
    (1, NULL3, &["-p", "7", "-q", "3", "--portmap=(0,1)(0,1)"]),
    (1, NULL3, &["-p", "1", "--no-such-option"]),
    (1, NULL3, &["-p", "1", "--no-mac-updating=yes"]),
    (1, NULL3, &["-p", "1", "--help"]),
    (1, NULL3, &["-h"]),
    (1, NULL3, &["-z"]),
    (1, NULL3, &["-p", "1", "-T"]),
    // A client without a server.
    (1, &["net_memif0,socket=/tmp/linerate-nobody,socket-abstract=no"], &["-p", "1"]),
    (1, &["net_memif0,socket=/no/such/abstract/memif"], &["-p", "1"]),
];

/// The result of a command line.
struct Outcome {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Outcome {
    /// Standard output and the lcores' log, without random addresses of the null driver, without
    /// the order in which lcores printed their lines, and without statistics screens: the first
    /// screen is due when the time stamp counter, which may count since the machine's start, has
    /// passed the period, and whether the signal comes before that is chance.
    fn lines(&self) -> (Vec<String>, Vec<&str>) {
        let out = without_screens(&self.out);
        let out = out.lines().map(|line| match line.split_once("MAC address: ") {
            Some((port, mac)) if mac.len() == 17 => format!("{port}, a MAC address"),
            _ => line.to_owned(),
        });
        let mut log: Vec<&str> =
            self.err.lines().filter(|line| line.starts_with("L2FWD: ")).collect();
        log.sort_unstable();
        (out.collect(), log)
    }
}

const SCREEN_STARTS: &str = "\u{1b}[2J";
const SCREEN_ENDS: &str = "\n====================================================\n";

fn without_screens(out: &str) -> String {
    let mut parts = out.split(SCREEN_STARTS);
    let mut rest = parts.next().unwrap().to_owned();
    for part in parts {
        rest += part.split_once(SCREEN_ENDS).expect("a whole screen").1;
    }
    rest
}

fn run(program: &Path, words: &[String]) -> Outcome {
    let mut forwarder = Forwarder::spawn(program, words);
    forwarder.wait_until_it_forwards();
    let status = forwarder.ended().unwrap_or_else(|| forwarder.stop());
    Outcome { code: status.code(), out: forwarder.out(), err: forwarder.err() }
}

/// In parallel, because EAL sleeps while it starts.
fn both(c: &Path, ours: &Path, words: &[String]) -> [Outcome; 2] {
    std::thread::scope(|scope| {
        let expected = scope.spawn(|| run(c, words));
        let outcome = run(ours, words);
        [expected.join().unwrap(), outcome]
    })
}

fn words(&(lcores, devices, options): &Case) -> Vec<String> {
    let mut words = vec![support::lcores(lcores)];
    words.extend(devices.iter().map(|device| format!("--vdev={device}")));
    words.push("--".to_owned());
    words.extend(options.iter().map(|option| (*option).to_owned()));
    words
}

#[test]
fn command_lines_mean_what_they_mean_in_c() {
    let _cleanup = support::Cleanup;
    let c = c_l2fwd();
    let ours = Path::new(env!("CARGO_BIN_EXE_l2fwd"));
    let show = |words: &[String], c: &Outcome, ours: &Outcome| {
        format!("{words:?}\n--- C:\n{}{}\n--- ours:\n{}{}", c.out, c.err, ours.out, ours.err)
    };
    for words in VALID.iter().map(words) {
        let [expected, outcome] = both(&c, ours, &words);
        let both = show(&words, &expected, &outcome);
        assert_eq!((expected.code, outcome.code), (Some(0), Some(0)), "{both}");
        assert_eq!(outcome.lines(), expected.lines(), "{both}");
    }
    // No `--`, no option of ours after EAL's, and one of ours among EAL's.
    let bare = ["", "-p", "-T"].map(|extra| {
        let mut words = vec![support::lcores(1), "--vdev=net_null0".to_owned()];
        words.extend((!extra.is_empty()).then(|| extra.to_owned()));
        words
    });
    let wrong = WRONG.iter().map(|case| (words(case), Some(1)));
    // EAL of later releases then ends both programs itself, with its own exit status.
    for (words, code) in wrong.chain(bare.map(|words| (words, None))) {
        let [expected, outcome] = both(&c, ours, &words);
        let both = show(&words, &expected, &outcome);
        let code = code.or(expected.code);
        assert_eq!((expected.code, outcome.code), (code, code), "{both}");
        assert!(code.is_some_and(|code| code != 0), "{both}");
        assert!(outcome.err.lines().any(|line| line.starts_with("l2fwd: ")), "no message: {both}");
        // If C prints the usage, so do we.
        let usage = "[EAL options] -- -p PORTMASK [-P] [-q NQ]";
        assert_eq!(outcome.out.contains(usage), expected.out.contains(usage), "{both}");
        let memif = words.iter().any(|word| word.contains("net_memif"));
        assert_eq!(outcome.err.contains("no memif server listens on /"), memif, "{both}");
    }
    screens(&c, ours);
}

/// The first screen, which is printed before the first packet, although null ports always have
/// packets.
fn screens(c: &Path, ours: &Path) {
    let words = words(&(1, NULL3, &["-p", "3", "-q", "2", "-T", "1"]));
    let [expected, screen] = [c, ours].map(|program| {
        let mut forwarder = Forwarder::spawn(program, &words);
        let mut screen = None;
        wait_until("screen", || {
            let out = forwarder.out();
            let from = out.find(SCREEN_STARTS);
            screen = from.and_then(|from| {
                out[from..].split_once(SCREEN_ENDS).map(|(screen, _)| screen.to_owned())
            });
            screen.is_some()
        });
        assert!(forwarder.stop().success());
        screen
    });
    assert_eq!(screen, expected);
    assert!(screen.unwrap().contains("\nStatistics for port 1 ---"));
}
