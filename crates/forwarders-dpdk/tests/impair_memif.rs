// SPDX-License-Identifier: BSD-3-Clause
//! `impair` over memif: which frames come back, in which order, with which bytes, and what it
//! counts. The expected results are computed here only from the options' definitions.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dpdk::{Burst, Eal, Mempool, PoolConfig, Port, PortControl, Started};
use serde_json::Value;
use support::{Forwarder, memif, runtime_dir, serve, wait_until};

/// Number of frames sent. With all rules below except one, no frame is held back at the end.
const FRAMES: usize = 602;

/// Our own frame: its number is in bytes 12 to 16.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Frame(Vec<u8>);

impl Frame {
    fn number(n: usize) -> Self {
        let mut bytes: Vec<u8> = (0..60).collect();
        bytes[12..16].copy_from_slice(&(n as u32).to_be_bytes());
        Self(bytes)
    }

    /// The frame as an echo returns it.
    fn swapped(mut self) -> Self {
        self.0[..12].rotate_left(6);
        self
    }

    fn flipped(mut self, byte: usize) -> Self {
        self.0[byte] ^= 1;
        self
    }
}

/// The sent frames, in order.
fn numbers() -> impl Iterator<Item = usize> {
    1..=FRAMES
}

fn plain(numbers: impl IntoIterator<Item = usize>) -> Vec<Frame> {
    numbers.into_iter().map(Frame::number).collect()
}

