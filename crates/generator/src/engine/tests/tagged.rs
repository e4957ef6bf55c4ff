// SPDX-License-Identifier: BSD-3-Clause
//! Counts by metric tags.

use super::*;
use crate::books::rows::{Key, Rows};
use crate::plan::Mark;
use crate::tags::{Check, Place, Tag};

/// Keys, frames and bytes of a flow's rows.
fn rows(bench: &Bench, flow: usize) -> Vec<(Key, u64, u64)> {
    listed(bench.books.rx[0].flows[flow].rows.as_ref().unwrap())
}

fn listed(rows: &Rows) -> Vec<(Key, u64, u64)> {
    rows.iter().map(|(key, counts)| (key, counts.frames.get(), counts.bytes.get())).collect()
}

/// All frames of the flows.
fn sent(bench: &mut Bench) -> Vec<Vec<u8>> {
    bench.steps(0..20_000_000, 1000);
    std::mem::take(&mut bench.ports[0].sent)
}

#[test]
fn frames_count_at_the_port_where_they_arrive() {
    let flows = vec![
        setup(0, 0, 1_000_000, Limit::Frames(100)),
        setup(1, 0, 1_000_000, Limit::Frames(100)),
    ];
    let expected = Expectations { rx_masks: vec![0b110, u64::MAX], ..Expectations::default() };
    let ports = vec![Paper::new(1000), Paper::default(), Paper::default()];
    let tags = Arc::new(Tags { rx_name: true, rows: 2, ..Tags::default() });
    let mut bench =
        Bench::tagged(Mode::Paced, flows, &expected, ports, std::slice::from_ref(&tags));
    bench.start(&[0, 1], 0);
    let frames = sent(&mut bench);
    assert_eq!(frames.len(), 200);
    // Frames of both flows alternate; a few of the first come where they do not belong.
    bench.ports[1].bring(frames[..120].iter().cloned());
    bench.ports[2].bring(frames[120..190].iter().cloned());
    bench.ports[0].bring(frames[190..].iter().cloned());
    bench.steps(20_000_000..20_010_000, 1000);
    let own = |range: std::ops::Range<usize>| {
        let flow = |frame: &&Vec<u8>| Signature::read(frame).unwrap().flow == 0;
        frames[range].iter().filter(flow).count() as u64
    };
    let (first, second) = (own(0..120), own(120..190));
    assert!(first > 50 && second > 30);
    let row = |port, frames| (tags.at_port(port), frames, 60 * frames);
    assert_eq!(rows(&bench, 0), [row(1, first), row(2, second)]);
    assert!(bench.books.rx[0].flows[1].rows.is_none());
    bench.start(&[0], 30_000_000);
    assert_eq!(rows(&bench, 0), []);
}

/// The tag of the last two bits of UDP's source port, as it was sent.
fn sent_port() -> Tag {
    let course = Pattern::Increment { start: 10_000, step: 1, count: 1000 }.course(0xffff).unwrap();
    Tag { name: "port".into(), bits: 2, place: Place::Sent(course, 0) }
}

/// The tag of the hop limit as it is received: behind 14 bytes of Ethernet and, if so, 4 of VLAN.
fn hops(vlan: bool) -> Tag {
    let before = if vlan { 18 } else { 14 };
    Tag { name: "ttl".into(), bits: 8, place: Place::Received(8 * (before + 8)) }
}

/// The values of a row's tags, frames and bytes.
fn values(tags: &Tags, rows: &[(Key, u64, u64)]) -> Vec<(Vec<Option<u128>>, u64, u64)> {
    let mut all: Vec<_> =
        rows.iter().map(|(key, frames, bytes)| (tags.values(key), *frames, *bytes)).collect();
    all.sort();
    all
}

fn one_flow(mode: Mode, room: usize, tags: &Arc<Tags>) -> Bench {
    let flows = vec![setup(0, 0, 1_000_000, Limit::Frames(102))];
    let expected = Expectations { rx_masks: vec![u64::MAX], ..Expectations::default() };
    Bench::tagged(mode, flows, &expected, vec![Paper::new(room)], std::slice::from_ref(tags))
}

#[test]
fn what_was_sent_counts_whatever_became_of_it() {
    let tags = Arc::new(Tags { fields: vec![sent_port()], rows: 4, ..Tags::default() });
    for mode in [Mode::Paced, Mode::Flood] {
        let mut bench = one_flow(mode, 1000, &tags);
        bench.start(&[0], 0);
        let mut frames = sent(&mut bench);
        // Every port number is changed on the way, and some frames are lost.
        frames.iter_mut().for_each(|frame| frame[34..36].fill(0xff));
        frames.remove(1);
        frames.drain(20..40);
        bench.ports[0].bring(frames);
        bench.steps(20_000_000..20_010_000, 1000);
        let tx = listed(bench.books.tx[0].tagged.as_ref().unwrap().rows().unwrap());
        let row = |value, frames| (vec![Some(value)], frames, 60 * frames);
        assert_eq!(values(&tags, &tx), [row(0, 26), row(1, 26), row(2, 25), row(3, 25)]);
        assert_eq!(
            values(&tags, &rows(&bench, 0)),
            [row(0, 21), row(1, 20), row(2, 20), row(3, 20)]
        );
        assert_eq!(bench.books.rx[0].flows[0].received.get(), 81);
    }
}

