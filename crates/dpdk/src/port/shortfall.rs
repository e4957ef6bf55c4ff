// SPDX-License-Identifier: BSD-3-Clause
//! Requested features that a port does not have.

use super::id::PortId;
use super::offloads::{RxOffloads, TxOffloads};
use super::rss::RssHashTypes;
use crate::errno::Errno;

/// A requested feature that the driver does not support. The port works without it; the text
/// describes the request and the actual state, for the program to show to the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("port {port}: {lack}")]
pub struct Shortfall {
    /// The port.
    pub port: PortId,
    /// The missing feature.
    pub lack: Lack,
}

/// A feature that a port lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Lack {
    /// RX offloads.
    #[error("RX offloads not supported by the driver: {missing}; enabled: {given}")]
    RxOffloads {
        /// The requested offloads that are off.
        missing: RxOffloads,
        /// All offloads that are on.
        given: RxOffloads,
    },
    /// TX offloads.
    #[error("TX offloads not supported by the driver: {missing}; enabled: {given}")]
    TxOffloads {
        /// The requested offloads that are off.
        missing: TxOffloads,
        /// All offloads that are on.
        given: TxOffloads,
    },
    /// Link events.
    #[error(
        "link events were requested, but its driver does not report them: poll PortControl::link"
    )]
    LinkEvents,
    /// RSS altogether.
    #[error(
        "RSS over {queues} RX queues was requested, but the driver does not support RSS: the device chooses the queue of each frame"
    )]
    Rss {
        /// Receive queues.
        queues: u16,
    },
    /// Some of the hash types.
    #[error("RSS by {asked} was requested, but the driver hashes by {given}")]
    HashTypes {
        /// The requested hash types.
        asked: RssHashTypes,
        /// The supported part of them; empty if there is no RSS.
        given: RssHashTypes,
    },
    /// A key of this length.
    #[error(
        "an RSS key of {asked} bytes was given, but the driver needs {takes}: its own key is used"
    )]
    Key {
        /// Bytes that were given.
        asked: usize,
        /// Bytes that it needs.
        takes: u8,
    },
    /// A table of this length.
    #[error(
        "an RSS table of {asked} entries was given, but the device has {has}: they are repeated or cut"
    )]
    RetaSize {
        /// Entries that were given.
        asked: usize,
        /// Entries that it has.
        has: u16,
    },
    /// Setting the table at all.
    #[error("an RSS table was given, but the driver cannot set it: the device's own is used")]
    Reta,
    /// The key: the driver uses another than it was configured with, or could not be configured
    /// with one, and did not accept it when the port was started.
    #[error(
        "an RSS key was given, but rte_eth_dev_rss_hash_update failed ({errno}): the driver's own is used"
    )]
    KeyRefused {
        /// The driver's answer.
        errno: Errno,
    },
    /// The table: the driver did not accept it when the port was started.
    #[error(
        "an RSS table was given, but rte_eth_dev_rss_reta_update failed ({errno}): the driver's own is used"
    )]
    RetaRefused {
        /// The driver's answer.
        errno: Errno,
    },
}
