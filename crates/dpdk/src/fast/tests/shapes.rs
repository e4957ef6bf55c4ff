// SPDX-License-Identifier: BSD-3-Clause
//! Packets that grow and shrink have the bytes that a model predicts, inside their buffers.

use std::collections::VecDeque;

use dpdk_sys::{layout, rte_mbuf};

use super::{Memory, times};
use crate::fast::mbuf::{data_len, data_start, field, refcnt};
use crate::fast::{headers, shape, share};

const ROOM: u16 = 200;
const HEADROOM: u16 = 128;

/// An mbuf followed by its buffer, as in a pool and as `rte_pktmbuf_alloc` returns it.
fn mbuf() -> Memory {
    let memory = Memory::of(layout::MBUF_SIZE + usize::from(ROOM));
    memory.write(layout::MBUF_BUF_ADDR, memory.at::<u8>(layout::MBUF_SIZE));
    memory.write(layout::MBUF_BUF_LEN, ROOM);
    memory.write(layout::MBUF_DATA_OFF, HEADROOM);
    memory.write(layout::MBUF_NB_SEGS, 1u16);
    memory.write(layout::MBUF_REFCNT, 1u16);
    memory
}

/// The bytes of one segment.
fn bytes(mbuf: *mut rte_mbuf) -> Vec<u8> {
    // SAFETY: a valid mbuf of one owner.
    unsafe { std::slice::from_raw_parts(data_start(mbuf), data_len(mbuf)) }.to_vec()
}

#[test]
fn a_segment_is_what_a_model_says() {
    let memory = mbuf();
    let mbuf: *mut rte_mbuf = memory.at(0);
    let mut model = VecDeque::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for step in 0..times(100_000, 400) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (len, byte) = ((random >> 8) as u16 % 50, step as u8);
        // SAFETY: a valid mbuf of one segment and one owner; bytes that were given out are ours.
        unsafe {
            match random % 4 {
                0 => {
                    let fits = len <= shape::headroom(mbuf);
                    let at = shape::prepend(mbuf, len);
                    assert_eq!(at.is_null(), !fits);
                    if fits {
                        at.write_bytes(byte, len.into());
                        (0..len).for_each(|_| model.push_front(byte));
                    }
                }
                1 => {
                    let fits = len <= shape::tailroom(mbuf);
                    let at = shape::append(mbuf, mbuf, len);
                    assert_eq!(at.is_null(), !fits);
                    if fits {
                        at.write_bytes(byte, len.into());
                        model.extend((0..len).map(|_| byte));
                    }
                }
                2 => {
                    let fits = usize::from(len) <= model.len();
                    assert_eq!(shape::adj(mbuf, len), fits);
                    if fits {
                        model.drain(..usize::from(len));
                    }
                }
                _ => {
                    let fits = usize::from(len) <= model.len();
                    assert_eq!(shape::trim(mbuf, mbuf, len), fits);
                    if fits {
                        model.truncate(model.len() - usize::from(len));
                    }
                }
            }
            assert_eq!(model, bytes(mbuf));
            let whole: u32 = field(mbuf, layout::MBUF_PKT_LEN);
            assert_eq!(whole as usize, model.len());
            let room = shape::headroom(mbuf) + shape::tailroom(mbuf);
            assert_eq!(usize::from(room) + model.len(), usize::from(ROOM));
        }
    }
}

/// As net_null does if its size is larger than its mbufs.
#[test]
fn a_length_that_lies_reaches_no_byte_outside() {
    let memory = mbuf();
    let mbuf: *mut rte_mbuf = memory.at(0);
    memory.write(layout::MBUF_DATA_LEN, u16::MAX);
    memory.write(layout::MBUF_PKT_LEN, u32::from(u16::MAX));
    assert_eq!(bytes(mbuf).len(), usize::from(ROOM - HEADROOM));
    // SAFETY: a valid mbuf of one segment and one owner.
    unsafe {
        assert!(shape::append(mbuf, mbuf, 1).is_null());
        assert!(shape::linearize(mbuf));
        assert!(shape::adj(mbuf, ROOM - HEADROOM));
        assert!(bytes(mbuf).is_empty());
    }
    memory.write(layout::MBUF_DATA_LEN, u16::MAX);
    memory.write(layout::MBUF_DATA_OFF, u16::MAX);
    assert!(bytes(mbuf).is_empty());
    // SAFETY: as above.
    unsafe {
        assert!(shape::prepend(mbuf, 1).is_null());
        assert!(!shape::adj(mbuf, 1) && !shape::trim(mbuf, mbuf, 1));
    }
}

#[test]
fn chains_come_apart_again() {
    let segments = [mbuf(), mbuf(), mbuf()];
    let [one, two, three] = [0, 1, 2].map(|index: usize| segments[index].at::<rte_mbuf>(0));
    // SAFETY: valid mbufs, each of one owner; none is in two packets.
    unsafe {
        for (mbuf, byte) in [(one, 1), (two, 2), (three, 3)] {
            shape::append(mbuf, mbuf, 10).write_bytes(byte, 10);
        }
        assert!(shape::chain(two, two, three) && shape::chain(one, one, two));
        assert_eq!(shape::last_segment(one), three);
        assert_eq!(field::<u16>(one, layout::MBUF_NB_SEGS), 3);
        assert_eq!(field::<u32>(one, layout::MBUF_PKT_LEN), 30);
        shape::split(one, one, two);
        assert_eq!(field::<u32>(one, layout::MBUF_PKT_LEN), 10);
        assert_eq!(field::<u32>(two, layout::MBUF_PKT_LEN), 20);
        assert_eq!((shape::next(one).is_null(), shape::next(two)), (true, three));
        assert_eq!((bytes(one), bytes(three)), (vec![1; 10], vec![3; 10]));
    }
}

#[test]
fn bytes_of_two_owners_are_not_to_be_written() {
    let [own, shared] = [mbuf(), mbuf()];
    let [own, shared] = [own.at::<rte_mbuf>(0), shared.at::<rte_mbuf>(0)];
    // SAFETY: valid mbufs; the owner that is added is never used.
    unsafe {
        for mbuf in [own, shared] {
            assert!(!shape::append(mbuf, mbuf, 60).is_null());
        }
        assert!(headers::all_own(&[own, shared], 60) && !headers::all_own(&[own, shared], 61));
        assert!(share::add_owner(shared).is_ok());
        assert_eq!(refcnt(shared), 2);
        assert!(!headers::all_own(&[own, shared], 14) && headers::all_own(&[own], 14));
    }
}