#[test]
fn frames_come_back_as_the_options_say() {
    let _cleanup = support::Cleanup;
    let eal = support::eal(&[]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    let bed = Bed { eal: &eal, pool: &pool };

    bed.echo("", &plain(numbers()), &[]);
    bed.echo("--drop 3", &plain(numbers().filter(|n| n % 3 != 0)), &[("dropped_on_purpose", 200)]);
    bed.echo("--drop 1", &[], &[("dropped_on_purpose", 602)]);
    let twice = numbers().flat_map(|n| std::iter::repeat_n(n, if n % 4 == 0 { 2 } else { 1 }));
    bed.echo("--duplicate 4", &plain(twice), &[("duplicated", 150)]);
    bed.echo("--reorder 5", &plain(overtaken(5, 1)), &[("reordered", 120)]);
    bed.echo("--reorder 5:2", &plain(overtaken(5, 2)), &[("reordered", 120)]);
    bed.echo("--reorder 90:60", &plain(overtaken(90, 60)), &[("reordered", 6)]);
    for (option, byte) in [("7", 56), ("7:-18", 42), ("7:14", 14)] {
        let damaged = numbers().map(|n| match n % 7 {
            0 => Frame::number(n).flipped(byte),
            _ => Frame::number(n),
        });
        let options = format!("--corrupt {option}");
        bed.echo(&options, &damaged.collect::<Vec<_>>(), &[("corrupted", 86)]);
    }
    bed.echo("--corrupt 7:60", &plain(numbers()), &[("too_short_to_corrupt", 86)]);

    let begin = Instant::now();
    bed.echo("--delay 50000:1000", &plain(numbers()), &[("delayed", 602)]);
    assert!(begin.elapsed() >= Duration::from_millis(50), "earlier than it was told to");

    all_at_once(&bed);
    chance(&bed);
    two_ports(&bed);
    held_at_the_end(&bed);
    assert!(pool.is_full());
}

/// The order in which every `n`th frame comes after the `distance`th one after it. Those are never
/// held back themselves here.
fn overtaken(n: usize, distance: usize) -> Vec<usize> {
    assert!(distance < n);
    let mut order: Vec<usize> = numbers().collect();
    order.sort_by_key(|&number| match number % n {
        0 => (number + distance, 1),
        _ => (number, 0),
    });
    order
}

/// Drop, then corrupt, duplicate, reorder: each effect counts the frames that its predecessor
/// passes on.
fn all_at_once(bed: &Bed<'_>) {
    let mut frames = plain(numbers().filter(|n| n % 2 != 0)); // 301 of them
    for nth in (2..frames.len()).step_by(3) {
        frames[nth] = frames[nth].clone().flipped(56);
    }
    let copies = frames.iter().enumerate();
    let mut frames: Vec<Frame> = copies
        .flat_map(|(at, frame)| std::iter::repeat_n(frame.clone(), 1 + usize::from(at % 5 == 4)))
        .collect();
    assert_eq!(frames.len(), 361);
    for nth in (3..frames.len() - 1).step_by(4) {
        frames.swap(nth, nth + 1);
    }
    bed.echo(
        "--reorder 4 --duplicate 5 --corrupt 3 --drop 2 --delay 10",
        &frames,
        &[
            ("dropped_on_purpose", 301),
            ("corrupted", 100),
            ("duplicated", 60),
            ("reordered", 90),
            ("delayed", 361),
        ],
    );
}

/// The same seed affects the same frames, another seed affects others, and the counters match.
fn chance(bed: &Bed<'_>) {
    let run = |seed: u32| {
        let options = format!("--drop 5 --random {seed}");
        let (left, stats) = bed.run(&options, 1, |got, stats| {
            stats["total"]["dropped"].as_u64() == Some((FRAMES - got) as u64)
        });
        assert_eq!(left[0].len() + count(&stats["total"], "dropped") as usize, FRAMES);
        left
    };
    let first = run(1);
    assert!(first == run(1), "another outcome of the same seed");
    assert!(first != run(2), "the same outcome of another seed");
    assert!((1..FRAMES).contains(&first[0].len()));
}

/// Frames received on one port leave unchanged on the other, and each path has its own counters.
fn two_ports(bed: &Bed<'_>) {
    let expected = plain(numbers().filter(|n| n % 3 != 0));
    let (left, stats) = bed.run("--drop 3", 2, |got, _| got == 2 * expected.len());
    assert!(left == [expected.clone(), expected.clone()]);
    for (path, (rx, tx)) in stats["paths"].as_array().unwrap().iter().zip([(0, 1), (1, 0)]) {
        assert_eq!((count(path, "rx_port"), count(path, "tx_port")), (rx, tx));
        assert_eq!((count(path, "received"), count(path, "dropped")), (602, 200));
    }
}

/// Frames that are being delayed are discarded; frames held back behind others are sent, however
/// late.
fn held_at_the_end(bed: &Bed<'_>) {
    let held = |stats: &Value| stats["total"]["held"].as_u64();
    let (left, stats) =
        bed.run("--delay 500000000 --hold 100", 1, |_, stats| held(stats) == Some(100));
    assert!(left[0].is_empty());
    let total = &stats["total"];
    assert_eq!((count(total, "discarded_at_stop"), count(total, "dropped_delay_full")), (100, 502));
    let (left, stats) =
        bed.run("--reorder 300:1000", 1, |got, stats| got == 600 && held(stats) == Some(2));
    assert_eq!(left[0].len(), 600);
    assert_eq!((count(&stats["total"], "sent"), held(&stats)), (602, Some(0)));
}

fn count(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("no {name}: {of}"))
}

struct Bed<'e> {
    eal: &'e Eal,
    pool: &'e Mempool<'e>,
}

