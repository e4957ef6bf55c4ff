// SPDX-License-Identifier: BSD-3-Clause
//! The second half of `af-xdp-fwd`'s command line: l2fwd's options and those of AF_XDP.

use std::ffi::OsStr;

use forwarders_common::getopt::{Opt, valued};
use forwarders_common::l2fwd;
use forwarders_common::options::{CommandLine, OptionsError};

use super::socket::Copying;
use crate::options::{all, idle, mode, one_in, one_of};
use crate::xdp::Mode;

const USAGE: &str = "\
af-xdp-fwd [-l CPUS] [--file-prefix NAME] --vdev net_af_xdp0,iface=IF[,queue_count=N][,...] ... -- -p PORTMASK [options]
  -p PORTMASK: hexadecimal bitmask of ports to configure
  -P : Enable promiscuous mode
  -q NQ: number of queue (=ports) per lcore (default is 1)
  -T PERIOD: statistics will be refreshed each PERIOD seconds (0 to disable, 10 default, 86399 maximum)
  --[no-]mac-updating: Enable or disable MAC addresses updating (enabled by default)
      When enabled:
       - The source MAC address is replaced by the TX port MAC address
       - The destination MAC address is replaced by 02:00:00:00:00:TX_PORT_ID
  --portmap=(A,B)[,(C,D)..]: Configure forwarding port pair mapping
      Default: alternate port pairs
  --json-stats FILE: write statistics to FILE as JSON, each PERIOD seconds (-T) and at the end
  --copy auto|copy|zero: whether the kernel copies frames; auto takes what the driver can (default auto)
  --mode native|generic: where the program runs that gives frames to sockets, in the driver or in the kernel's stack
      Default: native, or generic where the driver cannot; which one is said at start
  --spans N: measure in one of N bursts how long frames are inside (default 0: in none)
  --idle wait|spin: sleep until frames come, or ask for them all the time (default wait)
settings of a device, as DPDK's net_af_xdp has them:
  start_queue=N, queue_count=N: queues of the interface, 0 and 1 without; force_copy=0|1: as --copy copy;
  busy_budget=N: the kernel's polling is done by our calls, N frames at most in each (default 0: by the kernel itself)
";

const OWN: [Opt; 4] = [valued("copy"), valued("mode"), valued("idle"), valued("spans")];
const OPTIONS: [Opt; OWN.len() + l2fwd::OPTIONS.len()] = all(&OWN);

/// The options of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The options of l2fwd.
    pub l2fwd: l2fwd::Options,
    /// Whether the kernel copies frames.
    pub copying: Copying,
    /// The mode of the program that passes frames to sockets; none: native if possible.
    pub mode: Option<Mode>,
    /// True if lcores poll all the time instead of sleeping.
    pub spin: bool,
    /// The time of frames inside is measured for one burst in this many; 0: for none.
    pub spans: u32,
}

impl Default for Options {
    fn default() -> Self {
        let l2fwd = l2fwd::Options::default();
        Self { l2fwd, copying: Copying::Either, mode: None, spin: false, spans: 0 }
    }
}

impl CommandLine for Options {
    const USAGE: &'static str = USAGE;
    const OPTIONS: &'static [Opt] = &OPTIONS;

    fn set(&mut self, option: &'static str, value: &OsStr) -> Result<(), OptionsError> {
        match option {
            "copy" => {
                let known = [
                    ("auto", Copying::Either),
                    ("copy", Copying::Copy),
                    ("zero", Copying::ZeroCopy),
                ];
                self.copying = one_of("--copy", "auto, copy or zero", &known, value)?;
            }
            "mode" => self.mode = Some(mode(value)?),
            "idle" => self.spin = idle(value)?,
            "spans" => self.spans = one_in("--spans", value)?,
            _ => self.l2fwd.set(option, value)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(line.split_whitespace())
    }

    #[test]
    fn options_are_read_and_mistakes_named() {
        assert_eq!(parse("").unwrap(), Options::default());
        let read = parse("-p 3 --copy zero --mode=generic --idle spin").unwrap();
        assert_eq!((read.copying, read.mode), (Copying::ZeroCopy, Some(Mode::Generic)));
        assert!(read.spin);
        for (line, option) in
            [("--copy no", "--copy"), ("--mode x", "--mode"), ("--spans x", "--spans")]
        {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(option), "{line}: {error}");
        }
    }
}
