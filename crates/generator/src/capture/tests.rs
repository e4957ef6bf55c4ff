// SPDX-License-Identifier: BSD-3-Clause

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use pcap_parser::pcapng::Block;
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{OptionCode, PcapBlockOwned, PcapError, PcapNGOption, create_reader};
use proptest::prelude::*;

use super::filter::{FilterBuilder, Layer};
use super::*;

/// A clock of 1 GHz, so that cycles are nanoseconds.
const START: u64 = 1_700_000_000_000_000_000;

fn settings(format: Format) -> Settings {
    let wall = UNIX_EPOCH + Duration::from_nanos(START);
    Settings { format, ..Settings::new("port 1", Clock::new(0, wall, 1_000_000_000)) }
}

/// With the smallest rings, which have room for what a case captures: touching the usual ones takes most of a case's time.
fn small() -> Limits {
    Limits { ring: 0, ..Limits::default() }
}

/// Nanoseconds since the start, length, and bytes of a frame in a file.
type Found = (u64, usize, Vec<u8>);

/// Reads a file with an independent reader.
fn read_back(file: &[u8]) -> Vec<Found> {
    let mut reader = create_reader(1 << 20, file).unwrap();
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        assert!(header.is_nanosecond_precision() && !header.is_bigendian());
                        assert_eq!((header.network.0, header.version_major), (1, 2));
                    }
                    PcapBlockOwned::Legacy(frame) => {
                        let time = u64::from(frame.ts_sec) * 1_000_000_000;
                        let time = time + u64::from(frame.ts_usec) - START;
                        assert_eq!(frame.caplen as usize, frame.data.len());
                        found.push((time, frame.origlen as usize, frame.data.to_vec()));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(frame)) => {
                        let time = u64::from(frame.ts_high) << 32 | u64::from(frame.ts_low);
                        let bytes = frame.packet_data().to_vec();
                        assert_eq!(frame.caplen as usize, bytes.len());
                        found.push((time - START, frame.origlen as usize, bytes));
                    }
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        assert_eq!((interface.linktype.0, interface.if_tsresol), (1, 9));
                        assert_eq!(interface.if_name().unwrap().unwrap(), "port 1");
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                        let application = section.shb_userappl().unwrap().unwrap();
                        assert!(application.starts_with("linerate generator "), "{application}");
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => return found,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?} after {} frames", found.len()),
        }
    }
}

/// What a pcapng file says about the FCS of its frames.
fn told_fcs(file: &[u8]) -> Vec<u8> {
    let mut reader = create_reader(1 << 20, file).unwrap();
    let mut found = Vec::new();
    while let Ok((used, block)) = reader.next() {
        if let PcapBlockOwned::NG(Block::InterfaceDescription(interface)) = &block {
            let fcs = interface.options.iter().find(|option| option.code == OptionCode(13));
            found.extend_from_slice(fcs.unwrap().as_bytes().unwrap());
        }
        drop(block);
        reader.consume(used);
    }
    found
}

/// The numbers of the statistics at a file's end, if it has them.
fn statistics(file: &[u8]) -> Option<Vec<(u16, u64)>> {
    let mut reader = create_reader(1 << 20, file).unwrap();
    let mut counts = None;
    while let Ok((used, block)) = reader.next() {
        if let PcapBlockOwned::NG(Block::InterfaceStatistics(block)) = &block {
            let number =
                |option: &PcapNGOption<'_>| (option.code.0, option.as_u64_le().unwrap_or_default());
            counts = Some(block.options.iter().map(number).filter(|(code, _)| *code > 3).collect());
        }
        drop(block);
        reader.consume(used);
    }
    counts
}

fn frame(number: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (number * 7 + i) as u8).collect()
}

fn closed(figures: Figures) -> bool {
    figures.matched == figures.dropped + figures.refused + figures.overwritten + figures.stored
}

