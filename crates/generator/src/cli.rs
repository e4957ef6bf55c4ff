// SPDX-License-Identifier: BSD-3-Clause
//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

use crate::command::options::CommandOptions;
use crate::location::Pattern;
use crate::otg::replays::ReplayOption;
use crate::pacing::LineRate;

/// The options of the command, none of which can be combined with those of the server.
const COMMAND: [&str; 10] =
    ["port", "self_test", "flow", "rate", "duration", "size", "capture", "json", "write", "otg"];

/// Generates traffic on the ports of an Open Traffic Generator (OTG) configuration.
///
/// EAL options may come first, followed by `--`. Without a `--` the program chooses them: no PCI
/// devices, huge pages if some are free, the first CPU that the process may use.
///
/// A port's location is an interface's name, af_packet:IFACE, af_xdp:IFACE, memif:SOCKET
/// (optionally followed by ,role=client or ,id=N), vhost:SOCKET, virtio_user:SOCKET, tap:NAME,
/// ring:NAME, null, vdev:DEVICE-ARGUMENTS of a driver that is known to be safe, or pci:ADDRESS;
/// docs/send-traffic.md lists their options.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "generator",
    version,
    override_usage = "generator [EAL OPTIONS --] --otg-listen ADDR:PORT [OPTIONS]
       generator [EAL OPTIONS --] --port LOCATION... [--flow SPEC]... [--rate RATE] [--duration TIME] [OPTIONS]
       generator --write PORT=FILE... (--port LOCATION... [--flow SPEC]... | --otg FILE) [OPTIONS]
       generator [EAL OPTIONS --] --self-test [--port LOCATION] [OPTIONS]",
    group = clap::ArgGroup::new("what").required(true).multiple(true).args(["otg_listen", "port", "otg", "self_test"]),
)]
pub struct Options {
    /// Serve the OTG API on this address, over HTTP unless a certificate is given; port 0 selects a
    /// free port. An address that other machines can reach needs a certificate, a user and a
    /// password
    #[arg(long, value_name = "ADDR:PORT", value_parser = address, conflicts_with_all = COMMAND)]
    pub otg_listen: Option<SocketAddr>,

    /// Look for the interfaces of locations in this network namespace (a name of ip netns, or a
    /// path); the API is still served in the namespace in which the program was started
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,

    /// Serve HTTPS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with_all = COMMAND)]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Require this user of clients (HTTP Basic: https://NAME:PASSWORD@ADDR:PORT)
    #[arg(long, value_name = "NAME", requires = "otg_password_file", conflicts_with_all = COMMAND)]
    pub otg_user: Option<String>,

    /// Require the password that is this file's only line
    #[arg(long, value_name = "FILE", requires = "otg_user")]
    pub otg_password_file: Option<PathBuf>,

    /// Serve TCP clients without a token even if root started the program: every user and program
    /// of this machine can then open its ports, send and capture as root
    #[arg(long, conflicts_with = "otg_user", conflicts_with_all = COMMAND)]
    pub insecure: bool,

    /// Let configurations use kernel interfaces with this name, or whose names match this pattern
    /// of * and ?; may be given several times. By default they may use none if root started the
    /// program, and otherwise any
    #[arg(long, value_name = "PATTERN", conflicts_with_all = COMMAND)]
    pub allow_port: Vec<Pattern>,

    /// Send as fast as the ports take frames; rates in the configuration are ignored, and a refused
    /// frame is offered again
    #[arg(long)]
    pub flood: bool,

    /// What 100 per cent means on a port without a line rate of its own: frames per second (14880952,
    /// 14.88Mpps) or bits per second on layer 1 (10Gbps)
    #[arg(long, value_name = "RATE")]
    pub line_rate: Option<LineRate>,

    /// Polling CPUs, such as 0 or 0,2-3: a single one does everything; of several, some send and
    /// the others receive; only without EAL options [default: the first that the process may use]
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,

    /// Receive queues of each port, if its driver supports them; with more than one, the order of a
    /// flow's frames cannot be checked if they arrive on several lcores
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub rx_queues: u16,

    /// Size of the largest frame in bytes, FCS included
    #[arg(long, value_name = "BYTES", default_value_t = 1518, value_parser = clap::value_parser!(u16).range(64..=9216))]
    pub max_frame: u16,

    /// Let captures hold the FCS of each frame, computed from what was received: yes or no [default: yes for clients
    /// of the API, no in files of --capture]
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    pub capture_fcs: Option<bool>,

    /// Count a frame as late when it is offered more than this many microseconds after its slot
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub late_after: u64,

    /// Let a vdev: location name any driver that a running program may attach, with any arguments.
    /// Clients of the API can then load XDP programs, and overwrite and remove files, as the user
    /// who runs this program: files below directories of --socket-directory, or anywhere without a
    /// sandbox (--no-sandbox, or EAL options of your own)
    #[arg(long)]
    pub allow_any_vdev: bool,

