// SPDX-License-Identifier: BSD-3-Clause
//! Captures by `dpdk-dumpcap` and `dpdk-pdump` on this process's ports (`rte_pdump_init`).
//!
//! These are secondary processes. They ask a DPDK thread of this process to add callbacks to
//! queues, which copy packets into a ring that the processes share, and to remove them later.
//! Polling goes on meanwhile: DPDK changes the callback lists under its lock and frees nothing, and
//! bursts read them here as they do in C.

use std::sync::Mutex;

use crate::eal::Eal;
use crate::errno::Errno;
use crate::mutex::locked;
use crate::sockets;

/// Why captures from outside are impossible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PdumpError {
    /// Without huge pages, other processes cannot map this one's memory.
    #[error("dpdk-dumpcap needs packet memory in files of hugetlbfs: start without --no-huge")]
    NoHugepages,
    /// Other processes cannot find this one.
    #[error("dpdk-dumpcap cannot reach this process: start without --in-memory and --no-shconf")]
    Alone,
    /// DPDK refused.
    #[error("rte_pdump_init: {0}; its message is above")]
    Refused(Errno),
}

/// True if it is on.
static ON: Mutex<bool> = Mutex::new(false);

impl Eal {
    /// Lets `dpdk-dumpcap` and `dpdk-pdump` capture on this process's ports (`rte_pdump_init`),
    /// from now until DPDK ends. It takes 4 MiB of DPDK's memory for counters, and costs nothing
    /// while nobody captures. Further calls do nothing.
    ///
    /// It is never switched off: `rte_pdump_uninit` would free the counters while threads poll
    /// queues that are being captured.
    ///
    /// # Errors
    /// See [`PdumpError`]. A program that works without it may go on.
    pub fn pdump(&self) -> Result<(), PdumpError> {
        let mut on = locked(&ON);
        if *on {
            return Ok(());
        }
        if !self.has_hugepages() {
            return Err(PdumpError::NoHugepages);
        }
        let reachable = sockets::own(&self.runtime_dir())
            .iter()
            .filter_map(|socket| socket.file_name())
            .any(|name| name.to_string_lossy().starts_with("mp_socket"));
        if !reachable {
            return Err(PdumpError::Alone);
        }
        // SAFETY: EAL runs, and this is the first call that may succeed. The counters that it makes live until
        // the process ends.
        if unsafe { dpdk_sys::rte_pdump_init() } != 0 {
            return Err(PdumpError::Refused(Errno::last()));
        }
        *on = true;
        Ok(())
    }
}