#[test]
fn captures_of_many_ports_keep_no_more_than_those_of_four() {
    let kept = |ports: usize| Limits::of_one_of(ports).bytes;
    assert_eq!([0, 1, 4].map(kept), [64 << 20; 3]);
    for ports in 5..=crate::plan::MAX_PORTS {
        assert!(kept(ports) * ports <= 256 << 20 && kept(ports) >= 16 << 20);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // Frames that several taps capture at random, collected at random, come back from the file: all
    // of them, in time order, cut to the snap length; with a recorder and with a sink.
    #[test]
    fn files_read_back_as_what_was_captured(
        frames in prop::collection::vec((0usize..3, 0usize..2000, 0u64..5_000_000_000), 0..60),
        collect in prop::collection::vec(any::<bool>(), 60),
        snap in 1usize..2500, pcapng in any::<bool>(), many in any::<bool>(), fcs in any::<bool>(),
        first in 0u64..70, count in 0u64..70,
    ) {
        let format = if pcapng { Format::PcapNg } else { Format::Pcap };
        let settings = Settings { snap, fcs, limits: small(), ..settings(format) };
        let taps = if many { 3 } else { 1 };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sink");
        let (mut recorder, mut taps_a) = Recorder::start(settings.clone(), taps, 0);
        let (mut sink, mut taps_b) = Sink::create(&path, settings, taps, u64::MAX, 0).unwrap();
        let (mut tsc, mut expected) = (0, Vec::new());
        for (i, (tap, len, gap)) in frames.into_iter().enumerate() {
            tsc += gap;
            let frame = frame(i as u64, len);
            for taps in [&mut taps_a, &mut taps_b] {
                let tap = tap % taps.len();
                taps[tap].look(&frame, tsc);
            }
            let end = if fcs { capture_file::fcs(&[&frame]).to_vec() } else { Vec::new() };
            let whole = [frame, end].concat();
            expected.push((tsc, whole.len(), whole[..whole.len().min(snap)].to_vec()));
            if collect[i] {
                recorder.collect();
                sink.collect(tsc).unwrap();
            }
        }
        let stable = |mut frames: Vec<Found>| { frames.sort(); frames };
        let total = expected.len() + 1;
        recorder.collect();
        let running = recorder.file(None);
        let before = recorder.snapshot();
        prop_assert!(running.len() <= before.file_len(None));
        let found = read_back(&running);
        prop_assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        prop_assert_eq!(stable(found.clone()), stable(expected));
        prop_assert_eq!(statistics(&running), None);
        if pcapng {
            prop_assert_eq!(told_fcs(&running), [if fcs { 4 } else { 0 }]);
        }
        let part: Vec<Found> =
            found.iter().skip(first.max(1) as usize - 1).take(count as usize).cloned().collect();
        prop_assert_eq!(read_back(&recorder.file(Some((first, count)))), part);

        // What was asked for is as it was then.
        tsc += 1;
        for taps in [&mut taps_a, &mut taps_b] {
            taps[0].look(&frame(total as u64, 64), tsc);
        }
        recorder.collect();
        prop_assert_eq!(before.file(None), running);
        let slice = Some((first.max(1), count));
        prop_assert!(before.file(slice).len() <= before.file_len(slice));
        recorder.stop(tsc);
        let figures = recorder.figures();
        prop_assert_eq!(figures.stored, total as u64);
        let (written, result) = sink.finish(tsc);
        prop_assert_eq!((written, result.is_ok()), (figures, true));
        let stopped = recorder.file(None);
        prop_assert_eq!(std::fs::read(&path).unwrap(), stopped.clone());
        let n = total as u64;
        let wanted = pcapng.then(|| vec![(4, n), (5, 0), (6, n), (8, n)]);
        prop_assert_eq!(statistics(&stopped), wanted);
    }

    // Any limits are respected, the counters balance, and an overwriting store keeps the newest
    // frames.
    #[test]
    fn limits_hold(
        lens in prop::collection::vec(0usize..400, 1..80),
        bytes in 0usize..4000, frames in prop::option::of(0u64..20), overwrite in any::<bool>(),
        every in 1usize..20,
    ) {
        let limits = Limits { bytes, frames, ..small() };
        let settings = Settings { limits, overwrite, ..settings(Format::Pcap) };
        let (mut recorder, mut taps) = Recorder::start(settings, 2, 0);
        for (i, len) in lens.iter().enumerate() {
            taps[i % 2].look(&frame(i as u64, *len), i as u64);
            if i % every == 0 {
                recorder.collect();
            }
        }
        recorder.collect();
        let (found, figures) = (read_back(&recorder.file(None)), recorder.figures());
        prop_assert!(closed(figures), "{:?}", figures);
        prop_assert_eq!(figures.stored, found.len() as u64);
        prop_assert!(found.len() as u64 <= frames.unwrap_or(u64::MAX));
        prop_assert!(found.iter().map(|(_, len, _)| len + 24).sum::<usize>() <= bytes);
        if !overwrite {
            prop_assert_eq!(figures.overwritten, 0);
        }
        // With one collection at the end of each step, time order is the order of arrival.
        let times: Vec<usize> = found.iter().map(|(time, ..)| *time as usize).collect();
        if every == 1 && overwrite && lens.iter().all(|len| len + 24 <= bytes) && frames != Some(0) {
            prop_assert_eq!(&times, &(lens.len() - times.len()..lens.len()).collect::<Vec<_>>());
        }
        if every == 1 && !overwrite {
            prop_assert_eq!(&times, &(0..times.len()).collect::<Vec<_>>());
        }
    }
}

#[test]
fn frames_with_an_fcs_are_sent_again_without_it() {
    let settings = Settings { fcs: true, ..settings(Format::PcapNg) };
    let (mut recorder, mut taps) = Recorder::start(settings, 1, 0);
    taps[0].look(&frame(3, 64), 5);
    recorder.stop(6);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("back.pcapng");
    std::fs::write(&path, recorder.file(None)).unwrap();
    let frames = crate::replay::Frames::open(&path, crate::replay::Limits::default()).unwrap();
    assert_eq!((frames.len(), frames.longest()), (1, 64));
}

#[test]
fn only_what_the_filter_matches_is_captured() {
    let mut list = FilterBuilder::default();
    list.header(Layer::Vlan).unwrap();
    let settings = Settings { filter: Arc::new(list.build()), ..settings(Format::PcapNg) };
    let (mut recorder, mut taps) = Recorder::start(settings, 1, 0);
    let mut tagged = frame(1, 64);
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    for _ in 0..3 {
        taps[0].look(&frame(0, 64), 5);
    }
    taps[0].look(&tagged, 6);
    recorder.stop(7);
    let expected = Figures { seen: 4, matched: 1, stored: 1, ..Figures::default() };
    assert_eq!(recorder.figures(), expected);
    assert_eq!(read_back(&recorder.file(None)), [(6, 64, tagged)]);
    assert_eq!(statistics(&recorder.file(None)).unwrap(), [(4, 4), (5, 0), (6, 1), (8, 1)]);
}

#[test]
fn frames_lost_before_a_record_are_told_in_pcapng() {
    let (mut recorder, mut taps) =
        Recorder::start(Settings { limits: small(), ..settings(Format::PcapNg) }, 1, 0);
    for i in 0..10 {
        taps[0].look(&frame(i, 30_000), i);
    }
    recorder.collect();
    taps[0].look(&frame(10, 64), 10);
    recorder.collect();
    let figures = recorder.figures();
    assert!(figures.dropped > 0 && closed(figures), "{figures:?}");
    let file = recorder.file(None);
    let mut reader = create_reader(1 << 20, &file[..]).unwrap();
    let mut told = 0;
    while let Ok((used, block)) = reader.next() {
        if let PcapBlockOwned::NG(Block::EnhancedPacket(frame)) = &block {
            let drops = frame.options.iter().find(|option| option.code == OptionCode(4));
            told += drops.map_or(0, |option| option.as_u64_le().unwrap());
        }
        drop(block);
        reader.consume(used);
    }
    assert_eq!(told, figures.dropped);
}

#[test]
fn taps_on_threads_lose_nothing_uncounted() {
    const FRAMES: u64 = 50_000;
    let limits = Limits { ring: 1 << 18, bytes: 1 << 20, frames: None };
    let (mut recorder, taps) = Recorder::start(Settings { limits, ..settings(Format::Pcap) }, 2, 0);
    let threads: Vec<_> = taps
        .into_iter()
        .map(|mut tap| {
            std::thread::spawn(move || {
                for i in 0..FRAMES {
                    tap.look(&frame(i, 60 + i as usize % 100), i);
                }
            })
        })
        .collect();
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        recorder.collect();
    }
    for thread in threads {
        thread.join().unwrap();
    }
    recorder.stop(FRAMES);
    let figures = recorder.figures();
    assert_eq!((figures.seen, figures.matched), (2 * FRAMES, 2 * FRAMES));
    assert!(closed(figures), "{figures:?}");
    let found = read_back(&recorder.file(None));
    assert_eq!(found.len() as u64, figures.stored);
    for (time, len, bytes) in found {
        assert_eq!(bytes, frame(time, len));
    }
}

