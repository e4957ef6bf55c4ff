// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's telemetry socket, guarded: its own handlers crash on unexpected parameters.
//!
//! `crates/telemetry/src/arguments.rs` decides which requests pass. This module provides what it
//! needs from this process: the address of DPDK's socket, the program's own commands, and the lock
//! of ports, which DPDK's handlers do not take.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ::telemetry::{Program, guard};

use crate::lcore::{self, Lcore};
use crate::{port, sockets, telemetry};

/// DPDK's name for its socket; a number is appended if another process uses the name.
const SOCKET: &str = "dpdk_telemetry.v2";
/// And for the one of the interface before, which nothing here examines.
const OLD_SOCKET: &str = "telemetry";

/// How long DPDK's own commands wait for ports that are being changed. After that the answer is
/// null.
const PATIENCE: Duration = Duration::from_secs(3);
/// For this long after the program's start, or after a port was created, the program may still be
/// about to set up queues. Later, requests for statistics do not wait for a port without queues:
/// otherwise every request would wait for a port that the program never sets up.
const BEGINNING: Duration = Duration::from_secs(5);
/// How long the lock is left to other threads while a port gets its queues.
const PAUSE: Duration = Duration::from_millis(2);

/// Guards this process's telemetry socket in EAL's directory, where there is one. `spare` are the CPUs of threads that are no
/// lcores.
pub(crate) fn guard_telemetry(directory: &Path, spare: &[usize]) -> io::Result<()> {
    for socket in sockets::own(directory) {
        let name = socket.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == OLD_SOCKET {
            std::fs::remove_file(&socket)?;
        } else if name.starts_with(SOCKET) {
            guard(&socket, spare, Guarded::new()).inspect_err(|_| {
                // No telemetry is better than one through which any user can end the program.
                let _ = std::fs::remove_file(&socket);
            })?;
        }
    }
    Ok(())
}

/// The CPUs on which no lcore runs, where DPDK has its own threads for telemetry too; those of the main lcore, if there
/// are no others. `allowed` are the CPUs that the process could use before EAL pinned this thread.
pub(crate) fn spare_cpus(allowed: &[usize]) -> Vec<usize> {
    let used: Vec<usize> = lcore::all().into_iter().flat_map(Lcore::cpus).collect();
    let spare: Vec<usize> = allowed.iter().copied().filter(|cpu| !used.contains(cpu)).collect();
    if spare.is_empty() { lcore::main().cpus() } else { spare }
}

struct Guarded {
    since: Instant,
}

impl Guarded {
    fn new() -> Self {
        Self { since: Instant::now() }
    }

    /// Returns true if the port may get its queues soon.
    fn is_beginning(&self, port: u16) -> bool {
        self.since.elapsed() < BEGINNING || port::began_within(port, BEGINNING)
    }
}

impl Program for Guarded {
    fn answers(&self, command: &str) -> bool {
        telemetry::is_registered(command)
    }

    fn undisturbed(&self, counted: Option<u16>, question: &mut dyn FnMut()) {
        let deadline = Instant::now() + PATIENCE;
        // A port may wait for its other end, however long: the program's own commands are answered meanwhile.
        while let Some(alone) =
            port::lock_within(deadline.saturating_duration_since(Instant::now()))
        {
            if counted.is_none_or(port::may_be_counted) {
                return question();
            }
            drop(alone);
            if Instant::now() >= deadline || !counted.is_some_and(|port| self.is_beginning(port)) {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}