    /// Allow configurations to have sockets (memif:, vhost:, virtio_user:) directly in this
    /// directory, as well as in the generator's own run-time directory. It must belong to you or to
    /// root, and nobody else may write to it (mkdir -m 700); may be given several times. Locations
    /// of --port may be anywhere
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = COMMAND)]
    pub socket_directory: Vec<PathBuf>,

    /// Serve without the sandbox, which restricts the process to the files and system calls that a
    /// generator needs; for drivers that need others
    #[arg(long, conflicts_with_all = COMMAND)]
    pub no_sandbox: bool,

    /// Let the flow of this name send the frames of a capture file (.pcap, .pcapng) in a loop, at
    /// the flow's rate, instead of its own frames; its metrics must be off. May be given for
    /// several flows
    #[arg(long, value_name = "FLOW=FILE", conflicts_with_all = COMMAND)]
    pub replay: Vec<ReplayOption>,

    /// Write the TCP port's number to this file once the API is served
    #[arg(long, value_name = "FILE", conflicts_with_all = COMMAND)]
    pub port_file: Option<PathBuf>,

    /// Options to send without a script.
    #[command(flatten)]
    pub command: CommandOptions,
}

/// CPUs, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

fn cpu_list(text: &str) -> Result<CpuList, String> {
    let bad = || format!("invalid list of CPUs {text:?}: give one such as 0 or 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<usize>().ok().filter(|cpu| *cpu < 4096).ok_or_else(bad),
            false => Err(bad()),
        };
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(bad());
        }
        cpus.extend(first..=last);
    }
    let mut sorted = cpus.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find_map(|pair| (pair.first() == pair.last()).then(|| pair.first())) {
        Some(twice) => {
            Err(format!("CPU {} is in the list twice", twice.copied().unwrap_or_default()))
        }
        None => Ok(CpuList(cpus)),
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("give yes or no".to_owned()),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give an IP address and a port, such as 127.0.0.1:8443".to_owned())
}

/// EAL's options, if there are any, and the program's own, both preceded by the program's name.
pub fn split(arguments: Vec<OsString>) -> (Option<Vec<OsString>>, Vec<OsString>) {
    match arguments.iter().position(|argument| argument == "--") {
        None => (None, arguments),
        Some(at) => {
            let own =
                arguments.iter().take(1).chain(arguments.iter().skip(at + 1)).cloned().collect();
            (Some(arguments.into_iter().take(at).collect()), own)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from(std::iter::once("generator").chain(arguments.iter().copied()))
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn eal_options_come_first() {
        let words = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(split(words("g -l 1 -- --flood")), (Some(words("g -l 1")), words("g --flood")));
        assert_eq!(split(words("g --flood")), (None, words("g --flood")));
        assert_eq!(split(words("g --")), (Some(words("g")), words("g")));
    }

    #[test]
    fn lists_of_cpus_keep_their_order() {
        let cpus = parse(&["--otg-listen", "127.0.0.1:0", "--cpus", "7,0-2"]).unwrap().cpus;
        assert_eq!(cpus, Some(CpuList(vec![7, 0, 1, 2])));
    }

    #[test]
    fn bad_values_name_their_option() {
        assert_eq!(parse(&["--otg-listen", "127.0.0.1:0"]).unwrap().late_after, 100);
        assert!(parse(&["--otg-listen", "[::1]:80", "--line-rate", "1000000", "--flood"]).is_ok());
        for (bad, option) in [
            (&["--flood"][..], "--otg-listen"),
            (&["--otg-listen", "127.0.0.1:0", "--otg-user", "me"], "--otg-password-file"),
            (&["--otg-listen", "localhost"], "127.0.0.1:8443"),
            (&["--otg-listen", "127.0.0.1:0", "--line-rate", "0"], "--line-rate"),
            (&["--otg-listen", "127.0.0.1:0", "--late-after", "x"], "--late-after"),
            (&["--port", "ring:r", "--socket-directory", "/tmp"], "--socket-directory"),
            (&["--port", "ring:r", "--allow-port", "lo"], "--allow-port"),
            (&["--port", "ring:r", "--no-sandbox"], "--no-sandbox"),
            (&["--otg-listen", "127.0.0.1:0", "--allow-port", "a/b"], "'veth*'"),
            (&["--port", "ring:r", "--replay", "f0=a.pcap"], "--replay"),
            (&["--otg-listen", "127.0.0.1:0", "--replay", "a.pcap"], "f0=office.pcapng"),
            (&["--otg-listen", "127.0.0.1:0", "--cpus", "1,x"], "--cpus"),
            (&["--otg-listen", "127.0.0.1:0", "--cpus", "3-1"], "--cpus"),
            (&["--otg-listen", "127.0.0.1:0", "--cpus", "1,0-2"], "CPU 1 is in the list twice"),
            (&["--otg-listen", "127.0.0.1:0", "--rx-queues", "0"], "--rx-queues"),
            (&["--otg-listen", "127.0.0.1:0", "--max-frame", "9217"], "--max-frame"),
            (&["--otg-listen", "127.0.0.1:0", "--capture-fcs", "maybe"], "--capture-fcs"),
            (&["--otg-listen", "127.0.0.1:0", "--tls-cert", "f"], "--tls-key"),
            (&["--otg-listen", "127.0.0.1:0", "--tls-key", "f"], "--tls-cert"),
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.contains(option), "{bad:?}: {error}");
        }
    }
}