#[test]
fn a_sink_stops_at_its_limit_with_whole_records() {
    let directory = tempfile::tempdir().unwrap();
    for format in [Format::Pcap, Format::PcapNg] {
        let path = directory.path().join("limited");
        let (mut sink, mut taps) = Sink::create(&path, settings(format), 1, 5000, 0).unwrap();
        for i in 0..40 {
            taps[0].look(&frame(i, 200), i);
        }
        sink.collect(40).unwrap();
        let figures = sink.figures();
        assert!(closed(figures) && figures.refused > 0, "{figures:?}");
        let file = std::fs::read(&path).unwrap();
        assert!(file.len() <= 5000 && file.len() > 5000 - 300, "{}", file.len());
        assert_eq!(read_back(&file).len() as u64, figures.stored);
        // Later frames do not fit either, even small ones.
        taps[0].look(&[], 41);
        assert_eq!(sink.finish(41).0.stored, figures.stored);
    }
}

#[test]
fn what_is_newest_waits_for_the_other_taps() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("merged");
    let (mut sink, mut taps) = Sink::create(&path, settings(Format::Pcap), 2, u64::MAX, 0).unwrap();
    let stored = |sink: &Sink| sink.figures().stored;
    taps[0].look(&[1; 20], 100_000_000);
    sink.collect(100_000_001).unwrap();
    assert_eq!(stored(&sink), 0);
    taps[1].look(&[2; 20], 99_000_000);
    sink.collect(119_500_000).unwrap();
    assert_eq!(stored(&sink), 1);
    sink.collect(121_000_000).unwrap();
    assert_eq!(stored(&sink), 2);
    let times: Vec<u64> =
        read_back(&std::fs::read(&path).unwrap()).iter().map(|found| found.0).collect();
    assert_eq!(times, [99_000_000, 100_000_000]);
}

