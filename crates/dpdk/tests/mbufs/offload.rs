// SPDX-License-Identifier: BSD-3-Clause
//! Offload requests: accepted only if the headers are there, and never kept when the headers
//! change.

use std::num::NonZeroU16;

use dpdk::{Eal, IpOffload, L4Offload, Mbuf, Mempool, OffloadError, TxOffload};
use dpdk_sys::layout;

const UDP: TxOffload =
    TxOffload { l2_len: 14, ip: IpOffload::Ipv4 { len: 20, checksum: true }, l4: L4Offload::Udp };

pub fn check(eal: &Eal) {
    let pool = super::pool(eal, "offloads", 300);
    as_c_does(&pool);
    refusals(&pool);
    in_small_buffers(eal);
    shared(&pool);
    shapes(&pool);
    vlan(&pool);
    a_tag_that_a_driver_puts_in_leaves_the_request_true(&pool);
    assert!(pool.is_full());
}

fn as_c_does(pool: &Mempool<'_>) {
    let payload = NonZeroU16::new(100).unwrap();
    for ip in [
        IpOffload::Ipv4 { len: 20, checksum: true },
        IpOffload::Ipv4 { len: 24, checksum: false },
        IpOffload::Ipv6 { len: 40 },
    ] {
        for l4 in [
            L4Offload::Nothing,
            L4Offload::Udp,
            L4Offload::Sctp,
            L4Offload::Tcp { len: 20 },
            L4Offload::TcpSegments { len: 32, payload },
        ] {
            let mut mbuf = super::packet(pool, 200);
            let offload = TxOffload { l2_len: 14, ip, l4 };
            mbuf.request(&offload).unwrap();
            let l3 = match ip {
                IpOffload::Ipv4 { len, .. } => u64::from(len),
                IpOffload::Ipv6 { len } => u64::from(len),
            };
            let l4_len = offload.headers_len() as u64 - 14 - l3;
            let tso = if matches!(l4, L4Offload::TcpSegments { .. }) { 100 } else { 0 };
            // SAFETY: computes a number, and looks at a valid mbuf.
            let (lengths, valid) = unsafe {
                (
                    dpdk_sys::lr_mbuf_tx_offload(14, l3, l4_len, tso),
                    dpdk_sys::lr_validate_tx_offload(super::pointer(&mbuf)),
                )
            };
            assert_eq!(super::read::<u64>(&mbuf, layout::MBUF_TX_OFFLOAD), lengths);
            assert_eq!(valid, 0, "{offload:?}");
            let requested = mbuf.requested().unwrap();
            assert_eq!((requested.l2_len, requested.l4), (14, l4));
            mbuf.withdraw_request();
            assert_eq!(mbuf.requested(), None);
        }
    }
}

