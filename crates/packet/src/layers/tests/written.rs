// SPDX-License-Identifier: BSD-3-Clause
//! What our own writer writes is found again.

use proptest::prelude::*;

use super::*;
use crate::MacAddr;
use crate::frame::{Checksum, FrameSpec, Header};
use crate::headers;
use crate::payload::Payload;
use crate::size::Sizes;
use crate::vlan::Vlan;
use crate::writer::FrameWriter;

fn write(headers: Vec<Header>, size: usize) -> Vec<u8> {
    let payload = Payload::IncrementByte;
    let spec = FrameSpec { headers, sizes: Sizes::Fixed(size), payload, signature: None };
    let mut frames = [Vec::new()];
    FrameWriter::new(&spec, 0).unwrap().write(&mut frames, 0, false);
    let [frame] = frames;
    frame
}

fn header(name: &str) -> Header {
    Header::new(headers::kind(name).unwrap())
}

proptest! {
    #[test]
    fn every_stack_is_found_again(
        tags in prop::collection::vec(0u16..4096, 0..4), six: bool, options in 0usize..11, transport in 0..3usize,
        tunnel in 0..3usize, payload in 0usize..300, wrong: bool, [mac, ports] in any::<[u32; 2]>(), source: u128,
    ) {
        let ip = if six { "ipv6" } else { "ipv4" };
        let transport = [["udp", "tcp", "icmp"], ["udp", "tcp", "icmpv6"]][usize::from(six)][transport];
        let mut outer = match tunnel {
            0 => vec![],
            1 => ["ethernet", "ipv4", "udp", "vxlan"].map(header).to_vec(),
            _ => ["ethernet", "ipv6", "gre"].map(header).to_vec(),
        };
        let outer_len: usize = outer.iter().map(Header::len).sum();
        let inner_at = outer.len();
        // GRE has packets as well as frames; the writer has no number for frames.
        let framed = tunnel != 2;
        if framed {
            outer.push(header("ethernet").with("src", u128::from(mac)).unwrap());
            outer.extend(tags.iter().map(|id| header("vlan").with("id", u128::from(*id)).unwrap()));
        }
        let mut ip = header(ip).with("src", source).unwrap();
        if !six {
            ip.set_options(&[1].repeat(options * 4));
        }
        outer.push(ip);
        let mut last = header(transport);
        if transport != "icmp" && transport != "icmpv6" {
            last.set("src_port", u128::from(ports & 0xffff)).unwrap();
            // No tunnel by accident.
            last.set("dst_port", u128::from(ports >> 17)).unwrap();
        }
        if wrong {
            let field = last.kind().fields.iter().find(|field| field.is_checksum()).unwrap().name;
            last.set(field, Checksum::Bad).unwrap();
        }
        outer.push(last);
        let headers_len: usize = outer.iter().map(Header::len).sum();
        let lens: Vec<usize> = outer.iter().map(Header::len).collect();
        let size = (headers_len + payload + 4).max(64);
        let frame = write(outer, size);
        let mut found = Layers::of(&frame).unwrap();
        if tunnel > 0 {
            prop_assert_eq!(found.checksum_is_right(&frame), (tunnel == 1).then_some(true));
            let (kind, inner) = found.inner(&frame).unwrap().unwrap();
            prop_assert_eq!(kind, [Tunnel::Vxlan, Tunnel::Gre][tunnel - 1]);
            prop_assert_eq!(inner.start, outer_len);
            found = inner;
        }
        let l2: usize = if framed { lens[inner_at..=inner_at + tags.len()].iter().sum() } else { 0 };
        prop_assert_eq!([found.l2_len, found.l3_len, found.l4_len], [l2, lens[lens.len() - 2], lens[lens.len() - 1]]);
        prop_assert_eq!(found.payload(), headers_len..size - 4);
        let icmp = transport == "icmp" || transport == "icmpv6";
        // A wrong checksum is told; where it is UDP's, 0xffff stands for 0.
        prop_assert_eq!(found.checksum_is_right(&frame), Some(!wrong), "{}", transport);
        if framed {
            let (ethernet, mut rest) = Ethernet::split(&frame[found.start..]).unwrap();
            prop_assert_eq!(ethernet.source(), MacAddr::from_u64(u64::from(mac)));
            for id in &tags {
                let (tag, behind) = Vlan::split(rest).unwrap();
                prop_assert_eq!(tag.id(), *id);
                rest = behind;
            }
        }
        let packet = &frame[found.l3()..];
        if six {
            let (ip, _) = Ipv6::split(packet).unwrap();
            prop_assert_eq!(ip.source(), std::net::Ipv6Addr::from(source));
        } else {
            let (ip, _) = Ipv4::split(packet).unwrap();
            prop_assert_eq!(ip.source(), std::net::Ipv4Addr::from(source as u32));
            prop_assert!(ip.checksum_is_right());
            prop_assert_eq!(ip.options().as_bytes().len(), options * 4);
        }
        if !icmp {
            let at = found.l4();
            let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
            prop_assert_eq!([port(at), port(at + 2)], [ports as u16, (ports >> 17) as u16]);
        }
        // Made anew, every checksum is the writer's.
        let mut again = frame.clone();
        found.fill_checksum(&mut again).unwrap();
        prop_assert_eq!(again == frame, !wrong);
    }
}