#[test]
fn a_file_that_cannot_be_made_says_so() {
    for path in ["/nonexistent/file.pcap", "/dev/full"] {
        let error = Sink::create(Path::new(path), settings(Format::Pcap), 1, 1 << 20, 0).err();
        assert!(error.unwrap().to_string().contains(path), "{path}");
    }
    assert!(Path::new("/dev/full").exists());
}

/// Fills a disk, or simulates it: a process that may write files of at most 32 KiB.
#[test]
fn a_full_disk_leaves_a_readable_file() {
    const PLACE: &str = "LINERATE_TEST_FULL_DISK";
    if let Some(path) = std::env::var_os(PLACE) {
        let path = Path::new(&path);
        let (mut sink, mut taps) =
            Sink::create(path, settings(Format::PcapNg), 1, u64::MAX, 0).unwrap();
        for i in 0..20 {
            taps[0].look(&frame(i, 1000), i);
        }
        sink.collect(20).unwrap();
        for i in 20..90 {
            taps[0].look(&frame(i, 1000), i);
        }
        let error = sink.collect(90).unwrap_err().to_string();
        assert!(error.contains("holds 20 frames and takes no more"), "{error}");
        taps[0].look(&[0; 64], 91);
        sink.collect(91).unwrap();
        let figures = sink.figures();
        assert_eq!((figures.stored, figures.refused), (20, 71));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full");
    let name = "capture::tests::a_full_disk_leaves_a_readable_file";
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(PLACE, &path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let found = read_back(&std::fs::read(&path).unwrap());
    assert_eq!(found.len(), 20);
    assert_eq!(found[19], (19, 1000, frame(19, 1000)));
}