fn refusals(pool: &Mempool<'_>) {
    let payload = NonZeroU16::new(1000).unwrap();
    let ipv4 = |len| IpOffload::Ipv4 { len, checksum: true };
    let mut mbuf = super::packet(pool, 300);
    for (l2_len, ip, l4) in [
        (128, ipv4(20), L4Offload::Udp),
        (14, ipv4(16), L4Offload::Udp),
        (14, ipv4(22), L4Offload::Udp),
        (14, ipv4(64), L4Offload::Udp),
        (14, IpOffload::Ipv6 { len: 39 }, L4Offload::Udp),
        (14, IpOffload::Ipv6 { len: 512 }, L4Offload::Udp),
        (14, ipv4(20), L4Offload::Tcp { len: 0 }),
        (14, ipv4(20), L4Offload::Tcp { len: 64 }),
        (14, ipv4(20), L4Offload::TcpSegments { len: 21, payload }),
    ] {
        // This also removes the earlier request.
        mbuf.request(&UDP).unwrap();
        assert_eq!(mbuf.request(&TxOffload { l2_len, ip, l4 }), Err(OffloadError::Length));
        assert_eq!(mbuf.requested(), None);
    }
    let l4 = L4Offload::TcpSegments { len: 60, payload };
    let long = TxOffload { l2_len: 18, ip: ipv4(60), l4 };
    assert_eq!(mbuf.request(&long), Err(OffloadError::Segments { headers: 138, payload: 1000 }));
    let l4 = L4Offload::TcpSegments { len: 20, payload: NonZeroU16::MAX };
    let long = TxOffload { l2_len: 14, ip: ipv4(20), l4 };
    assert!(matches!(mbuf.request(&long), Err(OffloadError::Segments { .. })));

    let mut short = super::packet(pool, 41);
    assert_eq!(short.request(&UDP), Err(OffloadError::Outside { end: 42, len: 41 }));
    let _ = short.append(1).unwrap();
    assert_eq!(short.request(&UDP), Ok(()));
    // The rest of the headers is in another segment.
    let mut head = super::packet(pool, 34);
    head.chain(super::packet(pool, 100)).unwrap();
    assert_eq!(head.request(&UDP), Err(OffloadError::Outside { end: 42, len: 34 }));
    assert!(head.linearize());
    assert_eq!(head.request(&UDP), Ok(()));
}

/// Drivers read as many bytes of an IPv4 header as its length field says.
fn in_small_buffers(eal: &Eal) {
    let small = super::pool(eal, "small-offloads", 73);
    let mut mbuf = super::packet(&small, 60);
    assert_eq!(mbuf.request(&UDP), Err(OffloadError::Room));
    let ip = IpOffload::Ipv6 { len: 40 };
    assert_eq!(mbuf.request(&TxOffload { l2_len: 14, ip, l4: L4Offload::Nothing }), Ok(()));
    drop(mbuf);
    assert!(small.is_full());
    // Headers in the headroom, which the pool's next mbuf has free.
    let mut mbuf = super::packet(&small, 70);
    mbuf.prepend(10).unwrap();
    let ipv6 = |l2_len| TxOffload { l2_len, ip, l4: L4Offload::Tcp { len: 20 } };
    assert_eq!(mbuf.request(&ipv6(14)), Err(OffloadError::Room));
    assert_eq!(mbuf.request(&ipv6(13)), Ok(()));
    mbuf.insert_vlan(Some(7));
    assert_eq!(mbuf.requested(), None, "a tag has no room");
    assert_eq!(mbuf.request(&ipv6(10)), Err(OffloadError::Room), "nor beside it");
    assert_eq!(mbuf.request(&ipv6(9)), Ok(()));
    drop(mbuf);
    let enough = super::pool(eal, "enough-offloads", 74);
    assert_eq!(super::packet(&enough, 60).request(&UDP), Ok(()));
    assert!(enough.is_full());
}

fn shared(pool: &Mempool<'_>) {
    let mut mbuf = super::packet(pool, 100);
    mbuf.request(&UDP).unwrap();
    mbuf.insert_vlan(Some(7));
    let shared = mbuf.share();
    let mut clone = shared.clone_into(pool).unwrap();
    let copy = shared.copy_into(pool).unwrap();
    let part = shared.part_into(pool, ..).unwrap();
    assert_eq!(shared.requested(), Some(UDP));
    for mbuf in [&clone, &copy, &part] {
        assert_eq!(mbuf.requested(), None);
        assert_eq!(mbuf.inserted_vlan(), Some(7));
    }
    assert_eq!(clone.request(&UDP), Err(OffloadError::Shared));
    // A header of its own, before a shared payload.
    let mut header = super::packet(pool, 42);
    header.request(&UDP).unwrap();
    header.chain(part).unwrap();
    assert_eq!(header.requested(), Some(UDP));
    drop((clone, copy, header));
    let mut alone = shared.unshare().ok().unwrap();
    assert_eq!(alone.requested(), Some(UDP));
    assert_eq!(alone.request(&UDP), Ok(()));
}

