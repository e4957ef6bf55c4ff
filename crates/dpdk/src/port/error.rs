// SPDX-License-Identifier: BSD-3-Clause
//! Errors of ports.

use super::arguments::VdevError;
use super::id::PortId;
use super::offloads::{RxOffloads, TxOffloads};
use super::rss::RssHashTypes;
use crate::errno::Errno;

/// Why an operation on a port failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// No such port.
    #[error("there is no port {0}; check the EAL options (--vdev, -a) and the port mask")]
    Absent(PortId),
    /// A `Port` for it exists already.
    #[error("port {0} is taken: each port is handed out once")]
    Taken(PortId),
    /// Another port, such as a bond, or a C plugin owns it (`rte_eth_dev_owner_set`).
    #[error("port {0} belongs to another port or plugin; use its owner")]
    Owned(PortId),
    /// More queues than the driver supports.
    #[error("port {port}: {asked} {direction} queues requested, but the driver supports {max}")]
    TooManyQueues {
        /// The port.
        port: PortId,
        /// `RX` or `TX`.
        direction: &'static str,
        /// Queues requested.
        asked: usize,
        /// Queues that the driver supports.
        max: u16,
    },
    /// A required RX offload that the driver does not support.
    #[error(
        "port {port}: required RX offloads not supported by the driver: {missing}; supported: {has}"
    )]
    RxOffloads {
        /// The port.
        port: PortId,
        /// The offloads that are missing.
        missing: RxOffloads,
        /// The offloads that the driver supports.
        has: RxOffloads,
    },
    /// A required TX offload that the driver does not support.
    #[error(
        "port {port}: required TX offloads not supported by the driver: {missing}; supported: {has}"
    )]
    TxOffloads {
        /// The port.
        port: PortId,
        /// The offloads that are missing.
        missing: TxOffloads,
        /// The offloads that the driver supports.
        has: TxOffloads,
    },
    /// Hash types that the driver does not support.
    #[error("port {port}: the driver does not hash by {missing}; supported: {has}")]
    HashTypes {
        /// The port.
        port: PortId,
        /// The hash types that are missing.
        missing: RssHashTypes,
        /// The hash types that the driver supports.
        has: RssHashTypes,
    },
    /// An RSS table names a queue that the port is not configured with.
    #[error("port {port}: the RSS table names RX queue {queue}, the port has {queues} (from 0)")]
    RetaQueue {
        /// The port.
        port: PortId,
        /// The queue.
        queue: u16,
        /// Receive queues of the port.
        queues: u16,
    },
    /// An RSS table of another length than the device's.
    #[error("port {port}: an RSS table of {given} entries; give it {takes} (0: it has no table)")]
    RetaSize {
        /// The port.
        port: PortId,
        /// Entries that were given.
        given: usize,
        /// Entries that the device has.
        takes: u16,
    },
    /// An RSS key of another length than the device's.
    #[error("port {port}: an RSS key of {given} bytes; give it {takes}")]
    KeySize {
        /// The port.
        port: PortId,
        /// Bytes that were given.
        given: usize,
        /// Bytes that the device takes.
        takes: u8,
    },
    /// A VLAN id of more than 12 bits.
    #[error("port {port}: invalid VLAN ID {vlan}: must be 0 to 4095")]
    Vlan {
        /// The port.
        port: PortId,
        /// The id.
        vlan: u16,
    },
    /// A typed device's name or argument that EAL would misread.
    #[error(transparent)]
    Vdev(#[from] VdevError),
    /// A configuration without queues: DPDK would create queues of its own and never set them up.
    #[error("port {0}: give it at least one RX or TX queue")]
    NoQueues(PortId),
    /// Statistics of a port that was not configured completely: its driver would read queues that
    /// do not exist.
    #[error("port {0} has no queues: configure it before reading its statistics")]
    NotConfigured(PortId),
    /// Device arguments that safe code must not give.
    #[error("device {0:?} is refused: {1}")]
    Unsafe(String, &'static str),
    /// The device was removed, but its port still exists.
    #[error("port {0}: its driver removed the device but left the port")]
    Remains(PortId),
    /// A DPDK call failed.
    #[error("port {port}: {call}: {errno}{}", hint(call, *errno))]
    Call {
        /// The port.
        port: PortId,
        /// The function of DPDK.
        call: &'static str,
        /// Its answer.
        errno: Errno,
    },
    /// Device arguments hold a NUL byte.
    #[error("device arguments {0:?} hold a NUL byte")]
    Nul(String),
    /// The device could not be attached.
    #[error("device {arguments:?} cannot be attached: {errno}; the driver's message is above")]
    Attach {
        /// The device's arguments.
        arguments: String,
        /// DPDK's answer.
        errno: Errno,
    },
    /// No Ethernet port came with the device.
    #[error("device {0:?} added no port: it is not a network interface, or it is already attached")]
    NoPort(String),
}

/// Returns a hint about a failed call, if DPDK's error number does not say what to do.
fn hint(call: &str, errno: Errno) -> &'static str {
    match (call, errno) {
        ("rte_eth_dev_vlan_filter", Errno::ENOSYS) => {
            "; configure the port with RxOffloads::VLAN_FILTER, or switch it on by set_vlan_modes"
        }
        ("rte_eth_dev_set_mtu", Errno::EBUSY) => "; stop the port first",
        ("rte_eth_dev_set_mtu", Errno::EINVAL) => "; Port::info has min_mtu and max_mtu",
        (
            "rte_eth_dev_configure"
            | "rte_eth_rx_queue_setup"
            | "rte_eth_tx_queue_setup"
            | "rte_eth_dev_start",
            Errno::EINVAL,
        ) => "; DPDK's message above says of what",
        _ => "",
    }
}

/// Turns DPDK's `-errno` into an error that names the port and the call.
pub(super) fn check(port: PortId, call: &'static str, code: i32) -> Result<i32, PortError> {
    Errno::check(code).map_err(|errno| PortError::Call { port, call, errno })
}

/// The error for an unsafe operation on a port, with the reason. The caller holds the lock of
/// ports.
pub(super) fn refused(port: PortId, why: &'static str) -> PortError {
    PortError::Unsafe(port.name_locked().unwrap_or_default(), why)
}

#[cfg(test)]
mod tests {
    use super::{PortError, check};
    use crate::PortId;

    #[test]
    fn what_the_number_does_not_tell_the_text_does() {
        let told = |call, code| check(PortId(3), call, code).map_err(|error| error.to_string());
        assert_eq!(
            told("rte_eth_dev_vlan_filter", -38),
            Err("port 3: rte_eth_dev_vlan_filter: Function not implemented (os error 38); configure \
                 the port with RxOffloads::VLAN_FILTER, or switch it on by set_vlan_modes"
                .to_owned())
        );
        assert_eq!(
            told("rte_eth_dev_start", -5),
            Err("port 3: rte_eth_dev_start: Input/output error (os error 5)".to_owned())
        );
        assert!(matches!(check(PortId(3), "", 7), Ok::<_, PortError>(7)));
    }
}
