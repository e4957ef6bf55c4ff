// SPDX-License-Identifier: BSD-3-Clause
//! `--flow`: one flow, as `key=value` items separated by commas.

use std::path::PathBuf;
use std::str::FromStr;

use serde_json::{Value, json};

use super::SpecError;
use super::items::{self, Item};
use super::quantity::{self, Rate, Span};
use super::stack::{self, Stack};
use crate::replay::Timing;

/// All keys except header fields.
const KEYS: [&str; 18] = [
    "name",
    "from",
    "to",
    "size",
    "rate",
    "duration",
    "frames",
    "burst",
    "gap",
    "bursts",
    "latency",
    "integrity",
    "payload",
    "headers",
    "pcap",
    "speed",
    "loops",
    "truncated",
];

/// Words that are valid without a value.
const WORDS: [&str; 2] = ["latency", "integrity"];

/// A flow as given on the command line. `None` means not given.
#[derive(Clone, Debug, Default)]
pub struct FlowSpec {
    /// Its name.
    pub name: Option<String>,
    /// Name of the port that sends it.
    pub from: Option<String>,
    /// Names of the ports that it should arrive at; none means any.
    pub to: Vec<String>,
    /// Sizes of its frames, in OTG's model.
    pub size: Option<Value>,
    /// Its rate.
    pub rate: Option<Rate>,
    /// Its duration.
    pub duration: Option<Span>,
    /// Its bursts.
    pub burst: Option<Burst>,
    /// True if frames carry time stamps.
    pub latency: Option<bool>,
    /// True if payloads carry a checksum.
    pub integrity: bool,
    /// The payload, in OTG's model.
    pub payload: Option<Value>,
    /// The headers, in OTG's model.
    pub packet: Value,
    /// Frames of a file, instead of headers.
    pub replay: Option<ReplaySpec>,
}

/// Bursts of frames at the flow's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Frames of each burst.
    pub frames: u64,
    /// Nanoseconds between bursts, in addition to the flow's own interval.
    pub gap: u64,
    /// The number of bursts, if not given by the flow's duration.
    pub bursts: Option<u64>,
}

/// A capture file that is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplaySpec {
    /// The file.
    pub path: PathBuf,
    /// Its timing, if given.
    pub speed: Option<Timing>,
    /// The number of loops.
    pub loops: Option<u64>,
    /// True if truncated frames are padded.
    pub pad: bool,
}

impl FromStr for FlowSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let is_word = |word: &str| WORDS.contains(&word) || stack::is_header(word);
        let items = items::split(text, is_word, |key| key == "to")?;
        let mut read = Reader::default();
        for item in &items {
            read.item(item)?;
        }
        read.finish()
    }
}

#[derive(Default)]
struct Reader {
    flow: FlowSpec,
    stack: Stack,
    seen: Vec<String>,
    burst: Option<u64>,
    gap: Option<u64>,
    bursts: Option<u64>,
    pcap: Option<PathBuf>,
    speed: Option<Timing>,
    loops: Option<u64>,
    pad: bool,
}

impl Reader {
    fn item(&mut self, item: &Item) -> Result<(), SpecError> {
        let key = item.key.as_str();
        if item.value.is_none() && stack::is_header(key) {
            self.stack.add(key);
            return Ok(());
        }
        if !KEYS.contains(&key) {
            if key.contains('.') && self.stack.set(key, item.value()?)?.is_some() {
                return Ok(());
            }
            let known =
                format!("{}, and HEADER.FIELD of the headers {}", KEYS.join(", "), stack::names());
            return Err(SpecError::UnknownKey { key: key.chars().take(60).collect(), known });
        }
        if self.seen.iter().any(|seen| seen == key) {
            return Err(SpecError::Twice { key: key.to_owned() });
        }
        self.seen.push(key.to_owned());
        let flow = &mut self.flow;
        match key {
            "latency" => flow.latency = Some(switch(item)?),
            "integrity" => flow.integrity = switch(item)?,
            _ => {
                let text = item.value()?;
                match key {
                    "name" => flow.name = Some(text.to_owned()),
                    "from" => flow.from = Some(text.to_owned()),
                    "to" if text == "any" => {}
                    "to" => flow.to = text.split(',').map(|name| name.trim().to_owned()).collect(),
                    "size" => flow.size = Some(quantity::size(key, text)?),
                    "rate" => flow.rate = Some(quantity::rate(key, text)?),
                    "duration" => flow.duration = Some(quantity::span(key, text)?),
                    "frames" => self.frames(text)?,
                    "burst" => self.burst = Some(quantity::count(key, text)?),
                    "gap" => self.gap = Some(quantity::time(key, text)?),
                    "bursts" => self.bursts = Some(quantity::count(key, text)?),
                    "payload" => flow.payload = Some(payload(key, text)?),
                    "headers" => self.stack.list(key, text)?,
                    "pcap" => self.pcap = Some(text.into()),
                    "speed" => self.speed = speed(key, text)?,
                    "loops" => self.loops = Some(quantity::count(key, text)?),
                    _ => self.pad = truncated(key, text)?,
                }
            }
        }
        Ok(())
    }

