// SPDX-License-Identifier: BSD-3-Clause
//! The walker over frames.

use packet::Malformed;
use packet::layers::Layers;

/// Walks over the bytes as a frame, as a packet, and as the beginning of a longer frame, and into all its tunnels.
pub fn frame(bytes: &[u8]) {
    for longer in [0, 1, 2000] {
        walk(Layers::of_first(bytes, bytes.len() + longer), bytes, bytes.len() + longer);
    }
    assert_eq!(Layers::of(bytes), Layers::of_first(bytes, bytes.len()));
    walk(Layers::of_packet(bytes), bytes, bytes.len());
}

fn walk(mut found: Result<Layers, Malformed>, bytes: &[u8], len: usize) {
    let (mut start, mut depth) = (0, 0);
    while let Ok(layers) = found {
        assert!(layers.l4() + layers.l4_len <= bytes.len(), "headers are among the bytes");
        assert!(layers.payload().start <= layers.end && layers.end <= len, "the payload is");
        let right = layers.checksum_is_right(bytes);
        let mut copy = bytes.to_vec();
        assert_eq!(layers.fill_checksum(&mut copy).is_some(), right.is_some());
        if right.is_some() {
            assert_eq!(layers.checksum_is_right(&copy), Some(true));
            // Nothing but the checksum changes, also where there was none.
            let changed = copy.iter().zip(bytes).filter(|(a, b)| a != b).count();
            assert!(changed <= 2);
        }
        let Some(inner) = layers.inner(bytes) else { break };
        found = inner.map(|(_, inner)| {
            assert!(inner.start > start && inner.end <= layers.end, "tunnels lie in each other");
            start = inner.start;
            inner
        });
        depth += 1;
        assert!(depth <= bytes.len() / 4, "every step takes bytes");
    }
}
