// SPDX-License-Identifier: BSD-3-Clause
//! Information from a device, in fields that the test writes like a driver.

use dpdk::{Checksum, Eal, L2Type, L3Type, L4Type, Mbuf, PacketType};
use dpdk_sys::layout;

type State = fn(&Mbuf<'_>) -> Checksum;

pub fn check(eal: &Eal) {
    let pool = super::pool(eal, "received", 200);
    let mut mbuf = super::packet(&pool, 60);
    nothing_is_known(&mbuf);
    let all_but_owners = !(layout::MBUF_F_EXTERNAL | layout::MBUF_F_INDIRECT);

    let states: [(State, u64, u64); 3] = [
        (
            |mbuf| mbuf.ip_checksum(),
            layout::MBUF_F_RX_IP_CKSUM_GOOD,
            layout::MBUF_F_RX_IP_CKSUM_BAD,
        ),
        (
            |mbuf| mbuf.l4_checksum(),
            layout::MBUF_F_RX_L4_CKSUM_GOOD,
            layout::MBUF_F_RX_L4_CKSUM_BAD,
        ),
        (
            |mbuf| mbuf.outer_l4_checksum(),
            layout::MBUF_F_RX_OUTER_L4_CKSUM_GOOD,
            layout::MBUF_F_RX_OUTER_L4_CKSUM_BAD,
        ),
    ];
    for (state, good, bad) in states {
        // Whatever other flags are set.
        for others in [0, all_but_owners & !good & !bad] {
            for (flags, expected) in [
                (0, Checksum::Unknown),
                (good, Checksum::Good),
                (bad, Checksum::Bad),
                (good | bad, Checksum::Absent),
            ] {
                set_flags(&mut mbuf, flags | others);
                assert_eq!(state(&mbuf), expected);
            }
        }
    }
    set_flags(&mut mbuf, layout::MBUF_F_RX_OUTER_IP_CKSUM_BAD);
    assert!(mbuf.outer_ip_checksum_is_bad());

    // The union of hashes: RSS in the first half, a mark in the second.
    super::write(&mut mbuf, layout::MBUF_HASH, [0x1234_5678u32, 0x9abc_def0]);
    super::write(&mut mbuf, layout::MBUF_VLAN_TCI, 0x6007u16);
    super::write(&mut mbuf, layout::MBUF_VLAN_TCI_OUTER, 0x2003u16);
    super::write(
        &mut mbuf,
        layout::MBUF_TX_OFFLOAD,
        u64::from(1448u16) << layout::MBUF_TSO_SEGSZ_SHIFT,
    );
    set_flags(&mut mbuf, 0);
    nothing_is_known(&mbuf);
    set_flags(&mut mbuf, layout::MBUF_F_RX_RSS_HASH);
    assert_eq!((mbuf.rss_hash(), mbuf.mark()), (Some(0x1234_5678), None));
    set_flags(&mut mbuf, layout::MBUF_F_RX_FDIR);
    assert_eq!((mbuf.is_flagged(), mbuf.mark()), (true, None));
    set_flags(&mut mbuf, layout::MBUF_F_RX_FDIR | layout::MBUF_F_RX_FDIR_ID);
    assert_eq!((mbuf.is_flagged(), mbuf.mark()), (true, Some(0x9abc_def0)));
    set_flags(&mut mbuf, layout::MBUF_F_RX_VLAN);
    assert_eq!((mbuf.vlan(), mbuf.outer_vlan(), mbuf.stripped_vlans()), (Some(0x6007), None, 0));
    set_flags(&mut mbuf, layout::MBUF_F_RX_VLAN | layout::MBUF_F_RX_VLAN_STRIPPED);
    assert_eq!(mbuf.stripped_vlans(), 1);
    let qinq = layout::MBUF_F_RX_QINQ | layout::MBUF_F_RX_QINQ_STRIPPED;
    set_flags(&mut mbuf, qinq | layout::MBUF_F_RX_VLAN | layout::MBUF_F_RX_VLAN_STRIPPED);
    assert_eq!((mbuf.vlan(), mbuf.outer_vlan()), (Some(0x6007), Some(0x2003)));
    assert_eq!(mbuf.stripped_vlans(), 2);
    set_flags(&mut mbuf, layout::MBUF_F_RX_LRO);
    assert_eq!(mbuf.coalesced_segment_size(), Some(1448));

    types(&mut mbuf);

    // A clone and a copy have the same information.
    let kind = PacketType::from_bits(dpdk_sys::RTE_PTYPE_L2_ETHER | dpdk_sys::RTE_PTYPE_L3_IPV6);
    mbuf.set_packet_type(kind);
    set_flags(&mut mbuf, layout::MBUF_F_RX_RSS_HASH | layout::MBUF_F_RX_L4_CKSUM_GOOD);
    let shared = mbuf.share();
    let (clone, copy) = (shared.clone_into(&pool).unwrap(), shared.copy_into(&pool).unwrap());
    for mbuf in [&*shared, &clone, &copy] {
        assert_eq!((mbuf.packet_type(), mbuf.rss_hash()), (kind, Some(0x1234_5678)));
        assert_eq!((mbuf.l4_checksum(), mbuf.ip_checksum()), (Checksum::Good, Checksum::Unknown));
    }
    drop((shared, clone, copy));
    assert!(pool.is_full());
    // A fresh mbuf has none.
    let all: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
    all.iter().for_each(nothing_is_known);
    drop(all);
    assert!(pool.is_full());
}

fn set_flags(mbuf: &mut Mbuf<'_>, flags: u64) {
    super::write(mbuf, layout::MBUF_OL_FLAGS, flags);
}

fn nothing_is_known(mbuf: &Mbuf<'_>) {
    for state in [mbuf.ip_checksum(), mbuf.l4_checksum(), mbuf.outer_l4_checksum()] {
        assert_eq!(state, Checksum::Unknown);
    }
    assert!(!mbuf.outer_ip_checksum_is_bad() && !mbuf.is_flagged());
    assert_eq!((mbuf.rss_hash(), mbuf.mark()), (None, None));
    assert_eq!((mbuf.vlan(), mbuf.outer_vlan(), mbuf.stripped_vlans()), (None, None, 0));
    assert_eq!((mbuf.coalesced_segment_size(), mbuf.packet_type()), (None, PacketType::UNKNOWN));
}

fn types(mbuf: &mut Mbuf<'_>) {
    let bits = dpdk_sys::RTE_PTYPE_L2_ETHER_VLAN
        | dpdk_sys::RTE_PTYPE_L3_IPV4_EXT_UNKNOWN
        | dpdk_sys::RTE_PTYPE_L4_UDP;
    super::write(mbuf, layout::MBUF_PACKET_TYPE, bits);
    let kind = mbuf.packet_type();
    assert_eq!((kind.l2(), kind.l3(), kind.l4()), (L2Type::Vlan, L3Type::Ipv4Any, L4Type::Udp));
    assert_eq!(kind.to_string(), "L2_ETHER_VLAN L3_IPV4_EXT_UNKNOWN L4_UDP");
    assert_eq!(format!("{kind:?}"), format!("PacketType({kind})"));
    assert_eq!(kind.bits(), bits);
}
