// SPDX-License-Identifier: BSD-3-Clause
//! A frame in its buffer, and the VLAN tag that the kernel stores outside of it.
//!
//! The kernel removes the outer VLAN tag from a frame before a packet socket sees it, even if the
//! interface did not; a forwarder must insert it again.

/// Ethernet header in bytes.
pub(crate) const HEADER: usize = 14;
/// VLAN tag in bytes.
pub(crate) const TAG: usize = 4;
/// Both MAC addresses: what stands before the tag.
const ADDRESSES: usize = 12;

/// The protocol of customers' tags (802.1Q), the only ones that an MTU leaves room for.
pub(crate) const VLAN: [u8; 2] = [0x81, 0];

/// A tag as in a frame: its TPID, then priority and VLAN ID.
pub(crate) type Tag = [u8; TAG];

/// The tag of a frame, from the kernel's information.
pub(crate) fn tag(status: u32, tci: u16, tpid: u16) -> Option<Tag> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid =
        if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { tpid.to_be_bytes() } else { VLAN };
    let ([a, b], [c, d]) = (tpid, tci.to_be_bytes());
    Some([a, b, c, d])
}

/// The bytes of a whole frame at the position of its outer tag, if they are one.
pub(crate) fn first_tag(frame: &[u8]) -> Option<Tag> {
    frame.get(ADDRESSES..ADDRESSES + TAG)?.try_into().ok()
}

/// Moves the addresses of a frame that begins at `buffer[TAG]` four bytes to the front and writes
/// the tag after them, so that the frame begins at `buffer[0]`.
pub(crate) fn put_tag(buffer: &mut [u8], tag: Tag) {
    if buffer.len() >= TAG + ADDRESSES {
        buffer.copy_within(TAG..TAG + ADDRESSES, 0);
        buffer[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag);
    }
}

/// Copies a frame into `room`, with its tag after the addresses; returns the bytes written. None if
/// it does not fit, or is too short to have addresses.
pub(crate) fn copy_tagged(frame: &[u8], tag: Option<Tag>, room: &mut [u8]) -> Option<usize> {
    let Some(tag) = tag else {
        room.get_mut(..frame.len())?.copy_from_slice(frame);
        return Some(frame.len());
    };
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    let length = frame.len() + TAG;
    let room = room.get_mut(..length)?;
    room[..ADDRESSES].copy_from_slice(addresses);
    room[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag);
    room[ADDRESSES + TAG..].copy_from_slice(rest);
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_are_what_the_kernel_says() {
        assert_eq!(tag(libc::TP_STATUS_USER, 7, 0x88a8), None);
        assert_eq!(tag(libc::TP_STATUS_VLAN_VALID, 0x2007, 0), Some([0x81, 0, 0x20, 7]));
        let both = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        assert_eq!(tag(both, 7, 0x88a8), Some([0x88, 0xa8, 0, 7]));
    }

    proptest! {
        #[test]
        fn both_ways_of_tagging_agree(
            frame in prop::collection::vec(any::<u8>(), 0..200), tag: [u8; 4], room in 0usize..220,
        ) {
            let mut copied = vec![0; room];
            let length = copy_tagged(&frame, Some(tag), &mut copied);
            prop_assert_eq!(length.is_some(), frame.len() >= 12 && frame.len() + 4 <= room);
            if let Some(length) = length {
                let mut moved = [&[0; 4][..], &frame].concat();
                put_tag(&mut moved, tag);
                prop_assert_eq!(&copied[..length], &moved[..]);
                prop_assert_eq!(&moved[12..16], &tag[..]);
            }
            let mut copied = vec![0; room];
            let plain = copy_tagged(&frame, None, &mut copied);
            prop_assert_eq!(plain, (frame.len() <= room).then_some(frame.len()));
            prop_assert!(plain.is_none() || copied[..frame.len()] == frame[..]);
        }
    }
}
