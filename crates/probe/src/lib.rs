// SPDX-License-Identifier: BSD-3-Clause
//! What any DPDK program's polling cores do, without touching the program.
//!
//! A plugin for EAL's `-d` option: `l2fwd -d .../liblinerate_probe.so -l 1 ... -- -p 3`. It adds receive
//! and send callbacks to every queue of every port and answers DPDK telemetry:
//! - `/linerate/polling`: polls, empty polls, histogram of bursts, busy and total cycles of each (lcore,
//!   port, RX queue);
//! - `/linerate/latency`: cycles from a packet's reception to its sending, for each (port, TX queue), of
//!   one received burst in N;
//! - `/linerate/clock`: rate of the TSC and cost of reading it;
//! - `/linerate/probe`: the probe's own state; `,one_in=N` and `,polling=on` or `off` change it.
//!
//! The first three are also under `/linerate/probe/...`, for programs that answer the plain names
//! themselves.
//!
//! Lifecycle: EAL loads the plugin while it starts; the constructor finds DPDK's functions in the program,
//! registers the commands and starts a thread that looks for ports and queues until the process ends.
//! The plugin is never unloaded. Threading: the program's lcores run the callbacks, which write counters
//! with one writer each; telemetry's threads read them. Units are packets and TSC cycles, since start.

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

/// Says something about the probe where the program's user looks. Not by `eprintln!`, which panics, and so
/// ends the program, when nobody reads it any more.
pub(crate) fn say(message: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "linerate probe: {message}");
}

/// Why the probe does nothing in this program.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Settings(#[from] settings::SettingsError),
    #[error(transparent)]
    Dpdk(#[from] dpdk::MissingError),
    #[error("{0}")]
    Telemetry(#[from] telemetry::RegisterError),
    #[error("no thread that looks for ports: {0}")]
    Thread(#[from] std::io::Error),
}

/// What the dynamic linker calls when EAL has loaded the plugin.
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
        // Whoever asked for a measurement is not served by a program that runs without it.
        if settings::required() {
            exit(1);
        }
    }
}

/// Whether another file of the probe is loaded: two would take each other's stamps. (One file is loaded
/// once, however often it is asked for.)
fn is_second() -> bool {
    // What cannot be read does not speak against it.
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
