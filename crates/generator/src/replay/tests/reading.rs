// SPDX-License-Identifier: BSD-3-Clause
//! All kinds of files, and refusals.

use super::*;

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
    // Truncated before the FCS: only the FCS is missing.
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
    // Padding counts towards the limit: small records may claim long frames.
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

/// Files that claim much more than they contain, in a process with little memory.
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
        .arg("replay::tests::reading::claims_of_size_allocate_nothing")
        .env(PLACE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