#[test]
fn frames_that_found_no_room_have_numbers_or_never_had() {
    let tags = Arc::new(Tags { fields: vec![sent_port()], rows: 4, ..Tags::default() });
    let mut bench = one_flow(Mode::Paced, 10, &tags);
    bench.start(&[0], 0);
    bench.steps(0..20_000, 1000);
    // Slots without buffers: no frame is written.
    bench.ports[0].no_buffers = true;
    bench.steps(20_000..40_000, 1000);
    (bench.ports[0].no_buffers, bench.ports[0].room) = (false, 1000);
    bench.steps(40_000..2_000_000, 1000);
    let frames = std::mem::take(&mut bench.ports[0].sent);
    assert_eq!(bench.books.tx[0].lost_at_ingress.get() + frames.len() as u64, 102);
    let mut wanted = [0u64; 4];
    for frame in &frames {
        let port = usize::from(u16::from_be_bytes([frame[34], frame[35]]) & 3);
        wanted[port] += 1;
    }
    assert!(frames.len() > 50 && frames.len() < 85, "{}", frames.len());
    bench.ports[0].bring(frames);
    bench.steps(2_000_000..2_010_000, 1000);
    let tx = listed(bench.books.tx[0].tagged.as_ref().unwrap().rows().unwrap());
    let wanted: Vec<_> =
        (0..).zip(wanted).map(|(value, frames)| (vec![Some(value)], frames, 60 * frames)).collect();
    assert_eq!(values(&tags, &tx), wanted);
    assert_eq!(values(&tags, &rows(&bench, 0)), wanted);
}

#[test]
fn what_is_received_counts_as_it_is() {
    // Ethernet, a VLAN tag that a device has added, and IPv4.
    let tag = Check { first_bit: 96, bits: 16, any_of: vec![0x8100] };
    let shape = vec![tag, Check { first_bit: 128, bits: 16, any_of: vec![0x0800] }];
    let fields = vec![sent_port(), hops(true)];
    let tags = Arc::new(Tags { fields, shape, rows: 4, ..Tags::default() });
    let mut bench = one_flow(Mode::Paced, 1000, &tags);
    bench.start(&[0], 0);
    let mut frames = sent(&mut bench);
    frames.truncate(40);
    for (number, frame) in frames.iter_mut().enumerate() {
        frame[22] = if number < 24 { 63 } else { 62 };
        if number % 4 < 3 {
            frame.splice(12..12, [0x81, 0, 0, 7]);
        }
    }
    bench.ports[0].bring(frames);
    bench.steps(20_000_000..20_010_000, 1000);
    let row = |port, ttl: Option<u128>, frames, len| (vec![Some(port), ttl], frames, len * frames);
    // Rows for the first four that are seen.
    let wanted = [
        row(0, Some(63), 6, 64),
        row(1, Some(63), 6, 64),
        row(2, Some(63), 6, 64),
        row(3, None, 10, 60),
    ];
    assert_eq!(values(&tags, &rows(&bench, 0)), wanted);
    let other = bench.books.rx[0].flows[0].rows.as_ref().unwrap().other();
    assert_eq!((other.frames.get(), other.bytes.get()), (12, 12 * 64));
    assert!(bench.books.tx[0].tagged.as_ref().unwrap().rows().is_none());
}

#[test]
fn short_marks_and_header_fields_have_tags_too() {
    for (mark, port) in [(Mark::Short, Some(sent_port())), (Mark::Fields, None)] {
        let signature = (mark == Mark::Short).then_some(SignatureSpec::Short);
        let own = FrameSpec { signature, ..spec(Sizes::Fixed(64)) };
        let classifier = packet::classifier::Classifier::new([(0, own.rule(false))]);
        let expected = Expectations {
            rx_masks: vec![u64::MAX],
            marks: vec![mark],
            classifier: Arc::new(if signature.is_none() { classifier } else { Default::default() }),
            ..Expectations::default()
        };
        let source = FrameSource::Writer(Box::new(FrameWriter::new(&own, 0).unwrap()));
        let flow = FlowSetup { source, stamped: false, ..setup(0, 0, 1_000_000, Limit::Frames(8)) };
        let fields = port.into_iter().chain([hops(false)]).collect();
        let tags = Arc::new(Tags { fields, rows: 10, ..Tags::default() });
        let ports = vec![Paper::new(1000)];
        let mut bench =
            Bench::tagged(Mode::Paced, vec![flow], &expected, ports, std::slice::from_ref(&tags));
        bench.start(&[0], 0);
        let mut frames = sent(&mut bench);
        frames[5][22] = 9;
        frames[7][22] = 9;
        bench.ports[0].bring(frames);
        bench.steps(20_000_000..20_010_000, 1000);
        let found = values(&tags, &rows(&bench, 0));
        let row = |values: &[u128], frames| {
            (values.iter().map(|v| Some(*v)).collect(), frames, 60 * frames)
        };
        let wanted: Vec<(Vec<Option<u128>>, u64, u64)> = match mark {
            Mark::Short => vec![
                row(&[0, 64], 2),
                row(&[1, 9], 1),
                row(&[1, 64], 1),
                row(&[2, 64], 2),
                row(&[3, 9], 1),
                row(&[3, 64], 1),
            ],
            _ => vec![row(&[9], 2), row(&[64], 6)],
        };
        assert_eq!(found, wanted, "{mark:?}");
    }
}
