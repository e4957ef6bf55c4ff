// SPDX-License-Identifier: BSD-3-Clause
//! Every target takes every file of its corpus, and a hundred thousand changed ones, without libFuzzer: quick, and on any
//! compiler. What is drawn is the same in every run.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use fuzz::TARGETS;
use packet::random::Random;

/// Changed inputs for each target; those of `otg` take ten times as long as others.
const CHANGED: usize = 100_000;
const MAX_LEN: usize = 4096;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn names(folder: &Path) -> BTreeSet<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
    fs::read_dir(folder).unwrap().map(|entry| name(entry).unwrap()).collect()
}

/// The files of a target, in the order of their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = folder("corpus").join(target);
    names(&folder).iter().map(|name| fs::read(folder.join(name)).unwrap()).collect()
}

#[test]
fn every_target_has_a_corpus_and_a_program() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names(&folder("corpus")), targets);
    let programs = targets.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names(&folder("libfuzzer/src/bin")), programs);
    for target in TARGETS {
        let count = corpus(target.name).len();
        assert!((3..400).contains(&count), "{}: {count} files", target.name);
    }
}

/// A few changes, of the kinds that parsers stumble over: bits, numbers, cuts, repetitions, parts of another file.
fn change(mut bytes: Vec<u8>, other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut below = |n: usize| random.between(0, n.max(1) as u128 - 1) as usize;
    for _ in 0..=below(4) {
        let at = below(bytes.len());
        match below(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << below(8),
            1 if !bytes.is_empty() => bytes[at] = below(256) as u8,
            2 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0xff, b'0', b'\n'][below(6)],
            3 => bytes.truncate(at),
            4 => bytes.insert(at, below(256) as u8),
            5 if !bytes.is_empty() => {
                bytes.remove(at);
            }
            6 => {
                let from = below(other.len());
                let part = &other[from..from + below(other.len() - from)];
                bytes.splice(at..at, part.iter().copied());
            }
            _ => {
                let part = bytes[at..at + below((bytes.len() - at).min(64))].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes.truncate(MAX_LEN);
    bytes
}

fn feed(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let files = corpus(name);
    let mut random = Random::new(1);
    let changed = (0..CHANGED).map(|n| {
        let other = &files[random.between(0, files.len() as u128 - 1) as usize];
        change(files[n % files.len()].clone(), other, &mut random)
    });
    let changed: Vec<Vec<u8>> = changed.collect();
    for bytes in files.iter().chain(&changed) {
        if catch_unwind(|| (target.feed)(bytes)).is_err() {
            panic!("{name} panics on {:?}: {bytes:?}", String::from_utf8_lossy(bytes));
        }
    }
}

/// A test for each, so that they run side by side.
macro_rules! targets {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                feed(stringify!($name));
            }
        )+

        #[test]
        fn none_is_left_out() {
            assert_eq!([$(stringify!($name)),+].to_vec(), TARGETS.iter().map(|t| t.name).collect::<Vec<_>>());
        }
    };
}

targets! { frame headers options otg routes rules translation }
