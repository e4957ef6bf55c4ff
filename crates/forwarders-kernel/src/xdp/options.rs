// SPDX-License-Identifier: BSD-3-Clause
//! The second half of `xdp-fwd`'s command line: l2fwd's options and those of XDP.

use std::ffi::OsStr;

use forwarders_common::getopt::{Opt, flag, valued};
use forwarders_common::l2fwd;
use forwarders_common::options::{CommandLine, OptionsError};

use super::Mode;
use crate::options::{all, mode, one_of};

const USAGE: &str = "\
xdp-fwd [--file-prefix NAME] --vdev net_xdp0,iface=IF ... -- -p PORTMASK [options]
  -p PORTMASK: hexadecimal bitmask of ports to configure
  -T PERIOD: statistics will be refreshed each PERIOD seconds (0 to disable, 10 default, 86399 maximum)
  --[no-]mac-updating: Enable or disable MAC addresses updating (enabled by default)
      When enabled:
       - The source MAC address is replaced by the TX port MAC address
       - The destination MAC address is replaced by 02:00:00:00:00:TX_PORT_ID
  --portmap=(A,B)[,(C,D)..]: Configure forwarding port pair mapping
      Default: alternate port pairs
  --json-stats FILE: write statistics to FILE as JSON, each PERIOD seconds (-T) and at the end
  --action redirect|tx|fib|pass: to the port's partner; back out of the port; between the ports as the kernel would
      route it, by its routes and neighbours, which set the addresses then (the rest goes to the kernel; netfilter's
      rules are not asked); or to the kernel's stack (default redirect)
  --mode native|generic: in the driver, or in the kernel's stack, for any driver
      Default: native, or generic where the driver cannot; which one is said at start
  --shared: beside the interface's other XDP programs, by libxdp's dispatcher; the action stays then
the telemetry command /linerate/xdp/replace,ACTION changes the action between two frames
";

const OWN: [Opt; 3] = [valued("action"), valued("mode"), flag("shared")];
const OPTIONS: [Opt; OWN.len() + l2fwd::OPTIONS.len()] = all(&OWN);

/// What a program does with a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// It is sent on the port's partner.
    Redirect,
    /// It is sent back on the port that it arrived on.
    Tx,
    /// It is routed between the ports.
    Fib,
    /// It is passed to the kernel's stack.
    Pass,
}

const ACTIONS: [(&str, Action); 4] = [
    ("redirect", Action::Redirect),
    ("tx", Action::Tx),
    ("fib", Action::Fib),
    ("pass", Action::Pass),
];

impl Action {
    /// The action with that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        ACTIONS.iter().find(|(known, _)| *known == name).map(|(_, action)| *action)
    }

    /// Its name for `--action`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Redirect => "redirect",
            Self::Tx => "tx",
            Self::Fib => "fib",
            Self::Pass => "pass",
        }
    }

    /// Its program in `bpf/l2fwd.bpf.c`.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Redirect => "linerate_redirect",
            Self::Tx => "linerate_tx",
            Self::Fib => "linerate_fib",
            Self::Pass => "linerate_pass",
        }
    }
}

/// The options of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The options of l2fwd. `-q` is accepted and changes nothing: the kernel chooses CPUs.
    pub l2fwd: l2fwd::Options,
    /// What is done with frames.
    pub action: Action,
    /// The mode of the programs; none: native if possible.
    pub mode: Option<Mode>,
    /// True if other programs may run on the same interfaces.
    pub shared: bool,
}

impl Default for Options {
    fn default() -> Self {
        let l2fwd = l2fwd::Options::default();
        Self { l2fwd, action: Action::Redirect, mode: None, shared: false }
    }
}

impl CommandLine for Options {
    const USAGE: &'static str = USAGE;
    const OPTIONS: &'static [Opt] = &OPTIONS;

    fn set(&mut self, option: &'static str, value: &OsStr) -> Result<(), OptionsError> {
        match option {
            "action" => {
                self.action = one_of("--action", "redirect, tx, fib or pass", &ACTIONS, value)?;
            }
            "mode" => self.mode = Some(mode(value)?),
            "shared" => self.shared = true,
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
        assert!(parse("--shared").unwrap().shared);
        let read = parse("-p 3 --action fib --mode=generic -T 0").unwrap();
        assert_eq!((read.action, read.mode), (Action::Fib, Some(Mode::Generic)));
        assert_eq!((read.l2fwd.port_mask, read.l2fwd.period), (3, 0));
        for (line, option) in
            [("--action drop", "--action"), ("--mode x", "--mode"), ("-T x", "-T")]
        {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(option), "{line}: {error}");
        }
        for (name, action) in ACTIONS {
            assert_eq!((Action::named(name), action.name()), (Some(action), name));
        }
    }
}
