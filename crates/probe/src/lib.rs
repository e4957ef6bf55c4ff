// SPDX-License-Identifier: BSD-3-Clause
//! Measures how the polling cores of any DPDK program poll, without changing the program.
//!
//! A plugin for EAL's `-d` option: `l2fwd -d .../liblinerate_probe.so -l 1 ... -- -p 3`. It adds
//! receive and send callbacks to every queue of every port and answers DPDK telemetry:
//! - `/linerate/polling`: polls, empty polls, histogram of bursts, busy and total cycles of each
//!   (lcore, port, RX queue);
//! - `/linerate/latency`: cycles from a packet's reception to its sending, for each (port, TX
//!   queue), measured on one received burst in N;
//! - `/linerate/clock`: rate of the TSC and cost of reading it;
//! - `/linerate/probe`: the probe's own state; the parameters `one_in=N` and `polling=on` or `off`
//!   change it.
//!
//! The first three are also registered under `/linerate/probe/...`, for programs that answer the
//! plain names themselves.
//!
//! Lifecycle: EAL loads the plugin while it starts; the constructor finds DPDK's functions in the
//! program, registers the commands and starts a thread that looks for ports and queues until the
//! process ends. The plugin is never unloaded. Threads: the program's lcores run the callbacks,
//! which write counters with one writer each; telemetry threads read them. Units are packets and
//! TSC cycles, since the start.

mod answer;
mod attach;
mod callbacks;
mod cpus;
mod dpdk;
mod figures;
mod memory;
mod poller;
mod receive;
mod send;
mod settings;
mod signals;
mod spans;
mod stamp;
mod telemetry;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::exit;

use dpdk::Dpdk;
use settings::Settings;

/// Prints a message about the probe to standard error. Not by `eprintln!`, which panics, and so
/// ends the program, if nobody reads standard error any more.
pub(crate) fn say(message: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "linerate probe: {message}");
}

/// Why the probe does not work in this program.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Settings(#[from] settings::SettingsError),
    #[error(transparent)]
    Dpdk(#[from] dpdk::MissingError),
    #[error("{0}")]
    Telemetry(#[from] telemetry::RegisterError),
    #[error("cannot start the thread that looks for ports: {0}")]
    Thread(#[from] std::io::Error),
}

/// Called by the dynamic linker when EAL has loaded the plugin.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[cfg_attr(test, allow(dead_code))]
extern "C" fn start() {
    if is_second() {
        return say("this program has loaded the probe already; its second copy does nothing");
    }
    if let Err(error) = try_start() {
        say(error);
        // If measurements are required, the program must not run without them.
        if settings::required() {
            exit(1);
        }
    }
}

/// Returns true if another file of the probe is loaded: the two would remove each other's stamps.
/// (A file is loaded only once, however often it is requested.)
fn is_second() -> bool {
    // If the list cannot be read, no second file is assumed.
    count_probes(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default()) > 1
}

/// Files of the probe in `/proc/PID/maps`.
fn count_probes(maps: &str) -> usize {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let probes: BTreeSet<&str> = paths
        .filter(|path| {
            let name = path.rsplit('/').next().unwrap_or_default();
            name.starts_with("liblinerate_probe") && name.contains(".so")
        })
        .collect();
    probes.len()
}

fn try_start() -> Result<(), StartError> {
    let settings = Settings::from_environment()?;
    let dpdk = Dpdk::find()?;
    telemetry::register(dpdk)?;
    attach::begin(dpdk, settings)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_probe_are_counted_once_each() {
        let maps = "\
            7f00-7f01 r--p 00000000 fe:00 100    /a dir/liblinerate_probe.so\n\
            7f01-7f02 r-xp 00001000 fe:00 100    /a dir/liblinerate_probe.so\n\
            7f02-7f03 rw-p 00000000 00:00 0      [heap]\n\
            7f03-7f04 rw-p 00000000 00:00 0 \n\
            7f04-7f05 r--p 00000000 fe:00 101    /b/linerate_probe-0123\n";
        assert_eq!(count_probes(maps), 1);
        let other = "7f06-7f07 r--p 00000000 fe:00 102 /c/liblinerate_probe.so.1 (deleted)\n";
        assert_eq!(count_probes(&format!("{maps}{other}")), 2);
        assert_eq!(count_probes(""), 0);
    }
}