    fn frames(&mut self, text: &str) -> Result<(), SpecError> {
        self.flow.duration = Some(Span::Frames(quantity::count("frames", text)?));
        Ok(())
    }

    fn has(&self, key: &str) -> bool {
        self.seen.iter().any(|seen| seen == key)
    }

    fn finish(mut self) -> Result<FlowSpec, SpecError> {
        let pairs = [
            ("frames", "duration", "give one of them"),
            ("bursts", "duration", "give one of them"),
            ("bursts", "frames", "give one of them"),
            ("loops", "duration", "give one of them"),
            ("loops", "frames", "give one of them"),
            ("speed", "rate", "give one of them"),
            ("burst", "pcap", "a file has its own times"),
            ("size", "pcap", "frames of a file have their own sizes"),
            ("payload", "pcap", "frames of a file are sent as they are"),
            ("latency", "pcap", "frames of a file carry no stamps"),
            ("integrity", "pcap", "frames of a file carry no checksum of ours"),
            ("headers", "pcap", "frames of a file are sent as they are"),
        ];
        for (key, other, advice) in pairs {
            if self.has(key) && self.has(other) {
                let (key, other) = (key.to_owned(), other.to_owned());
                return Err(SpecError::Conflict { key, other, advice });
            }
        }
        for (key, other) in [
            ("gap", "burst"),
            ("bursts", "burst"),
            ("speed", "pcap"),
            ("loops", "pcap"),
            ("truncated", "pcap"),
        ] {
            if self.has(key) && !self.has(other) {
                return Err(SpecError::Needs { key: key.to_owned(), other });
            }
        }
        if self.pcap.is_some() && !self.stack.is_empty() {
            return Err(SpecError::Conflict {
                key: "header fields".to_owned(),
                other: "pcap".to_owned(),
                advice: "frames of a file are sent as they are",
            });
        }
        self.flow.packet = self.stack.to_otg()?;
        let (gap, bursts) = (self.gap.unwrap_or(0), self.bursts);
        self.flow.burst = self.burst.map(|frames| Burst { frames, gap, bursts });
        let (speed, loops, pad) = (self.speed, self.loops, self.pad);
        self.flow.replay = self.pcap.map(|path| ReplaySpec { path, speed, loops, pad });
        Ok(self.flow)
    }
}

fn switch(item: &Item) -> Result<bool, SpecError> {
    match item.value.as_deref() {
        None | Some("on" | "yes" | "true") => Ok(true),
        Some("off" | "no" | "false") => Ok(false),
        Some(text) => Err(SpecError::value(&item.key, text, "on or off")),
    }
}

fn payload(key: &str, text: &str) -> Result<Value, SpecError> {
    let wanted = "zeros, increment_byte, decrement_byte, increment_word, decrement_word, or bytes \
        such as 0xdeadbeef";
    match text {
        "zeros" => Ok(json!({ "fixed": { "pattern": "00" } })),
        "increment_byte" | "decrement_byte" | "increment_word" | "decrement_word" => {
            Ok(json!({ "choice": text }))
        }
        _ => match text.strip_prefix("0x") {
            Some(digits)
                if !digits.is_empty()
                    && digits.len() % 2 == 0
                    && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
            {
                Ok(json!({ "fixed": { "pattern": digits } }))
            }
            _ => Err(SpecError::value(key, text, wanted)),
        },
    }
}

fn speed(key: &str, text: &str) -> Result<Option<Timing>, SpecError> {
    let wanted = "own, or so many times as fast, such as 2x or 0.5x";
    if text == "own" {
        return Ok(Some(Timing::Own));
    }
    let number = text.strip_suffix(['x', 'X']).unwrap_or_default();
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let range = crate::replay::MIN_SPEED..=crate::replay::MAX_SPEED;
    let speed = number.parse::<f64>().ok().filter(|speed| plain && range.contains(speed));
    let speed = speed.map(|speed| Some(Timing::Scaled(speed)));
    speed.ok_or_else(|| SpecError::value(key, text, wanted))
}

