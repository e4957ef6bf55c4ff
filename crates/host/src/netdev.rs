// SPDX-License-Identifier: BSD-3-Clause
//! An interface's XDP features, and which of its queues have AF_XDP sockets, queried over the
//! generic netlink family `netdev` (kernel 6.3 and later).
//! The numbers are those of `linux/genetlink.h` and `linux/netdev.h`.

use std::io;

use rustix::io::Errno;
use rustix::net::netlink::GENERIC;

use crate::netlink::{Attributes, ask, u16_at};

/// The family that looks up other families by name.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_CMD_QUEUE_GET: u8 = 10;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_A_QUEUE_ID: u16 = 1;
const NETDEV_A_QUEUE_IFINDEX: u16 = 2;
const NETDEV_A_QUEUE_TYPE: u16 = 3;
const NETDEV_A_QUEUE_XSK: u16 = 7;
const NETDEV_QUEUE_TYPE_RX: u32 = 0;
/// Native XDP with the usual actions.
const NETDEV_XDP_ACT_BASIC: u64 = 1 << 0;
const NETDEV_XDP_ACT_XSK_ZEROCOPY: u64 = 1 << 3;
/// Length of `struct genlmsghdr`: command, version, reserved.
const HEAD: usize = 4;

/// Returns true if the interface's driver supports zero-copy AF_XDP; none if the kernel has no such
/// family.
pub fn has_zero_copy(index: u32) -> io::Result<Option<bool>> {
    Ok(features(index)?.map(|features| features & NETDEV_XDP_ACT_XSK_ZEROCOPY != 0))
}

/// Returns true if the interface's driver supports native XDP; none if the kernel has no such
/// family.
pub fn has_native_xdp(index: u32) -> io::Result<Option<bool>> {
    Ok(features(index)?.map(|features| features & NETDEV_XDP_ACT_BASIC != 0))
}

/// Returns true if a receive queue of the interface belongs to an AF_XDP socket, or to a closed one
/// whose queue the kernel has not released yet. Also `false` if the kernel does not report it
/// (before 6.15).
///
/// # Errors
/// The kernel's: there is no such queue, or it has no information about queues (before 6.7).
pub fn queue_has_af_xdp(index: u32, queue: u32) -> io::Result<bool> {
    let Some(family) = family()? else { return Ok(false) };
    let answer = question(
        family,
        NETDEV_CMD_QUEUE_GET,
        &[
            (NETDEV_A_QUEUE_IFINDEX, &index.to_ne_bytes()),
            (NETDEV_A_QUEUE_TYPE, &NETDEV_QUEUE_TYPE_RX.to_ne_bytes()),
            (NETDEV_A_QUEUE_ID, &queue.to_ne_bytes()),
        ],
    )?;
    Ok(value(&answer, NETDEV_A_QUEUE_XSK).is_some())
}

fn features(index: u32) -> io::Result<Option<u64>> {
    let Some(family) = family()? else { return Ok(None) };
    let answer =
        question(family, NETDEV_CMD_DEV_GET, &[(NETDEV_A_DEV_IFINDEX, &index.to_ne_bytes())])?;
    let features = value(&answer, NETDEV_A_DEV_XDP_FEATURES);
    Ok(features.and_then(|value| value.try_into().ok()).map(u64::from_ne_bytes))
}

/// The number of the family; none if the kernel has no such family.
fn family() -> io::Result<Option<u16>> {
    let no_family = |error: &io::Error| error.raw_os_error() == Some(Errno::NOENT.raw_os_error());
    match question(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &[(CTRL_ATTR_FAMILY_NAME, b"netdev\0")]) {
        Ok(answer) => Ok(value(&answer, CTRL_ATTR_FAMILY_ID).and_then(|value| u16_at(value, 0))),
        Err(error) if no_family(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn question(family: u16, command: u8, attributes: &[(u16, &[u8])]) -> io::Result<Vec<u8>> {
    let head: [u8; HEAD] = [command, 1, 0, 0];
    ask(Some(GENERIC), family, &head, attributes).map(|(_, answer)| answer)
}

fn value(answer: &[u8], kind: u16) -> Option<&[u8]> {
    Attributes(answer.get(HEAD..)?).find(|(found, _)| *found == kind).map(|(_, value)| value)
}
