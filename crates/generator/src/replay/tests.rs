// SPDX-License-Identifier: BSD-3-Clause

use super::*;
use crate::capture::{Clock, Format, Recorder, Settings};
use crate::pacing::FrameRate;
use proptest::prelude::*;
use std::time::UNIX_EPOCH;

/// Writes numbers in one byte order.
#[derive(Clone, Copy, Debug)]
struct Order(bool);

impl Order {
    fn u16(self, n: u16) -> [u8; 2] {
        if self.0 { n.to_be_bytes() } else { n.to_le_bytes() }
    }
    fn u32(self, n: u32) -> [u8; 4] {
        if self.0 { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    /// A pcap file of frames with seconds, parts of it, captured bytes and length.
    fn pcap(self, nano: bool, link: u32, frames: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
        let magic = if nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut file = self.u32(magic).to_vec();
        file.extend([self.u16(2), self.u16(4)].concat());
        file.extend([0, 0, 65_535, link].map(|n| self.u32(n)).concat());
        for (seconds, parts, bytes, len) in frames {
            file.extend([*seconds, *parts, bytes.len() as u32, *len].map(|n| self.u32(n)).concat());
            file.extend_from_slice(bytes);
        }
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let len = self.u32(body.len() as u32 + 12);
        [&self.u32(kind), &len, &body[..], &len].concat()
    }

    fn section(self) -> Vec<u8> {
        let version = [self.u16(1), self.u16(0)].concat();
        self.block(0x0a0d_0d0a, &[&self.u32(0x1a2b_3c4d), &version[..], &[0xff; 8]].concat())
    }

    fn options(self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let one = |(code, value): &(u16, &[u8])| {
            let mut bytes = [self.u16(*code), self.u16(value.len() as u16)].concat();
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        [options.iter().flat_map(one).collect(), vec![0; 4]].concat()
    }

    fn interface(self, link: u16, snap: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let head = [self.u16(link), [0; 2]].concat();
        self.block(1, &[&head[..], &self.u32(snap), &self.options(options)].concat())
    }

    fn enhanced(
        self,
        interface: u32,
        time: u64,
        bytes: &[u8],
        options: &[(u16, &[u8])],
    ) -> Vec<u8> {
        let words =
            [interface, (time >> 32) as u32, time as u32, bytes.len() as u32, bytes.len() as u32];
        let mut body = words.map(|n| self.u32(n)).concat();
        body.extend_from_slice(bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        self.block(6, &[body, self.options(options)].concat())
    }

    fn simple(self, bytes: &[u8], len: u32) -> Vec<u8> {
        self.block(3, &[&self.u32(len), bytes].concat())
    }
}

const LITTLE: Order = Order(false);
const BIG: Order = Order(true);

fn read(data: &[u8]) -> Result<Frames, ReplayError> {
    read_within(data, Limits::default())
}

fn read_within(data: &[u8], limits: Limits) -> Result<Frames, ReplayError> {
    Frames::read(Path::new("a/file"), data, limits)
}

fn message(data: &[u8]) -> String {
    read(data).map(|frames| frames.len()).unwrap_err().to_string()
}

fn all(frames: &Frames) -> Vec<(u64, Vec<u8>)> {
    (0..frames.len())
        .map(|i| (frames.offset(i).unwrap(), frames.get(i).unwrap().to_vec()))
        .collect()
}

fn offsets(frames: &Frames) -> Vec<u64> {
    (0..frames.len()).map(|i| frames.offset(i).unwrap()).collect()
}

#[test]
fn all_four_kinds_of_pcap_are_read() {
    let (a, b) = (vec![1; 60], vec![2; 61]);
    for order in [LITTLE, BIG] {
        for nano in [false, true] {
            let file = order.pcap(nano, 1, &[(10, 999_999, &a, 60), (11, 1, &b, 61)]);
            let frames = read(&file).unwrap();
            let gap = if nano { 1_000_000_001 - 999_999 } else { 2_000 };
            assert_eq!(all(&frames), [(0, a.clone()), (gap, b.clone())], "{order:?} {nano}");
            assert_eq!((frames.gap(0), frames.gap(1), frames.gap(2)), (Some(0), Some(gap), None));
            assert_eq!((frames.span(), frames.bytes(), frames.longest()), (gap, 121, 61));
        }
    }
}

#[test]
fn pcapng_has_sections_interfaces_and_resolutions() {
    let frame = |n: u8| vec![n; 60 + usize::from(n)];
    for (order, other) in [(LITTLE, BIG), (BIG, LITTLE)] {
        let offset = if order.0 { 7i64.to_be_bytes() } else { 7i64.to_le_bytes() };
        let file = [
            order.section(),
            order.interface(1, 0, &[]),                  // microseconds
            order.interface(1, 0, &[(9, &[9])]),         // nanoseconds
            order.interface(1, 0, &[(9, &[0x80 | 20])]), // 2^-20 s
            order.interface(1, 0, &[(9, &[0]), (14, &offset)]), // seconds, from the 7th on
            order.interface(113, 0, &[]),                // not Ethernet, and unused
            order.enhanced(0, 10_000_000, &frame(0), &[]),
            order.block(0x7777, b"what nobody knows"),
            order.enhanced(1, 10_000_000_001, &frame(1), &[(1, b"a comment")]),
            order.enhanced(2, (10 << 20) + 1, &frame(2), &[]),
            order.enhanced(3, 4, &frame(3), &[]),
            order.simple(&frame(4), 64),
            other.section(),
            other.interface(1, 0, &[(9, &[3])]), // milliseconds
            other.enhanced(0, 12_000, &frame(5), &[]),
        ]
        .concat();
        let frames = read(&file).unwrap();
        let times = [0, 1, 953, 1_000_000_000, 1_000_000_000, 2_000_000_000];
        let expected: Vec<_> = (0..).zip(times).map(|(n, time)| (time, frame(n))).collect();
        assert_eq!(all(&frames), expected, "{order:?}");
        assert_eq!((frames.untimed(), frames.out_of_order()), (1, 0));
    }
}

#[test]
fn other_link_types_are_named() {
    let frame = vec![0; 60];
    let file = LITTLE.pcap(true, 113, &[(0, 0, &frame, 60)]);
    assert_eq!(
        message(&file),
        "a/file, offset 24: link type Linux cooked (113); only Ethernet can be replayed"
    );
    let head = [LITTLE.section(), LITTLE.interface(195, 0, &[])].concat();
    let file = [head.clone(), LITTLE.enhanced(0, 0, &frame, &[])].concat();
    let found = message(&file);
    assert!(found.contains(&format!("offset {}: link type 195", head.len())), "{found}");
}

#[test]
fn an_fcs_that_is_there_is_cut_off() {
    let (frame, without) = (vec![5; 64], vec![5; 60]);
    let said = 1 | 1 << 26 | 2 << 28;
    let pcap = LITTLE.pcap(true, said, &[(0, 0, &frame, 64)]);
    assert_eq!(all(&read(&pcap).unwrap()), [(0, without.clone())]);
    for order in [LITTLE, BIG] {
        let head = [order.section(), order.interface(1, 0, &[(13, &[4])])].concat();
        let flags = order.u32(2 << 5);
        let file = [
            head,
            order.enhanced(0, 0, &frame, &[]),
            order.enhanced(0, 0, &frame, &[(2, &flags)]),
            order.simple(&frame, 64),
        ]
        .concat();
        let lens: Vec<usize> = all(&read(&file).unwrap()).iter().map(|(_, b)| b.len()).collect();
        assert_eq!(lens, [60, 62, 60]);
    }
    // Cut before the FCS: what is missing is all of it, and no more.
    let cut = LITTLE.pcap(true, said, &[(0, 0, &frame[..60], 64)]);
    assert_eq!(all(&read(&cut).unwrap()), [(0, without)]);
}

#[test]
fn frames_cut_short_are_refused_or_padded() {
    let pad = Limits { truncated: Truncated::Pad, ..Limits::default() };
    let snapped =
        [LITTLE.section(), LITTLE.interface(1, 20, &[]), LITTLE.simple(&[9; 20], 30)].concat();
    for file in [LITTLE.pcap(true, 1, &[(0, 0, &[9; 20], 30)]), snapped] {
        let refused = message(&file);
        assert!(refused.contains("frame 1 has 20 of its 30 bytes"), "{refused}");
        let frames = read_within(&file, pad).unwrap();
        assert_eq!(all(&frames), [(0, [[9; 20].as_slice(), &[0; 10]].concat())]);
        assert_eq!(frames.padded(), 1);
    }
    // What is padded counts towards the limit: small records may claim long frames.
    let claims = vec![(0, 0, &[0u8; 14][..], 65_535); 100];
    let small = Limits { bytes: 1 << 20, ..pad };
    let error = read_within(&LITTLE.pcap(true, 1, &claims), small).unwrap_err().to_string();
    assert!(error.contains("more than 1048576 bytes, which is the limit"), "{error}");
}

#[test]
fn what_cannot_be_replayed_is_refused_with_its_place() {
    let frame = [0; 60];
    let one = LITTLE.pcap(true, 1, &[(0, 0, &frame, 60)]);
    let head = [LITTLE.section(), LITTLE.interface(1, 0, &[])].concat();
    let after = |block: Vec<u8>| [head.clone(), block].concat();
    let mut version = one.clone();
    version[4] = 3;
    for (file, reason) in [
        (vec![], "neither pcap nor pcapng"),
        (b"GET / HTTP".to_vec(), "neither pcap nor pcapng"),
        (vec![0x1f, 0x8b, 8, 0], "is compressed"),
        (vec![0x34, 0xcd, 0xb2, 0xa1], "modified pcap"),
        (one[..20].to_vec(), "offset 0: the file's header is cut off"),
        (one[..24].to_vec(), "there is no frame in it"),
        (one[..30].to_vec(), "offset 24: the record is cut off"),
        (one[..one.len() - 1].to_vec(), "offset 24: the record is cut off"),
        (version, "offset 4: pcap of version 3"),
        (LITTLE.pcap(true, 1, &[(0, 0, &frame, 59)]), "more bytes captured than the packet had"),
        (
            LITTLE.pcap(true, 1, &[(0, 0, &frame[..13], 13)]),
            "frame 1 has 13 bytes; from 14 to 65535",
        ),
        (LITTLE.pcap(true, 1, &[(0, 0, &frame, u32::MAX)]), "frame 1 has 4294967295 bytes"),
        (after(LITTLE.enhanced(1, 0, &frame, &[])), "interface 1, which is not described"),
        ([LITTLE.section(), LITTLE.simple(&frame, 60)].concat(), "not described"),
        (after(LITTLE.simple(&frame, 64)), "the packet is longer than its block"),
        (after(LITTLE.block(2, &[0; 40])), "an obsolete packet block"),
        (after(vec![0; 12]), "a block of 0 bytes"),
        (after(LITTLE.block(6, &vec![0; 1 << 20])), "a block of 1048588 bytes"),
        (after(LITTLE.interface(1, 0, &[(9, &[99])])), "a time resolution of 10^-99"),
        (
            after([0, 1 << 62].map(|time| LITTLE.enhanced(0, time, &frame, &[])).concat()),
            "a time stamp more than 500 years after the first",
        ),
    ] {
        let found = message(&file);
        assert!(found.starts_with("a/file") && found.contains(reason), "{found}\nnot {reason}");
    }
    let missing = Frames::open(Path::new("/nonexistent/x.pcap"), Limits::default());
    assert!(missing.unwrap_err().to_string().starts_with("/nonexistent/x.pcap: "));
}

#[test]
fn limits_are_named() {
    let frame = [0; 60];
    let file = LITTLE.pcap(true, 1, &[(0, 0, &frame[..], 60); 5]);
    let few = Limits { frames: 4, ..Limits::default() };
    let error = read_within(&file, few).unwrap_err().to_string();
    assert!(error.contains("more than 4 frames, which is the limit"), "{error}");
    let place = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(place.path(), &file).unwrap();
    let exact = Limits { bytes: file.len(), ..Limits::default() };
    assert_eq!(Frames::open(place.path(), exact).unwrap().len(), 5);
    let less = Limits { bytes: file.len() - 1, ..exact };
    let error = Frames::open(place.path(), less).unwrap_err().to_string();
    assert!(error.contains("bytes, which is the limit"), "{error}");
}

#[test]
fn nobody_overtakes_its_predecessor() {
    let frame = [0; 60];
    let times = [(5, 0), (6, 0), (4, 0), (5, 500), (6, 500), (6, 500)];
    let frames: Vec<_> = times.iter().map(|(s, n)| (*s, *n, &frame[..], 60)).collect();
    let frames = read(&LITTLE.pcap(true, 1, &frames)).unwrap();
    let second = 1_000_000_000;
    assert_eq!(offsets(&frames), [0, second, second, second, second + 500, second + 500]);
    assert_eq!(frames.out_of_order(), 2);
}

/// Files that claim much more than they hold, in a process that cannot have much.
#[test]
fn claims_of_size_allocate_nothing() {
    const PLACE: &str = "LINERATE_TEST_LITTLE_MEMORY";
    if std::env::var_os(PLACE).is_some() {
        let mut record = LITTLE.pcap(true, 1, &[(0, 0, &[0; 60], 60)]);
        record[32..40].fill(0xff);
        let head = [LITTLE.section(), LITTLE.interface(1, 0, &[])].concat();
        let mut block = [head.clone(), LITTLE.enhanced(0, 0, &[0; 60], &[])].concat();
        let mut packet = block.clone();
        block[head.len() + 4..head.len() + 8].fill(0xff);
        packet[head.len() + 20..head.len() + 28].fill(0xff);
        for file in [record, block, packet] {
            let found = message(&file);
            assert!(found.contains("cut off") || found.contains("damaged"), "{found}");
        }
        // Four million empty options, of which a parser would make a list.
        let options = LITTLE.block(0x0a0d_0d0a, &vec![0; 16 << 20]);
        assert!(message(&options).contains("a block of"));
        return;
    }
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 400000; exec \"$0\" --exact \"$1\" --test-threads 1"])
        .arg(std::env::current_exe().unwrap())
        .arg("replay::tests::claims_of_size_allocate_nothing")
        .env(PLACE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

proptest! {
    // What a recorder writes is what is replayed, in both formats.
    #[test]
    fn what_was_captured_can_be_replayed(
        captured in prop::collection::vec((14usize..3000, 0u64..10_000_000_000), 1..40),
        pcapng in any::<bool>(),
    ) {
        let clock = Clock::new(0, UNIX_EPOCH, 1_000_000_000);
        let format = if pcapng { Format::PcapNg } else { Format::Pcap };
        let (mut recorder, mut taps) =
            Recorder::start(Settings { format, ..Settings::new("p", clock) }, 1, 0);
        let (mut tsc, mut expected) = (0, Vec::new());
        for (i, (len, gap)) in captured.into_iter().enumerate() {
            tsc += if i == 0 { 0 } else { gap };
            let bytes: Vec<u8> = (0..len).map(|at| (at * 3 + i) as u8).collect();
            taps[0].look(&bytes, tsc);
            expected.push((tsc, bytes));
        }
        recorder.stop(tsc);
        let frames = read(&recorder.file(None)).unwrap();
        prop_assert_eq!(all(&frames), expected);
    }

    // Files with bytes changed, removed and doubled: frames or an error, within the limits.
    #[test]
    fn no_file_can_hurt(
        kind in 0usize..6, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        end in any::<prop::sample::Index>(), cut in any::<bool>(), pad in any::<bool>(),
        words in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(
            vec![0u32, 1, 4, 8, 12, 28, 32, 0x7fff_ffff, 0x8000_0000, u32::MAX - 3, u32::MAX])), 0..3),
    ) {
        let order = if kind % 2 == 0 { LITTLE } else { BIG };
        let mut file = match kind / 2 {
            0 => order.pcap(kind % 2 == 0, 1, &[(1, 2, &[1; 60], 60), (3, 4, &[2; 99], 99)]),
            _ => [
                order.section(),
                order.interface(1, 0, &[(2, b"eth0"), (9, &[9]), (14, &[1; 8])]),
                order.enhanced(0, 77, &[3; 61], &[(1, b"comment"), (2, &[0; 4])]),
                order.simple(&[4; 62], 62),
                order.block(5, &[0; 20]),
                order.enhanced(0, 88, &[5; 70], &[]),
            ]
            .concat(),
        };
        for (place, value) in changes {
            let at = place.index(file.len());
            file[at] = value;
        }
        for (place, value) in words {
            let at = place.index(file.len() / 4) * 4;
            file[at..at + 4].copy_from_slice(&order.u32(value));
        }
        if cut {
            file.truncate(end.index(file.len()));
        }
        let truncated = if pad { Truncated::Pad } else { Truncated::Refuse };
        let limits = Limits { bytes: 100_000, frames: 3, truncated };
        if let Ok(frames) = read_within(&file, limits) {
            prop_assert!((1..=3).contains(&frames.len()) && frames.bytes() <= 100_000);
            let offsets = offsets(&frames);
            prop_assert!(offsets.is_sorted());
            let mut schedule = frames.schedule(Timing::Rate(FrameRate::new(5, 1).unwrap()), 1000).unwrap();
            for _ in 0..10 {
                prop_assert!(schedule.frame().len() >= MIN_FRAME);
                schedule.advance();
            }
        }
    }

    // Every due time is the exact one, to a cycle, in every loop and at any distance.
    #[test]
    fn schedules_are_exact_to_a_cycle(
        gaps in prop::collection::vec(0u64..2_000_000_000, 1..20),
        hz in 1_000_000u64..6_000_000_000,
        // Speeds that are exact in binary, as a fraction.
        (over, under) in prop::sample::select(vec![(1u64, 1u64), (2, 1), (1, 4), (3, 8), (1000, 1), (1, 65_536)]),
        far in 100u64..1 << 24,
    ) {
        let total: u64 = gaps.iter().sum();
        prop_assume!(total > 0);
        let bytes = [0; 60];
        let mut time = 0;
        let mut records = vec![(0, 0, &bytes[..], 60)];
        for gap in &gaps {
            time += gap;
            records.push(((time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, &bytes[..], 60));
        }
        let frames = read(&LITTLE.pcap(true, 1, &records)).unwrap();
        let n = frames.len() as u64;
        let mean = ((total as f64 / gaps.len() as f64).round() as u64).max(1);
        // Never late, and early by less than a cycle.
        let exact = |k: u64, over: u64, under: u64| {
            let ns = u128::from(k / n * (total + mean) + offsets(&frames)[(k % n) as usize]);
            ns * u128::from(hz) * u128::from(under) / (u128::from(over) * 1_000_000_000)
        };
        let speed = over as f64 / under as f64;
        let mut own = frames.schedule(Timing::Own, hz).unwrap();
        let mut scaled = frames.schedule(Timing::Scaled(speed), hz).unwrap();
        let rate = FrameRate::new(over, under).unwrap();
        let mut even = frames.schedule(Timing::Rate(rate), hz).unwrap();
        let close = |found: u64, exact: u128| {
            let exact = exact.min(u128::from(u64::MAX));
            (exact.saturating_sub(1)..=exact).contains(&u128::from(found))
        };
        for k in (0..3 * n + 2).chain([far]) {
            if k != far {
                prop_assert_eq!(own.slot(), own.due(k));
                prop_assert_eq!(scaled.slot(), scaled.due(k));
                prop_assert_eq!(even.slot(), even.due(k));
                prop_assert_eq!((own.passed(), own.index() as u64), (k, k % n));
                own.advance();
                scaled.advance();
                even.advance();
            }
            prop_assert!(close(own.due(k), exact(k, 1, 1)), "own {k}");
            prop_assert!(close(scaled.due(k), exact(k, over, under)), "scaled {k}");
            let at = u128::from(k) * u128::from(hz) * u128::from(under) / u128::from(over);
            prop_assert!(close(even.due(k), at), "even {k}");
        }
    }
}

#[test]
fn times_that_are_not_there_need_a_rate() {
    let frame = [0; 60];
    let rate = Timing::Rate(FrameRate::new(1000, 1).unwrap());
    for records in [vec![(7, 7, &frame[..], 60)], vec![(7, 7, &frame[..], 60); 3]] {
        let frames = read(&LITTLE.pcap(true, 1, &records)).unwrap();
        let own = frames.schedule(Timing::Own, 1_000_000_000);
        assert_eq!(own.err(), Some(ScheduleError::NoTimes));
        assert_eq!(frames.schedule(rate, 1_000_000_000).unwrap().due(5), 5_000_000);
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, MIN_SPEED / 2.0, MAX_SPEED * 2.0] {
            let scaled = frames.schedule(Timing::Scaled(speed), 1_000_000_000);
            assert!(matches!(scaled, Err(ScheduleError::Speed(_))), "{speed}");
        }
    }
}

#[test]
fn frames_need_no_file() {
    let frames = Frames::of(&[vec![1; 60], vec![2; 14]], 500).unwrap();
    assert_eq!((frames.len(), frames.bytes(), frames.longest()), (2, 74, 60));
    assert_eq!(
        (frames.get(1), frames.offset(1), frames.gap(1)),
        (Some(&[2; 14][..]), Some(500), Some(500))
    );
    assert!(Frames::of(&[], 1).is_none() && Frames::of(&[vec![0; 13]], 1).is_none());
}
