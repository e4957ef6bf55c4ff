// SPDX-License-Identifier: BSD-3-Clause
//! Repeated starts and stops leave nothing behind: no file, no socket, no process. After a kill,
//! the next forwarder with the same options removes what is left.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use support::{Forwarder, runtime_dir, wait_until};

/// How often a test has a forwarder end, by the way in which it ends.
struct Ends {
    /// Clean starts and stops.
    cycles: usize,
    /// Signals that ask it to end at any moment, also while EAL starts.
    early: usize,
    /// Kills of each kind, each followed by a clean start and stop.
    kills: usize,
}

/// The latest moment of a signal or kill: a forwarder that is alone has long been forwarding by then.
const LATEST: Duration = Duration::from_millis(400);
/// SIGTERM.
const TERM: i32 = 15;
const PREFIX: &str = "lifecycle";

#[test]
fn nothing_is_left_behind() {
    check(&Ends { cycles: 20, early: 10, kills: 2 });
}

mod second_tier {
    #[test]
    fn nothing_is_left_behind_by_many() {
        super::check(&super::Ends { cycles: 100, early: 25, kills: 8 });
    }
}

fn check(ends: &Ends) {
    // Both tests look at all files and processes of this one's directory.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _cleanup = support::Cleanup;
    fs::create_dir_all(runtime_dir().join("files")).unwrap();
    for cycle in 0..ends.cycles {
        clean(if cycle % 2 == 0 { Signal::Term } else { Signal::Int });
    }
    // The same moments in each run, from a generator with period 2^64.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut moment = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Duration::from_micros(state % LATEST.as_micros() as u64)
    };
    for _ in 0..ends.early {
        end_after(moment());
    }
    for _ in 0..ends.kills {
        for kill in [Kill::After(moment()), Kill::InEal, Kill::Listening, Kill::Forwarding] {
            kill_at(kill);
            clean(Signal::Term);
        }
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Term,
    Int,
}

/// l2fwd with everything that it can leave behind: a memif server's socket, EAL's directory, a
/// statistics file.
fn start() -> Forwarder {
    let files = runtime_dir().join("files");
    let words = [
        support::lcores(2),
        "--vdev=net_ring0".to_owned(),
        format!(
            "--vdev=net_memif0,role=server,socket={},socket-abstract=no",
            files.join("memif").display()
        ),
        "--".to_owned(),
        // Not the memif port, whose link never comes up: its driver still listens.
        "-p1".to_owned(),
        "-T1".to_owned(),
        "--json-stats".to_owned(),
        files.join("s.json").to_str().unwrap().to_owned(),
    ];
    Forwarder::spawn_as(PREFIX, Path::new(env!("CARGO_BIN_EXE_l2fwd")), &words)
}

fn clean(signal: Signal) {
    let mut forwarder = start();
    forwarder.wait_until_it_forwards();
    assert!(forwarder.ended().is_none(), "{}", forwarder.err());
    assert_eq!(processes().len(), 1);
    let status = match signal {
        Signal::Term => forwarder.stop(),
        Signal::Int => forwarder.interrupt(),
    };
    assert!(status.success(), "{status}: {}", forwarder.err());
    assert_eq!(files_below(runtime_dir()), [runtime_dir().join("files/s.json")]);
    assert_eq!(processes(), Vec::<PathBuf>::new());
}

fn end_after(delay: Duration) {
    let mut forwarder = start();
    let begin = Instant::now();
    wait_until("moment to end", || begin.elapsed() >= delay);
    let status = forwarder.stop();
    // In its first milliseconds it has no signal handler yet, and nothing to leave behind either.
    assert!(status.success() || status.signal() == Some(TERM), "{status}: {}", forwarder.err());
    let left = files_below(runtime_dir());
    assert!(left.iter().all(|path| path.ends_with("files/s.json")), "{left:?}");
    assert_eq!(processes(), Vec::<PathBuf>::new());
}

/// When to kill: at any moment, or as soon as something that can be left behind exists.
enum Kill {
    After(Duration),
    /// When EAL has made its directory.
    InEal,
    /// When the memif server has made its socket.
    Listening,
    Forwarding,
}

fn kill_at(kill: Kill) {
    let mut forwarder = start();
    let leaves = match kill {
        Kill::After(delay) => {
            let begin = Instant::now();
            wait_until("moment to kill", || begin.elapsed() >= delay);
            None
        }
        Kill::InEal => {
            let directory = runtime_dir().join("dpdk").join(PREFIX);
            wait_until("EAL's directory", || directory.exists());
            Some(directory)
        }
        Kill::Listening => {
            let socket = runtime_dir().join("files/memif");
            wait_until("memif's socket", || socket.exists());
            Some(socket)
        }
        Kill::Forwarding => {
            forwarder.wait_until_it_forwards();
            Some(runtime_dir().join("files/memif"))
        }
    };
    forwarder.kill();
    assert!(leaves.is_none_or(|path| path.exists()), "there was nothing to clear away");
}

/// All files, sockets and empty directories of EAL.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let inside = files_below(&path);
            if inside.is_empty() && path.file_name().is_some_and(|name| name == PREFIX) {
                found.push(path);
            }
            found.extend(inside);
        } else {
            found.push(path);
        }
    }
    found
}

/// Processes with a file of ours on their command lines.
fn processes() -> Vec<PathBuf> {
    let dir = runtime_dir().to_str().unwrap().as_bytes();
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    all.filter(|process| {
        // Processes without a command line, or that have ended, are not ours.
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        command.windows(dir.len()).any(|window| window == dir)
    })
    .collect()
}