impl Bed<'_> {
    /// One port: these frames come back with swapped addresses, and only these counters are not 0.
    fn echo(&self, options: &str, expected: &[Frame], counts: &[(&str, u64)]) {
        let received = |stats: &Value| stats["total"]["received"] == FRAMES;
        // Its file may be a second old: if every frame comes back, the frames are sufficient.
        let all = expected.len() >= FRAMES;
        let done = |got, stats: &Value| got == expected.len() && (all || received(stats));
        let (left, stats) = self.run(options, 1, done);
        assert!(received(&stats), "{options}: {stats}");
        let expected: Vec<Frame> = expected.iter().cloned().map(Frame::swapped).collect();
        assert!(left == [expected], "{options}: other frames");
        let total = stats["total"].as_object().unwrap();
        for (name, value) in total {
            let sums = ["received", "sent", "dropped"];
            let told = counts.iter().find(|(count, _)| count == name).map_or(0, |told| told.1);
            assert!(*value == told || sums.contains(&name.as_str()), "{options}: {name} {value}");
        }
        assert_eq!(stats["total"]["sent"], left[0].len(), "{options}");
    }

    /// Sends the frames into every port of an `impair`, waits until `done` returns true for the
    /// returned frames and the statistics file, ends it, and returns the frames from each port and
    /// the last statistics.
    fn run(
        &self,
        options: &str,
        ports: usize,
        done: impl Fn(usize, &Value) -> bool,
    ) -> (Vec<Vec<Frame>>, Value) {
        let file = runtime_dir().join("impair.json");
        let _ = fs::remove_file(&file);
        let mut servers: Vec<_> = (0..ports).map(|port| serve(self.eal, self.pool, port)).collect();
        let clients: Vec<String> = (0..ports).map(|port| memif(port, "client")).collect();
        let mut words: Vec<&str> = options.split_whitespace().collect();
        words.extend(["-T", "1", "--json-stats", file.to_str().unwrap()]);
        let mut impair =
            Forwarder::start(Path::new(env!("CARGO_BIN_EXE_impair")), &clients, &words);
        let controls: Vec<PortControl<'_>> = servers.iter().map(Port::control).collect();
        wait_until("link", || {
            assert!(impair.ended().is_none(), "{}", impair.err());
            controls.iter().all(|port| port.link().unwrap().up)
        });
        let stats = || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            serde_json::from_str::<Value>(&text).unwrap_or_default()
        };
        let left = exchange(&mut servers, self.pool, |got| done(got, &stats()));
        let status = impair.stop();
        assert!(status.success(), "{}", impair.err());
        for server in servers {
            self.eal.detach(server.stop().unwrap().unconfigure()).unwrap();
        }
        assert!(self.pool.is_full(), "{options}: {} mbufs are missing", self.pool.in_use());
        let stats = stats();
        check_books(&stats);
        (left, stats)
    }
}

/// Sends every frame on every port, and receives until `done` returns true for the number of frames
/// that came back.
fn exchange(
    servers: &mut [Port<'_, Started>],
    pool: &Mempool<'_>,
    done: impl Fn(usize) -> bool,
) -> Vec<Vec<Frame>> {
    let mut queues: Vec<_> = servers.iter_mut().map(Port::queues).collect();
    let mut left: Vec<Vec<Frame>> = queues.iter().map(|_| Vec::new()).collect();
    let mut burst = Burst::<64>::new();
    let frames: Vec<Frame> = plain(numbers());
    for chunk in frames.chunks(64) {
        for queues in &mut queues {
            pool.fill(&mut burst, chunk.len()).unwrap();
            for (mbuf, frame) in burst.iter_mut().zip(chunk) {
                mbuf.resize(frame.0.len()).unwrap().copy_from_slice(&frame.0);
            }
            wait_until("room in the ring", || {
                queues.tx[0].send(&mut burst);
                burst.is_empty()
            });
        }
    }
    wait_until("frames", || {
        for (queues, left) in queues.iter_mut().zip(&mut left) {
            queues.rx[0].receive(&mut burst);
            left.extend(burst.drain().map(|mbuf| Frame(mbuf.data().to_vec())));
        }
        done(left.iter().map(Vec::len).sum())
    });
    left
}

/// Checks that every frame is accounted for, in total and on each path.
fn check_books(stats: &Value) {
    assert_eq!(
        (&stats["schema"], &stats["state"]),
        (&"linerate/impair-stats-1".into(), &"ended".into())
    );
    let paths = stats["paths"].as_array().unwrap();
    for of in paths.iter().chain([&stats["total"]]) {
        let count = |name| count(of, name);
        assert_eq!(
            count("received") + count("duplicated"),
            count("sent") + count("dropped") + count("tx_refused") + count("discarded_at_stop"),
            "{of}"
        );
        assert_eq!(
            count("dropped"),
            count("dropped_on_purpose") + count("dropped_delay_full") + count("dropped_no_mbuf")
        );
        assert_eq!(count("held"), 0);
    }
    for path in paths {
        assert_eq!(path["received"], path["ethdev"]["ipackets"]);
    }
    let sent = |of: &Value| count(of, "sent");
    assert_eq!(paths.iter().map(sent).sum::<u64>(), sent(&stats["total"]));
}
