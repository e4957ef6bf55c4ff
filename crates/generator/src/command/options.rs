// SPDX-License-Identifier: BSD-3-Clause
//! The options of the command.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::flow::FlowSpec;
use super::port::{CaptureSpec, PortSpec};
use super::quantity::{self, Rate, Span};
use super::write::WriteSpec;

/// Flows on the command line.
#[derive(Args, Clone, Debug)]
pub struct CommandOptions {
    /// Send on this port, without a script; may be given several times. Names are p0, p1, ... by
    /// default
    #[arg(long, value_name = "[NAME=]LOCATION", help_heading = HEADING)]
    pub port: Vec<PortSpec>,

    /// A flow, as KEY=VALUE items separated by commas; may be given several times. Keys: name,
    /// from, to, size, rate, duration, frames, burst, gap, bursts, latency, integrity, payload,
    /// headers, pcap, speed, loops, truncated and HEADER.FIELD, such as
    /// vlan.id=7,ipv4.src=198.18.0.1+1000,udp.dst_port=53,80 (see docs/send-without-a-script.md)
    /// [default: one flow from the first port, received on any]
    #[arg(long, value_name = "SPEC", requires = "port", help_heading = HEADING)]
    pub flow: Vec<FlowSpec>,

    /// Default rate of flows: 10kpps, 1.5Mpps, 2Gbps (layer 1), 2Gbps/l2, 50% [default: 10kpps; a
    /// capture file's own times]
    #[arg(long, value_name = "RATE", requires = "port", value_parser = rate, help_heading = HEADING)]
    pub rate: Option<Rate>,

    /// Default duration of flows: 10s, 500ms, 1000000frames, or continuous (until Ctrl-C) [default:
    /// 10s; a capture file once]
    #[arg(long, value_name = "TIME", requires = "port", value_parser = span, help_heading = HEADING)]
    pub duration: Option<Span>,

    /// Size of frames in bytes, FCS included: 64, 64-1518 (random), 64-1518/1 (counting up), imix, or sizes with
    /// weights, 64:7,594:4,1518:1
    #[arg(long, value_name = "SIZE", requires = "port", value_parser = size, default_value = "64", help_heading = HEADING)]
    pub size: SizeSpec,

    /// Write what a port receives to a .pcapng or .pcap file, while it runs; filters may follow
    /// after commas, such as p0=in.pcapng,vlan.id=7,ipv4.proto!=17,snap=96
    #[arg(long, value_name = "PORT=FILE[,FILTER...]", requires = "port", help_heading = HEADING)]
    pub capture: Vec<CaptureSpec>,

    /// Maximum size of each capture file in bytes, such as 500M
    #[arg(long, value_name = "BYTES", requires = "capture", value_parser = bytes, default_value = "1G", help_heading = HEADING)]
    pub capture_limit: u64,

    /// Write what a port would send to this .pcap file, and send nothing; time stamps are the
    /// flows' times, counted from the epoch. May be given for several ports
    #[arg(long, value_name = "PORT=FILE", conflicts_with_all = ["capture", "json", "otg_listen"], help_heading = HEADING)]
    pub write: Vec<WriteSpec>,

    /// Maximum number of frames in each file of --write; flows that do not end by themselves are
    /// cut off there
    #[arg(long, value_name = "FRAMES", requires = "write", value_parser = clap::value_parser!(u64).range(1..), help_heading = HEADING)]
    pub write_limit: Option<u64>,

    /// Read ports and flows for --write from an OTG configuration (JSON), instead of --port and
    /// --flow
    #[arg(long, value_name = "FILE", requires = "write", conflicts_with_all = ["port", "flow", "rate", "duration"], help_heading = HEADING)]
    pub otg: Option<PathBuf>,

    /// Write the final figures to this file, as one JSON document (schema linerate/generator-1)
    #[arg(long, value_name = "FILE", requires = "port", help_heading = HEADING)]
    pub json: Option<PathBuf>,

    /// Check the generator's measurements against known traffic, and print what it and this machine
    /// can do; on an internal ring, or on the one --port, which must return the frames that are
    /// sent
    #[arg(long, conflicts_with_all = ["flow", "capture", "json", "duration", "write"], help_heading = HEADING)]
    pub self_test: bool,
}

const HEADING: &str = "Flows without a script";

/// Sizes in OTG's model.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeSpec(pub Value);

fn rate(text: &str) -> Result<Rate, super::SpecError> {
    quantity::rate("rate", text)
}

fn span(text: &str) -> Result<Span, super::SpecError> {
    quantity::span("duration", text)
}

fn size(text: &str) -> Result<SizeSpec, super::SpecError> {
    quantity::size("size", text).map(SizeSpec)
}

fn bytes(text: &str) -> Result<u64, super::SpecError> {
    quantity::count("capture-limit", text)
}
