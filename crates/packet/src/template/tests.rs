// SPDX-License-Identifier: BSD-3-Clause
//! Every frame is parsed with the views and compared with what its patterns say.

use super::*;
use crate::ethernet::Ethernet;
use crate::ipv4::Ipv4;
use crate::udp::{self, Udp};
use proptest::prelude::*;

fn pattern(bits: u32) -> impl Strategy<Value = Pattern> {
    let top = u128::MAX >> (128 - bits);
    prop_oneof![
        (0..=top).prop_map(Pattern::Value),
        prop::collection::vec(0..=top, 1..5).prop_map(Pattern::Values),
        (0..=top, 0..=top, 1u64..2000).prop_map(|(start, step, count)| Pattern::Increment {
            start,
            step,
            count
        }),
        (0..=top, 0..=top, 1u64..2000).prop_map(|(start, step, count)| Pattern::Decrement {
            start,
            step,
            count
        }),
    ]
}

prop_compose! {
    fn frames()(
        len_with_fcs in MIN_LEN_WITH_FCS..=MAX_LEN_WITH_FCS,
        macs in (pattern(48), pattern(48)),
        ips in (pattern(32), pattern(32)),
        ports in (pattern(16), pattern(16)),
        tos: u8, identification: u16, dont_fragment: bool, ttl: u8,
    ) -> UdpFrame {
        UdpFrame {
            len_with_fcs, tos, identification, dont_fragment, ttl,
            mac_destination: macs.0, mac_source: macs.1,
            ip_source: ips.0, ip_destination: ips.1,
            port_source: ports.0, port_destination: ports.1,
        }
    }
}

fn check(spec: &UdpFrame, flow: u16, run: u8, count: u32, resident: bool) {
    let mut template = Template::new(spec, flow).unwrap();
    template.restart(run);
    assert_eq!(template.len(), spec.len_with_fcs - 4);
    let mut frame = vec![0xa5; template.len()];
    if resident {
        Template::write_blank(&mut frame);
    }
    let mut cycles = [
        spec.mac_destination.cycle(48),
        spec.mac_source.cycle(48),
        spec.ip_source.cycle(32),
        spec.ip_destination.cycle(32),
        spec.port_source.cycle(16),
        spec.port_destination.cycle(16),
    ];
    for sequence in 0..count {
        if resident {
            template.write(&mut frame);
        } else {
            template.write_whole(&mut frame);
        }
        let (ethernet, packet) = Ethernet::split(&frame).unwrap();
        let (ip, datagram) = Ipv4::split(packet).unwrap();
        let (udp, payload) = Udp::split(datagram).unwrap();
        let seen = [
            ethernet.destination().to_u64(),
            ethernet.source().to_u64(),
            u64::from(u32::from(ip.source())),
            u64::from(u32::from(ip.destination())),
            u64::from(udp.source()),
            u64::from(udp.destination()),
        ];
        assert_eq!(seen, cycles.each_mut().map(Cycle::next_value));
        assert_eq!(ethernet.ether_type(), ethernet::ETHERTYPE_IPV4);
        assert_eq!((ip.header_len(), usize::from(ip.total_len())), (20, packet.len()));
        assert_eq!((ip.ttl(), ip.protocol()), (spec.ttl, PROTOCOL_UDP));
        assert_eq!(usize::from(udp.length()), datagram.len());
        assert!(ip.checksum_is_right());
        assert_ne!(udp.checksum(), 0);
        assert!(udp::checksum_is_right(&ip, datagram));
        assert_eq!(Signature::read(&frame), Some(Signature { run, flow, sequence, stamp: 0 }));
        let zeros = payload.len() & !1;
        assert!(payload[..zeros - signature::LEN].iter().all(|b| *b == 0));
        assert!(payload[zeros..].iter().all(|b| *b == 0));
    }
}

#[test]
fn every_size_is_right() {
    let published = UdpFrame {
        ip_source: Pattern::Increment { start: 0xc612_0001, step: 1, count: 16_126 },
        port_source: Pattern::Increment { start: 10_000, step: 1, count: 1000 },
        port_destination: Pattern::Increment { start: 10_000, step: 1, count: 1000 },
        ..UdpFrame::default()
    };
    for len_with_fcs in MIN_LEN_WITH_FCS..=MAX_LEN_WITH_FCS {
        check(&UdpFrame { len_with_fcs, ..published.clone() }, 3, 9, 3, len_with_fcs % 3 == 0);
    }
}

#[test]
fn other_sizes_are_refused() {
    for len_with_fcs in [0, 18, 63, 1519, usize::MAX] {
        let error = Template::new(&UdpFrame { len_with_fcs, ..UdpFrame::default() }, 0).err();
        assert_eq!(error, Some(TemplateError::Length(len_with_fcs)));
    }
}

#[test]
fn a_checksum_of_zero_is_sent_as_ones() {
    // Walk one port through all values: one of them makes the sum all ones.
    let spec = UdpFrame {
        port_source: Pattern::Increment { start: 0, step: 1, count: 65_536 },
        ..UdpFrame::default()
    };
    check(&spec, 0, 0, 65_536, true);
}

#[test]
fn a_buffer_of_another_length_uses_no_frame_up() {
    let mut template = Template::new(&UdpFrame::default(), 0).unwrap();
    let mut short = [0xa5; 59];
    template.write(&mut short);
    assert_eq!(short, [0xa5; 59]);
    let mut frame = [0; 60];
    template.write(&mut frame);
    assert_eq!(Signature::read(&frame).unwrap().sequence, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn frames_are_what_their_patterns_say(spec in frames(), flow in 0..signature::MAX_FLOWS, run: u8, resident: bool) {
        check(&spec, flow, run, 50, resident);
    }
}
