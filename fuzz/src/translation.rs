// SPDX-License-Identifier: BSD-3-Clause
//! Address translation.

use packet::ipv4::Ipv4;
use packet::layers::Layers;
use packet::nat::{Endpoint, Translation};

/// The first 13 bytes say what the ends become, the others are the packet.
pub fn translation(bytes: &[u8]) {
    let Some(([flags, rest @ ..], packet)) = bytes.split_first_chunk::<13>() else { return };
    let end = |at: usize, flag: u8| {
        let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|i| rest[at + i]);
        let port = (flags & flag << 1 != 0).then(|| u16::from_be_bytes([e, f]));
        (flags & flag != 0).then(|| Endpoint { address: [a, b, c, d].into(), port })
    };
    let wanted = Translation { source: end(0, 1), destination: end(6, 4) };
    let mut translated = packet.to_vec();
    if wanted.apply(&mut translated).is_err() {
        assert_eq!(translated, packet, "nothing half-done");
        return;
    }
    let (Ok((before, _)), Ok((after, _))) = (Ipv4::split(packet), Ipv4::split(&translated)) else {
        panic!("a header went away");
    };
    if let Some(end) = wanted.source {
        assert_eq!(after.source(), end.address);
    }
    if let Some(end) = wanted.destination {
        assert_eq!(after.destination(), end.address);
    }
    assert_eq!(after.checksum_is_right(), before.checksum_is_right());
    if let Ok(layers) = Layers::of_packet(packet) {
        assert_eq!(Layers::of_packet(&translated), Ok(layers));
        assert_eq!(layers.checksum_is_right(&translated), layers.checksum_is_right(packet));
    }
}