fn truncated(key: &str, text: &str) -> Result<bool, SpecError> {
    match text {
        "pad" => Ok(true),
        "refuse" => Ok(false),
        _ => Err(SpecError::value(key, text, "pad or refuse")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read() {
        let flow: FlowSpec =
            "name=web,from=p0,to=p1,p2,size=64:7,594:4,rate=50%,duration=3s,latency=off,\
            integrity,payload=0xdead,vlan.id=7,ipv4.src=198.18.0.1+1000,udp.dst_port=53,80"
                .parse()
                .unwrap();
        assert_eq!(flow.name.as_deref(), Some("web"));
        assert_eq!(
            (flow.from.as_deref(), flow.to.as_slice()),
            (Some("p0"), &["p1".into(), "p2".into()][..])
        );
        assert_eq!(flow.size.unwrap()["weight_pairs"]["custom"][1]["size"], 594);
        assert_eq!(
            (flow.rate, flow.duration),
            (Some(Rate::Percent(50.0)), Some(Span::Nanoseconds(3_000_000_000)))
        );
        assert_eq!((flow.latency, flow.integrity), (Some(false), true));
        assert_eq!(flow.payload, Some(json!({"fixed": {"pattern": "dead"}})));
        assert_eq!(flow.packet[1]["vlan"]["id"], json!({"value": 7}));
        assert_eq!(flow.packet[3]["udp"]["dst_port"], json!({"values": [53, 80]}));

        let flow: FlowSpec = "burst=32,gap=10us,bursts=5,to=any,latency".parse().unwrap();
        assert_eq!(flow.burst, Some(Burst { frames: 32, gap: 10_000, bursts: Some(5) }));
        assert!(flow.to.is_empty() && flow.latency == Some(true));
        let flow: FlowSpec = "frames=1k,headers=eth/ipv6/tcp,tcp.dport=80".parse().unwrap();
        assert_eq!(flow.duration, Some(Span::Frames(1000)));
        assert_eq!(flow.packet[2]["tcp"]["dst_port"], json!({"value": 80}));
        let flow: FlowSpec = "payload=increment_word,tcp".parse().unwrap();
        assert_eq!(flow.payload, Some(json!({"choice": "increment_word"})));

        let replay = |text: &str| text.parse::<FlowSpec>().unwrap().replay.unwrap();
        let file = ReplaySpec { path: "a.pcap".into(), speed: None, loops: None, pad: false };
        assert_eq!(replay("pcap=a.pcap"), file);
        let own = ReplaySpec { speed: Some(Timing::Own), ..file.clone() };
        assert_eq!(replay("pcap=a.pcap,speed=own"), own);
        let wanted =
            ReplaySpec { speed: Some(Timing::Scaled(0.5)), loops: Some(3), pad: true, ..file };
        assert_eq!(replay("pcap=a.pcap,speed=0.5x,loops=3,truncated=pad"), wanted);
    }

    #[test]
    fn every_fault_names_its_key() {
        for (text, wanted) in [
            ("latancy", "\"latancy\" is no key; the keys are name, from, to"),
            ("size=64,latancy", "\"latancy\" is no key"),
            ("frob.x=1", "\"frob.x\" is no key; the keys are"),
            ("udp.frob=1", "udp.frob: udp has no field of this name; its fields are"),
            ("udp.dst_port", "udp.dst_port: has no value"),
            ("name=", "name: has no value; write name=VALUE"),
            ("rate=1,rate=2", "rate: given twice"),
            ("rate=fast", "rate: \"fast\" is not a rate"),
            ("size=big", "size: \"big\" is not a size"),
            ("duration=ever", "duration: \"ever\" is not"),
            ("frames=x", "frames: \"x\" is not"),
            ("burst=0", "burst: \"0\" is not"),
            ("burst=1,gap=x", "gap: \"x\" is not a time"),
            ("gap=1us", "gap: needs burst"),
            ("bursts=1", "bursts: needs burst"),
            ("burst=1,bursts=x", "bursts: \"x\" is not"),
            ("latency=maybe", "latency: \"maybe\" is not on or off"),
            ("integrity=maybe", "integrity: \"maybe\" is not on or off"),
            ("payload=0xabc", "payload: \"0xabc\" is not"),
            ("pcap=f,speed=fast", "speed: \"fast\" is not own"),
            ("pcap=f,speed=0x", "speed: \"0x\" is not own"),
            ("speed=2x", "speed: needs pcap"),
            ("loops=2", "loops: needs pcap"),
            ("pcap=f,loops=0", "loops: \"0\" is not"),
            ("pcap=f,truncated=cut", "truncated: \"cut\" is not"),
            ("pcap=f,size=64", "size: does not go with pcap"),
            ("pcap=f,vlan.id=1", "header fields: does not go with pcap"),
            ("pcap=f,speed=2x,rate=5", "speed: does not go with rate"),
            ("frames=5,duration=3s", "frames: does not go with duration"),
            ("headers=eth/ip9", "headers: there is no header \"ip9\""),
            ("a=1,,b=2", "there is an empty part"),
            ("ipv4.src=999.1.1.1", "ipv4.src: \"999.1.1.1\" is not an IPv4"),
        ] {
            let error = text.parse::<FlowSpec>().unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
    }
}
