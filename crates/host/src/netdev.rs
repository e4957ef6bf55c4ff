// SPDX-License-Identifier: BSD-3-Clause
//! What an interface can do for XDP, asked over the generic netlink family `netdev` (kernel 6.3 and later).
//! The numbers are those of `linux/genetlink.h` and `linux/netdev.h`.

use std::io;

use rustix::io::Errno;
use rustix::net::netlink::GENERIC;

use crate::netlink::{Attributes, ask, u16_at};

/// The family that finds others by their name.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
/// Programs run in the driver, with all that they usually answer.
const NETDEV_XDP_ACT_BASIC: u64 = 1 << 0;
const NETDEV_XDP_ACT_XSK_ZEROCOPY: u64 = 1 << 3;
/// Length of `struct genlmsghdr`: command, version, and nothing.
const HEAD: usize = 4;

/// Whether the driver of the interface gives frames to AF_XDP without a copy; none when the kernel has
/// no such family.
pub fn has_zero_copy(index: u32) -> io::Result<Option<bool>> {
    Ok(features(index)?.map(|features| features & NETDEV_XDP_ACT_XSK_ZEROCOPY != 0))
}

/// Whether XDP programs run in the driver of the interface; none when the kernel has no such family.
pub fn has_native_xdp(index: u32) -> io::Result<Option<bool>> {
    Ok(features(index)?.map(|features| features & NETDEV_XDP_ACT_BASIC != 0))
}

fn features(index: u32) -> io::Result<Option<u64>> {
    let no_family = |error: &io::Error| error.raw_os_error() == Some(Errno::NOENT.raw_os_error());
    let family =
        match question(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, (CTRL_ATTR_FAMILY_NAME, b"netdev\0")) {
            Ok(answer) => value(&answer, CTRL_ATTR_FAMILY_ID).and_then(|value| u16_at(value, 0)),
            Err(error) if no_family(&error) => None,
            Err(error) => return Err(error),
        };
    let Some(family) = family else { return Ok(None) };
    let answer =
        question(family, NETDEV_CMD_DEV_GET, (NETDEV_A_DEV_IFINDEX, &index.to_ne_bytes()))?;
    let features = value(&answer, NETDEV_A_DEV_XDP_FEATURES);
    Ok(features.and_then(|value| value.try_into().ok()).map(u64::from_ne_bytes))
}

fn question(family: u16, command: u8, attribute: (u16, &[u8])) -> io::Result<Vec<u8>> {
    let head: [u8; HEAD] = [command, 1, 0, 0];
    ask(Some(GENERIC), family, &head, &[attribute]).map(|(_, answer)| answer)
}

fn value(answer: &[u8], kind: u16) -> Option<&[u8]> {
    Attributes(answer.get(HEAD..)?).find(|(found, _)| *found == kind).map(|(_, value)| value)
}
