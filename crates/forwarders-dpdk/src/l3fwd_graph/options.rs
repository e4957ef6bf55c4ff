// SPDX-License-Identifier: BSD-3-Clause
//! The command line: that of the C example, with additions.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use forwarders_common::rules::Strictness;

use crate::getopt::{Opt, flag, valued};
use crate::options::{CommandLine, OptionsError, in_brackets, port_mask, strtoul, wrong};

/// Ports that a process can have (`RTE_MAX_ETHPORTS` of the distribution's DPDK).
const MAX_PORTS: u64 = 32;
/// As in C: entries of `--config`, and bytes of each.
const MAX_QUEUES: usize = 1024;
const MAX_QUEUE_TEXT: usize = 256;
const MAX_LCORE: u64 = 128;

const USAGE: &str = "\
l3fwd-graph [EAL options] -- -p PORTMASK [-P] [--config (port,queue,lcore)[,(port,queue,lcore)]]
    [--eth-dest=X,MM:MM:MM:MM:MM:MM] [--max-pkt-len PKTLEN] [--no-numa] [--per-port-pool]
    [--rule_ipv4 FILE] [--rule_ipv6 FILE] [--routes_ipv4 FILE] [--routes_ipv6 FILE] [--executor dpdk|fused]
    [--model rtc] [--drop-fragments | --acl-as-c] [--strict]
  -p PORTMASK: Hexadecimal bitmask of ports to configure
  -P : Enable promiscuous mode
  --config (port,queue,lcore): Rx queue configuration
      Default: queue 0 of each port, dealt out to the lcores but the main one
  --eth-dest=X,MM:MM:MM:MM:MM:MM: Ethernet destination for port X
      Default: 02:00:00:00:00:X
  --max-pkt-len PKTLEN: maximum packet length in decimal (64-9600)
  --no-numa: Disable numa awareness
  --per-port-pool: Use separate buffer pool per port
  --rule_ipv4 FILE, --rule_ipv6 FILE: rules of an access control list, as l3fwd has them
      Packets that match no rule are dropped. Without a file every packet of that family passes
  --routes_ipv4 FILE, --routes_ipv6 FILE: routes, as l3fwd --lookup=lpm has them
      Default: 198.18.X.0/24 and 2001:200:0:X::/64 to port X
  --executor dpdk|fused: what walks the graph, DPDK's librte_graph (default) or one function made of all nodes
  --model rtc: each lcore walks its own graph from end to end, the one model of this DPDK's librte_graph
  --drop-fragments: rules drop fragments that have no ports
      Default: they are judged by addresses and protocol
  --acl-as-c: rules read ports behind 20 bytes of IPv4 and 40 of IPv6, whatever is there, as l3fwd does
      Default: behind options and extension headers
  --strict: refuse files with what l3fwd reads in silence: words after the last field (such as TCP flags), a rule or
      network twice, a route to a port that is not enabled
      Default: read them, with a warning for each; TCP flags in ClassBench's form are checked
";

/// A receive queue and the lcore that polls it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Polled {
    /// The port.
    pub port: u16,
    /// Its queue.
    pub queue: u16,
    /// The lcore.
    pub lcore: u32,
}

/// What walks the graphs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Executor {
    /// DPDK's librte_graph.
    #[default]
    Dpdk,
    /// One function for all nodes.
    Fused,
}

/// Where rules look for the ports of a packet.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Behind options and extension headers. Fragments without ports are matched by addresses and
    /// protocol.
    #[default]
    Everywhere,
    /// The same, but fragments without ports match no rule.
    NoFragments,
    /// At fixed offsets, as in l3fwd.
    AsC,
}

/// The options of the command line.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Options {
    /// Enabled ports; 0 when none were named.
    pub port_mask: u32,
    /// True if ports are promiscuous.
    pub promiscuous: bool,
    /// Which lcore polls which queue; `None` if not given.
    pub queues: Option<Vec<Polled>>,
    /// The destination MAC address of frames sent on each port, where given.
    pub destinations: BTreeMap<u16, [u8; 6]>,
    /// Bytes of the longest frame with its FCS, if given.
    pub max_packet_len: Option<u16>,
    /// True if everything is allocated on NUMA node 0.
    pub no_numa: bool,
    /// True if each port has its own pool.
    pub per_port_pool: bool,
    /// Rules about packets of IPv4.
    pub rules_ipv4: Option<PathBuf>,
    /// Rules about packets of IPv6.
    pub rules_ipv6: Option<PathBuf>,
    /// Routes of IPv4.
    pub routes_ipv4: Option<PathBuf>,
    /// Routes of IPv6.
    pub routes_ipv6: Option<PathBuf>,
    /// What walks the graphs.
    pub executor: Executor,
    /// Where rules look for ports.
    pub reading: Reading,
    /// Whether what l3fwd silently accepts is an error.
    pub strictness: Strictness,
}

