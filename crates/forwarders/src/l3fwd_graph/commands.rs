// SPDX-License-Identifier: BSD-3-Clause
//! Telemetry commands. DPDK answers them on threads of its own, which outlive the tables: what concerns
//! those is asked of the main lcore.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use dpdk::Eal;
use dpdk::telemetry::{RegisterError, Value};
use graph::NodeStats;

use super::desk::Desk;

/// Rules that one answer tells of: as many as telemetry has room for.
pub const PAGE: usize = 512;

/// IPv4 or IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    fn named(name: &str) -> Option<Self> {
        match name {
            "ipv4" => Some(Self::Ipv4),
            "ipv6" => Some(Self::Ipv6),
            _ => None,
        }
    }
}

/// What somebody wants of the main lcore.
#[derive(PartialEq, Eq, Debug)]
pub enum Wish {
    /// Which rules there are.
    Rules,
    /// How often rules decided, from this one on.
    Hits(Family, usize),
    /// Other rules.
    Replace(Family, PathBuf),
}

/// A wish and where its answer goes.
pub struct Request {
    pub wish: Wish,
    pub reply: Sender<Value>,
}

/// Registers the commands; what they are asked for comes out of the receiver.
pub fn register(
    eal: &Eal,
    desks: &[Arc<Desk>],
    dot: String,
) -> Result<Receiver<Request>, RegisterError> {
    let telemetry = eal.telemetry();
    let (requests, receiver) = channel();
    let desks = desks.to_vec();
    telemetry.register(
        "/linerate/graph/nodes",
        "Counters of each node on each lcore. Takes no parameters",
        move |_| Some(Value::List(desks.iter().flat_map(|desk| nodes(desk)).collect())),
    )?;
    telemetry.register(
        "/linerate/graph/dot",
        "The graph as Graphviz draws it. Takes no parameters",
        move |_| Some(Value::dict([("dot", Value::Text(dot.clone()))])),
    )?;
    let ask = move |requests: &Sender<Request>, wish: Wish| {
        let (reply, answer) = channel();
        requests.send(Request { wish, reply }).ok()?;
        // Ends without an answer when the program does.
        answer.recv().ok()
    };
    let to = requests.clone();
    telemetry.register(
        "/linerate/rules",
        "Rules of the access control lists. Takes no parameters",
        move |_| ask(&to, Wish::Rules),
    )?;
    let to = requests.clone();
    telemetry.register(
        "/linerate/rules/hits",
        "Packets that each rule decided. Parameters: ipv4 or ipv6[,first rule]",
        move |parameters| ask(&to, hits(parameters)?),
    )?;
    telemetry.register(
        "/linerate/rules/replace",
        "Reads rules anew, between two packets. Parameters: ipv4 or ipv6,FILE",
        move |parameters| ask(&requests, replace(parameters)?),
    )?;
    Ok(receiver)
}

/// An answer that says what went wrong.
pub fn error(reason: impl Display) -> Value {
    Value::dict([("error", Value::Text(reason.to_string()))])
}

fn hits(parameters: &str) -> Option<Wish> {
    let (family, first) = parameters.split_once(',').unwrap_or((parameters, "0"));
    Some(Wish::Hits(Family::named(family)?, first.trim().parse().ok()?))
}

fn replace(parameters: &str) -> Option<Wish> {
    let (family, file) = parameters.split_once(',')?;
    Some(Wish::Replace(Family::named(family)?, PathBuf::from(file.trim())))
}

fn nodes(desk: &Desk) -> Vec<Value> {
    let entry = |node: NodeStats| {
        let mut entries = vec![
            ("lcore".to_owned(), u64::from(desk.lcore).into()),
            ("node".to_owned(), Value::String(node.name)),
        ];
        let counts = [("calls", node.calls), ("packets", node.objects), ("cycles", node.cycles)];
        // What was not counted is absent.
        let counted =
            counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into())));
        entries.extend(counted);
        entries.push(("dropped".to_owned(), node.dropped.into()));
        Value::Dict(entries)
    };
    desk.stats().into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read() {
        assert_eq!(hits("ipv4"), Some(Wish::Hits(Family::Ipv4, 0)));
        assert_eq!(hits("ipv6,512"), Some(Wish::Hits(Family::Ipv6, 512)));
        let file = |name: &str| Some(Wish::Replace(Family::Ipv4, PathBuf::from(name)));
        assert_eq!(replace("ipv4,/a,b"), file("/a,b"));
        for wrong in ["", "ipv5", "ipv4,", "ipv4,-1", "ipv4,x"] {
            assert_eq!(hits(wrong), None, "{wrong:?}");
        }
        for wrong in ["", "ipv4", "ipv5,/a", "/a"] {
            assert_eq!(replace(wrong), None, "{wrong:?}");
        }
    }
}
