// SPDX-License-Identifier: BSD-3-Clause
//! Counts by metric tags.

use super::*;
use crate::books::rows::Key;

/// Keys, frames and bytes of a flow's rows.
fn rows(bench: &Bench, flow: usize) -> Vec<(Key, u64, u64)> {
    let rows = bench.books.rx[0].flows[flow].rows.as_ref().unwrap();
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
    let tags = Arc::new(Tags { rx_name: true, rows: 2 });
    let mut bench = Bench::tagged(Mode::Paced, flows, &expected, ports, &[tags.clone()]);
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