const OPTIONS: &[Opt] = &[
    valued("p"),
    flag("P"),
    valued("config"),
    valued("eth-dest"),
    valued("max-pkt-len"),
    flag("no-numa"),
    flag("per-port-pool"),
    valued("rule_ipv4"),
    valued("rule_ipv6"),
    valued("routes_ipv4"),
    valued("routes_ipv6"),
    valued("executor"),
    valued("model"),
    flag("drop-fragments"),
    flag("acl-as-c"),
    flag("strict"),
    flag("pcap-enable"),
    valued("pcap-num-cap"),
    valued("pcap-file-name"),
];

impl CommandLine for Options {
    const USAGE: &'static str = USAGE;
    const OPTIONS: &'static [Opt] = OPTIONS;

    fn set(&mut self, option: &'static str, value: &OsStr) -> Result<(), OptionsError> {
        match option {
            "p" => self.port_mask = port_mask(value)?,
            "P" => self.promiscuous = true,
            "config" => self.queues = Some(config(value)?),
            "eth-dest" => {
                let (port, address) = destination(value)?;
                self.destinations.insert(port, address);
            }
            "max-pkt-len" => self.max_packet_len = Some(max_packet_len(value)?),
            "no-numa" => self.no_numa = true,
            "per-port-pool" => self.per_port_pool = true,
            "rule_ipv4" => self.rules_ipv4 = Some(value.into()),
            "rule_ipv6" => self.rules_ipv6 = Some(value.into()),
            "routes_ipv4" => self.routes_ipv4 = Some(value.into()),
            "routes_ipv6" => self.routes_ipv6 = Some(value.into()),
            "executor" => self.executor = executor(value)?,
            "model" => model(value)?,
            "drop-fragments" => self.read_ports("--drop-fragments", Reading::NoFragments)?,
            "strict" => self.strictness = Strictness::Strict,
            "acl-as-c" => self.read_ports("--acl-as-c", Reading::AsC)?,
            pcap => {
                return Err(not_here(
                    &format!("--{pcap}"),
                    "this program cannot capture packets: use dpdk-dumpcap on its ports",
                ));
            }
        }
        Ok(())
    }
}

impl Options {
    fn read_ports(&mut self, option: &str, reading: Reading) -> Result<(), OptionsError> {
        if self.reading != Reading::default() && self.reading != reading {
            return Err(not_here(
                option,
                "--drop-fragments and --acl-as-c exclude each other: with --acl-as-c fragments are not detected",
            ));
        }
        self.reading = reading;
        Ok(())
    }
}

fn config(value: &OsStr) -> Result<Vec<Polled>, OptionsError> {
    let takes = "queues such as (0,0,1),(1,0,1): port, queue, lcore";
    queues(&value.to_string_lossy())
        .ok_or_else(|| wrong("Invalid config", "--config", takes, value))
}

/// Triples in brackets, parsed as leniently as in the C example: text between brackets is skipped,
/// and so is text after a number.
fn queues(text: &str) -> Option<Vec<Polled>> {
    let mut queues = Vec::new();
    for inner in in_brackets(text, MAX_QUEUE_TEXT)? {
        let mut fields = inner.splitn(3, ',').map(|field| strtoul(field, 0));
        let mut below = |limit: u64| match fields.next()?? {
            (number, _) if number < limit => Some(number),
            _ => None,
        };
        let port = below(MAX_PORTS)? as u16;
        let queue = below(1 << 16)? as u16;
        let lcore = below(MAX_LCORE)? as u32;
        if queues.len() == MAX_QUEUES {
            return None;
        }
        queues.push(Polled { port, queue, lcore });
    }
    (!queues.is_empty()).then_some(queues)
}

fn destination(value: &OsStr) -> Result<(u16, [u8; 6]), OptionsError> {
    let takes = "a port, 0 to 31, a comma and a MAC address such as 02:00:00:00:00:01";
    let parse = |text: &str| {
        let (port, address) = text.split_once(',')?;
        let (port @ 0..MAX_PORTS, "") = strtoul(port, 10)? else { return None };
        let mut bytes = address.split(':').map(|byte| {
            let digits =
                (1..=2).contains(&byte.len()) && byte.bytes().all(|c| c.is_ascii_hexdigit());
            digits.then(|| u8::from_str_radix(byte, 16).ok()).flatten()
        });
        let mut next = || bytes.next().flatten();
        let address = [next()?, next()?, next()?, next()?, next()?, next()?];
        bytes.next().is_none().then_some((port as u16, address))
    };
    parse(&value.to_string_lossy())
        .ok_or_else(|| wrong("Invalid eth-dest", "--eth-dest", takes, value))
}