/// After any change of a packet's shape, a remaining request is within the first segment.
fn shapes(pool: &Mempool<'_>) {
    type Change = for<'a, 'm> fn(&'a mut Mbuf<'m>, &Mempool<'m>) -> bool;
    let changes: [(&str, bool, Change); 9] = [
        ("prepend", false, |mbuf, _| mbuf.prepend(4).is_some()),
        ("adj", false, |mbuf, _| mbuf.adj(1)),
        ("adj of all", false, |mbuf, _| mbuf.adj(100)),
        ("trim", false, |mbuf, _| mbuf.trim(1)),
        ("trim of all", false, |mbuf, _| mbuf.trim(100)),
        ("resize", false, |mbuf, _| mbuf.resize(10).is_some()),
        ("append", true, |mbuf, _| mbuf.append(10).is_some()),
        ("chain", true, |mbuf, pool| mbuf.chain(super::packet(pool, 10)).is_ok()),
        ("chain and split", true, |mbuf, pool| {
            mbuf.chain(super::packet(pool, 10)).is_ok() && mbuf.split(1).is_some()
        }),
    ];
    for (name, stays, change) in changes {
        let mut mbuf = super::packet(pool, 100);
        mbuf.request(&UDP).unwrap();
        assert!(change(&mut mbuf, pool), "{name}");
        assert_eq!(mbuf.requested().is_some(), stays, "{name}");
        if stays {
            assert!(mbuf.data().len() >= UDP.headers_len(), "{name}");
        }
    }
    // When chained after another packet, it loses its request, because it could be shortened there
    // and split off again.
    let mut tail = super::packet(pool, 100);
    tail.request(&UDP).unwrap();
    let mut head = super::packet(pool, 100);
    head.request(&UDP).unwrap();
    head.chain(tail).unwrap();
    assert_eq!(head.requested(), Some(UDP));
    assert!(head.trim(90));
    assert_eq!(head.requested(), None);
    let tail = head.split(1).unwrap();
    assert_eq!((tail.packet_len(), tail.requested()), (10, None));
}

fn vlan(pool: &Mempool<'_>) {
    let mut mbuf = super::packet(pool, 100);
    assert_eq!(mbuf.inserted_vlan(), None);
    mbuf.insert_vlan(Some(0x2abc));
    mbuf.request(&UDP).unwrap();
    assert_eq!((mbuf.inserted_vlan(), mbuf.requested()), (Some(0x2abc), Some(UDP)));
    assert_eq!(mbuf.vlan(), None, "no device has received it");
    mbuf.withdraw_request();
    assert_eq!(mbuf.inserted_vlan(), Some(0x2abc));
    mbuf.insert_vlan(None);
    assert_eq!(mbuf.inserted_vlan(), None);
    drop(mbuf);
    assert_eq!(pool.alloc().unwrap().inserted_vlan(), None);
}

/// As some drivers do in software when they send, or when they prepare a packet that the caller
/// keeps.
fn put_tag_in(mbuf: &mut Mbuf<'_>) {
    let mut pointer = super::pointer(mbuf);
    // SAFETY: an mbuf of this owner's, with head room.
    assert_eq!(unsafe { dpdk_sys::lr_vlan_insert(&raw mut pointer) }, 0);
}

/// Lengths have the same limits as without a tag: 7 bits, or the 128 bytes that net_tap has for a
/// segment's headers.
fn a_tag_that_a_driver_puts_in_leaves_the_request_true(pool: &Mempool<'_>) {
    let segments = |l2_len, payload| TxOffload {
        l2_len,
        ip: IpOffload::Ipv4 { len: 60, checksum: true },
        l4: L4Offload::TcpSegments { len: 40, payload: NonZeroU16::new(payload).unwrap() },
    };
    let long = |l2_len| TxOffload { l2_len, ..UDP };
    for (offload, room) in [
        (UDP, 28),
        (long(123), 1),
        (long(124), 0),
        (long(127), 0),
        (segments(14, 100), 3),
        (segments(24, 100), 1),
        (segments(25, 100), 0),
        (segments(14, 65_421), 0),
        (segments(14, 65_417), 1),
    ] {
        let lengthened = |tags: u8| TxOffload { l2_len: offload.l2_len + 4 * tags, ..offload };
        // The tag is requested last, repeatedly.
        let mut mbuf = super::packet(pool, 200);
        mbuf.request(&offload).unwrap();
        for tags in 1..=room {
            mbuf.insert_vlan(Some(7));
            put_tag_in(&mut mbuf);
            assert_eq!(mbuf.requested(), Some(lengthened(tags)));
        }
        mbuf.insert_vlan(Some(7));
        assert_eq!(mbuf.requested(), None, "{offload:?}");
        assert_eq!(mbuf.inserted_vlan(), Some(7));
        // And first.
        let mut mbuf = super::packet(pool, 200);
        mbuf.insert_vlan(Some(7));
        let answer = mbuf.request(&offload);
        assert_eq!(answer.is_ok(), room > 0, "{offload:?}");
        assert_eq!(mbuf.requested(), answer.ok().map(|()| offload));
        mbuf.insert_vlan(None);
        assert_eq!(mbuf.request(&offload), Ok(()));
    }
}

/// Frames of 64 bytes of some kind, and a request for each.
#[cfg(feature = "packet")]
#[test]
fn headers_that_were_found_are_asked_for() {
    use packet::layers::Layers;

    let frame = |ether_type: u16, headers: &[(usize, &[u8])]| {
        let mut frame = vec![0; 64];
        frame[12..14].copy_from_slice(&ether_type.to_be_bytes());
        for (at, bytes) in headers {
            frame[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        frame
    };
    let of = |frame: &[u8]| TxOffload::of(&Layers::of(frame).unwrap());
    let ipv4 = |len| IpOffload::Ipv4 { len, checksum: true };
    let offload = |l2_len, ip, l4| Some(TxOffload { l2_len, ip, l4 });

    let udp = frame(0x0800, &[(14, &[0x45, 0, 0, 50]), (23, &[17]), (38, &[0, 30])]);
    assert_eq!(of(&udp), Some(UDP));
    let tagged = frame(0x8100, &[(14, &[0, 7, 8, 0, 0x46, 0, 0, 44]), (27, &[6]), (54, &[0x50])]);
    assert_eq!(of(&tagged), offload(18, ipv4(24), L4Offload::Tcp { len: 20 }));
    let fragment =
        frame(0x0800, &[(14, &[0x45, 0, 0, 50]), (20, &[0x20]), (23, &[17]), (38, &[0, 30])]);
    assert_eq!(of(&fragment), offload(14, ipv4(20), L4Offload::Nothing));
    let ipv6 = frame(0x86dd, &[(14, &[0x60, 0, 0, 0, 0, 10, 17]), (58, &[0, 10])]);
    assert_eq!(of(&ipv6), offload(14, IpOffload::Ipv6 { len: 40 }, L4Offload::Udp));
    assert_eq!(of(&frame(0x88cc, &[])), None);

    // VXLAN: for the outer headers, or for the inner ones, with the outer ones counted as part of
    // the preceding header.
    let mut tunnel = frame(
        0x0800,
        &[(14, &[0x45, 0, 0, 100]), (23, &[17]), (36, &[0x12, 0xb5, 0, 80]), (42, &[8])],
    );
    tunnel.truncate(50);
    tunnel.extend(&udp);
    assert_eq!(of(&tunnel), Some(UDP));
    let (_, inner) = Layers::of(&tunnel).unwrap().inner(&tunnel).unwrap().unwrap();
    assert_eq!(TxOffload::of(&inner), offload(64, ipv4(20), L4Offload::Udp));
}
