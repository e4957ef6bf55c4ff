// SPDX-License-Identifier: BSD-3-Clause
//! The second half of the command line: l2fwd's options and those of packet sockets.

use std::ffi::OsStr;

use forwarders_common::getopt::{Opt, valued};
use forwarders_common::l2fwd;
use forwarders_common::options::{CommandLine, OptionsError};

use super::{Fanout, Io};
use crate::options::{all, idle, one_in, one_of};

const USAGE: &str = "\
af-packet-fwd [-l CPUS] [--file-prefix NAME] --vdev net_af_packet0,iface=IF[,qpairs=N][,...] ... -- -p PORTMASK [options]
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
  --io read-write|mmsg|mmap: one call a frame, one a burst, or rings shared with the kernel (default mmap)
  --fanout hash|lb|cpu: how the queues of a port (qpairs) share its frames (default hash)
  --spans N: measure in one of N bursts how long frames are inside (default 0: in none)
  --idle wait|spin: sleep until frames come, or ask for them all the time (default wait)
settings of a device, as DPDK's net_af_packet has them:
  qpairs=N: queues, 1 to 16; blocksz=BYTES, framecnt=N: of the receiving ring, for --io mmap;
  qdisc_bypass=0|1: whether frames go past the queueing discipline (default 1)
";

const OWN: [Opt; 4] = [valued("io"), valued("fanout"), valued("idle"), valued("spans")];
const OPTIONS: [Opt; OWN.len() + l2fwd::OPTIONS.len()] = all(&OWN);

/// The options of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The options of l2fwd. `--burst-forwarding` is accepted and changes nothing: every burst is
    /// sent as it was received.
    pub l2fwd: l2fwd::Options,
    /// How frames are received and sent.
    pub io: Io,
    /// How a port's frames are distributed to its queues.
    pub fanout: Fanout,
    /// True if lcores poll all the time instead of sleeping.
    pub spin: bool,
    /// The time of frames inside is measured for one burst in this many; 0: for none.
    pub spans: u32,
}

impl Default for Options {
    fn default() -> Self {
        let l2fwd = l2fwd::Options::default();
        Self { l2fwd, io: Io::Mmap, fanout: Fanout::Hash, spin: false, spans: 0 }
    }
}

impl CommandLine for Options {
    const USAGE: &'static str = USAGE;
    const OPTIONS: &'static [Opt] = &OPTIONS;

    fn set(&mut self, option: &'static str, value: &OsStr) -> Result<(), OptionsError> {
        match option {
            "io" => {
                let known = [("read-write", Io::ReadWrite), ("mmsg", Io::Mmsg), ("mmap", Io::Mmap)];
                self.io = one_of("--io", "read-write, mmsg or mmap", &known, value)?;
            }
            "fanout" => {
                let known = [("hash", Fanout::Hash), ("lb", Fanout::Lb), ("cpu", Fanout::Cpu)];
                self.fanout = one_of("--fanout", "hash, lb or cpu", &known, value)?;
            }
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
        let line = "-p 3 -q 2 --io=mmsg --fanout lb --idle spin --spans 64 --no-mac-updating";
        let read = parse(line).unwrap();
        assert_eq!(read.spans, 64);
        assert_eq!((read.io, read.fanout, read.spin), (Io::Mmsg, Fanout::Lb, true));
        assert_eq!((read.l2fwd.port_mask, read.l2fwd.ports_per_lcore), (3, 2));
        assert!(!read.l2fwd.mac_updating);
        for (line, option) in [
            ("--io x", "--io"),
            ("--fanout", "--fanout"),
            ("--idle=", "--idle"),
            ("--spans -1", "--spans"),
            ("--spans 2000000000", "--spans"),
            ("-p 0", "-p"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(option), "{line}: {error}");
        }
    }
}