fn max_packet_len(value: &OsStr) -> Result<u16, OptionsError> {
    match strtoul(&value.to_string_lossy(), 10) {
        Some((len @ 64..=9600, "")) => Ok(len as u16),
        _ => Err(wrong("Invalid max packet length", "--max-pkt-len", "64 to 9600", value)),
    }
}

fn executor(value: &OsStr) -> Result<Executor, OptionsError> {
    match value.to_str() {
        Some("dpdk") => Ok(Executor::Dpdk),
        Some("fused") => Ok(Executor::Fused),
        _ => Err(wrong("Invalid executor", "--executor", "dpdk or fused", value)),
    }
}

/// Run to completion (`rtc`) is how a graph is walked anyway.
fn model(value: &OsStr) -> Result<(), OptionsError> {
    match value.to_str() {
        Some("rtc") => Ok(()),
        Some("dispatch") => Err(not_here(
            "--model dispatch",
            "each lcore walks a graph of its own to completion (rtc)",
        )),
        _ => Err(wrong("Invalid model", "--model", "rtc", value)),
    }
}

/// The error for options of the C example in releases later than 22.11.
fn not_here(option: &str, reason: &str) -> OptionsError {
    OptionsError::Unsupported { option: option.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(line.split_whitespace())
    }

    #[test]
    fn every_option_is_read() {
        let options = parse(
            "-p 0x3 -P --config (0,0,1),(1,0x1,2) --eth-dest=1,2:00:0a:0B:00:ff --max-pkt-len 9600 \
             --no-numa --per-port-pool --rule_ipv4 a --rule_ipv6=b --routes_ipv4 c --routes_ipv6 d \
             --executor fused --drop-fragments --strict",
        );
        assert_eq!(
            options.unwrap(),
            Options {
                port_mask: 3,
                promiscuous: true,
                queues: Some(vec![
                    Polled { port: 0, queue: 0, lcore: 1 },
                    Polled { port: 1, queue: 1, lcore: 2 },
                ]),
                destinations: [(1, [2, 0, 10, 11, 0, 255])].into(),
                max_packet_len: Some(9600),
                no_numa: true,
                per_port_pool: true,
                rules_ipv4: Some("a".into()),
                rules_ipv6: Some("b".into()),
                routes_ipv4: Some("c".into()),
                routes_ipv6: Some("d".into()),
                executor: Executor::Fused,
                reading: Reading::NoFragments,
                strictness: Strictness::Strict,
            }
        );
        assert_eq!(parse("--executor dpdk").unwrap().executor, Executor::Dpdk);
        assert_eq!(parse("--model rtc").unwrap(), Options::default());
        assert_eq!(parse("--acl-as-c --acl-as-c").unwrap().reading, Reading::AsC);
    }

    #[test]
    fn mistakes_name_the_option() {
        for (line, option) in [
            ("-p 0", "-p"),
            ("--config (0,0", "--config"),
            ("--config (0,0)", "--config"),
            ("--config none", "--config"),
            ("--config (32,0,0)", "--config"),
            ("--config (0,0,128)", "--config"),
            ("--config (0,65536,1)", "--config"),
            ("--eth-dest 0", "--eth-dest"),
            ("--eth-dest 32,02:00:00:00:00:00", "--eth-dest"),
            ("--eth-dest 0,02:00:00:00:00", "--eth-dest"),
            ("--eth-dest 0,02:00:00:00:00:00:00", "--eth-dest"),
            ("--eth-dest 0,02:00:00:00:00:+1", "--eth-dest"),
            ("--max-pkt-len 63", "--max-pkt-len"),
            ("--max-pkt-len 9601", "--max-pkt-len"),
            ("--executor c", "--executor"),
            ("--model one", "--model takes rtc"),
            ("--model dispatch", "--model dispatch: each lcore"),
            ("--drop-fragments --acl-as-c", "--acl-as-c: --drop-fragments and"),
            ("--acl-as-c --drop-fragments", "--drop-fragments: --drop-fragments and"),
            ("--pcap-enable", "--pcap-enable: this program"),
            ("--pcap-num-cap 3", "--pcap-num-cap: "),
            ("--pcap-file-name=x", "--pcap-file-name: "),
            ("--bogus", "--bogus"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(option), "{line}: {error}");
        }
    }
}
