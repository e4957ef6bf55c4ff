// SPDX-License-Identifier: BSD-3-Clause
//! The rings that net_af_packet shares with the kernel: slots as long as the longest frame.
//!
//! The driver has a ring for each direction of a queue, of slots of `framesz` bytes in blocks of `blocksz`, which must be
//! whole pages and whole slots. The kernel cuts longer frames off without a word. The driver takes no MTU above 1500 and
//! needs none: it sends what fits in a slot, and the kernel compares that with the interface's MTU. The two rings of a queue
//! take 2 MiB of the kernel's memory with the driver's slots, and 10 MiB with those for the longest frames.

use packet::FCS_LEN;

/// The driver's own `framesz`.
const SLOT: usize = 2048;
/// Bytes in a received slot before the frame: TPACKET_V2's header and the address, then Ethernet's header so that IP is
/// aligned (`tpacket_rcv` in the kernel).
const BEFORE: usize = 66;
/// Bytes of a slot that the driver leaves out when it compares slots with mbufs: the slot's header, without the address in it.
const UNCOUNTED: usize = 32;
/// A page. Blocks are multiples of it.
const PAGE: usize = 4096;

/// How many slots a block has, for frames of so many bytes, FCS included. A slot is a multiple of a page divided by this,
/// so that a block is whole pages. Mbufs must be as long as slots. AF_XDP uses the same pools, and takes only mbufs that fit in
/// a page: slots of frames that do are rounded up by less.
fn in_block(max_frame: usize) -> usize {
    if max_frame < PAGE { 32 } else { 4 }
}

/// Bytes of a slot for frames of so many bytes, FCS included.
fn slot(max_frame: usize) -> usize {
    match max_frame - FCS_LEN + BEFORE {
        len if len <= SLOT => SLOT,
        len => len.next_multiple_of(PAGE / in_block(max_frame)),
    }
}

/// Additional device arguments for frames of up to so many bytes.
pub fn arguments(max_frame: usize) -> String {
    match slot(max_frame) {
        SLOT => String::new(),
        slot => format!(",framesz={slot},blocksz={}", in_block(max_frame) * slot),
    }
}

/// Bytes that an mbuf must have for a frame; the driver refuses smaller ones.
pub fn mbuf_room(max_frame: usize) -> usize {
    max_frame.max(slot(max_frame) - UNCOUNTED)
}

/// Whether a device with arguments of the user's own takes frames of up to so many bytes.
///
/// # Errors
/// What to give it.
pub fn check(arguments: &str, max_frame: usize) -> Result<(), String> {
    let given = arguments.split(',').rev().find_map(|argument| argument.strip_prefix("framesz="));
    let slots = given.and_then(|bytes| bytes.parse().ok()).unwrap_or(SLOT);
    let most = (slots + FCS_LEN).saturating_sub(BEFORE);
    if max_frame <= most {
        return Ok(());
    }
    let (slot, wanted) = (slot(max_frame), self::arguments(max_frame));
    Err(format!(
        "net_af_packet with framesz={slots} takes frames of at most {most} bytes, and --max-frame is {max_frame}: add \
         \"{wanted}\" (or another framesz of at least {slot}), or use af_packet:INTERFACE, which chooses by itself"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_the_longest_frame() {
        assert_eq!(arguments(1518), "");
        assert_eq!(arguments(1986), "");
        assert_eq!(arguments(1987), ",framesz=2176,blocksz=69632");
        assert_eq!(arguments(3560), ",framesz=3712,blocksz=118784");
        assert_eq!(arguments(9018), ",framesz=9216,blocksz=36864");
        assert_eq!(arguments(9216), ",framesz=10240,blocksz=40960");
        assert_eq!([64, 1518, 3560, 9018].map(mbuf_room), [2016, 2016, 3680, 9184]);
        for max_frame in 64..=9216 {
            let slot = slot(max_frame);
            assert!(slot >= max_frame - FCS_LEN + BEFORE);
            assert_eq!((slot * in_block(max_frame)) % PAGE, 0);
            // Usual mbufs have 2048 bytes, and those for AF_XDP 256 beside the frame.
            assert!(max_frame > 3456 || mbuf_room(max_frame) <= (max_frame + 256).max(2048));
            let own = format!("net_af_packet0,iface=a{}", arguments(max_frame));
            assert_eq!(check(&own, max_frame), Ok(()));
        }
    }

    #[test]
    fn devices_of_the_users_own_are_told_what_they_lack() {
        let error = check("net_af_packet0,iface=a", 9018).unwrap_err();
        assert!(error.contains("framesz=2048 takes frames of at most 1986 bytes"), "{error}");
        assert!(error.contains("add \",framesz=9216,blocksz=36864\""), "{error}");
        assert_eq!(check("net_af_packet0,iface=a", 1986), Ok(()));
        assert_eq!(check("net_af_packet0,framesz=16384,blocksz=16384", 9216), Ok(()));
        assert!(check("net_af_packet0,framesz=16384,framesz=4096", 9216).is_err());
    }
}
