// SPDX-License-Identifier: BSD-3-Clause
//! Telemetry commands. DPDK answers them on its own threads, which live longer than the tables:
//! requests about tables are passed to the main lcore.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use dpdk::Eal;
use dpdk::telemetry::{RegisterError, Value, room};
use graph::NodeStats;

use super::desk::Desk;

/// The command about nodes.
const NODES: &str = "/linerate/graph/nodes";

/// The most rules in one answer: as many as telemetry has room for.
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

/// A request to the main lcore.
#[derive(PartialEq, Eq, Debug)]
pub enum Wish {
    /// The rules.
    Rules,
    /// The hit counts of rules, from this one on.
    Hits(Family, usize),
    /// New rules from a file.
    Replace(Family, PathBuf),
}

/// A request and the channel for its answer.
pub struct Request {
    pub wish: Wish,
    pub reply: Sender<Value>,
}

/// Registers the commands; requests come out of the receiver.
pub fn register(
    eal: &Eal,
    desks: &[Arc<Desk>],
    dot: String,
) -> Result<Receiver<Request>, RegisterError> {
    let telemetry = eal.telemetry();
    let (requests, receiver) = channel();
    let desks = desks.to_vec();
    telemetry.register(
        NODES,
        "Counters of each node on each lcore. Parameters: LCORE; left_off: lcores to ask for one by one",
        move |parameters| Some(nodes(&desks, parameters).unwrap_or_else(|| usage("LCORE, or none for all"))),
    )?;
    telemetry.register(
        "/linerate/graph/dot",
        "The graph in Graphviz's DOT format. Takes no parameters",
        move |_| Some(Value::dict([("dot", Value::Text(dot.clone()))])),
    )?;
    let ask = move |requests: &Sender<Request>, wish: Wish| {
        let (reply, answer) = channel();
        requests.send(Request { wish, reply }).ok()?;
        // Ends without an answer if the program ends.
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
        move |parameters| match hits(parameters) {
            Some(wish) => ask(&to, wish),
            None => Some(usage("ipv4 or ipv6[,first rule]")),
        },
    )?;
    telemetry.register(
        "/linerate/rules/replace",
        "Replaces the rules by those of a file, between two packets. Parameters: ipv4 or ipv6,FILE",
        move |parameters| match replace(parameters) {
            Some(wish) => ask(&requests, wish),
            None => Some(usage("ipv4 or ipv6,FILE")),
        },
    )?;
    Ok(receiver)
}

/// An answer with an error message.
pub fn error(reason: impl Display) -> Value {
    Value::dict([("error", Value::Text(reason.to_string()))])
}

/// The answer to invalid parameters.
fn usage(takes: &str) -> Value {
    error(format_args!("takes {takes}"))
}

fn hits(parameters: &str) -> Option<Wish> {
    let (family, first) = parameters.split_once(',').unwrap_or((parameters, "0"));
    Some(Wish::Hits(Family::named(family)?, first.trim().parse().ok()?))
}

fn replace(parameters: &str) -> Option<Wish> {
    let (family, file) = parameters.split_once(',')?;
    let (family, file) = (Family::named(family)?, file.trim());
    (!file.is_empty()).then(|| Wish::Replace(family, PathBuf::from(file)))
}

/// The nodes of all lcores, or of one. `None` for other parameters.
fn nodes(desks: &[Arc<Desk>], parameters: &str) -> Option<Value> {
    let only: Option<u32> = match parameters.trim() {
        "" => None,
        lcore => Some(lcore.parse().ok()?),
    };
    let asked = desks.iter().filter(|desk| only.is_none_or(|lcore| lcore == desk.lcore));
    Some(those_with_room(asked.map(|desk| (desk.lcore, desk.stats()))))
}

/// The nodes of as many lcores as fit into one answer. The others are listed in a last entry,
/// `left_off`.
fn those_with_room(lcores: impl Iterator<Item = (u32, Vec<NodeStats>)>) -> Value {
    let told: Vec<(u32, Vec<Value>)> = lcores
        .map(|(lcore, nodes)| (lcore, nodes.into_iter().map(|node| entry(lcore, node)).collect()))
        .collect();
    // Each entry is followed by a comma or a bracket, and the first is preceded by a bracket.
    let size = |entries: &[Value]| entries.iter().map(|entry| entry.size() + 1).sum::<usize>();
    let room = room(NODES) - 1;
    let left_off = |lcores: Vec<u64>| Value::dict([("left_off", Value::Numbers(lcores))]);
    let most = left_off(told.iter().map(|(lcore, _)| (*lcore).into()).collect()).size() + 1;
    let all = told.iter().map(|(_, entries)| size(entries)).sum::<usize>() <= room;
    let mut free = if all { room } else { room.saturating_sub(most) };
    let (mut entries, mut others) = (Vec::new(), Vec::new());
    for (lcore, nodes) in told {
        match free.checked_sub(size(&nodes)) {
            Some(rest) if others.is_empty() => {
                free = rest;
                entries.extend(nodes);
            }
            _ => others.push(lcore.into()),
        }
    }
    if !others.is_empty() {
        entries.push(left_off(others));
    }
    Value::List(entries)
}

fn entry(lcore: u32, node: NodeStats) -> Value {
    let mut entries = vec![
        ("lcore".to_owned(), u64::from(lcore).into()),
        ("node".to_owned(), Value::String(node.name)),
    ];
    let counts = [("calls", node.calls), ("packets", node.objects), ("cycles", node.cycles)];
    // Counts that do not exist are absent.
    let counted =
        counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into())));
    entries.extend(counted);
    entries.push(("dropped".to_owned(), node.dropped.into()));
    Value::Dict(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field<'v>(entry: &'v Value, wanted: &str) -> Option<&'v Value> {
        match entry {
            Value::Dict(fields) => {
                fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// How many lcores are included with all of their nodes, and which are left off.
    fn whole_and_left_off(answer: &Value) -> (usize, Vec<u64>) {
        let Value::List(entries) = answer else { panic!("{answer:?}") };
        let told = entries.iter().filter(|entry| field(entry, "node").is_some()).count();
        assert_eq!(told % COUNT, 0, "no lcore in part");
        match entries.last().and_then(|entry| field(entry, "left_off")) {
            Some(Value::Numbers(lcores)) => {
                assert_eq!(entries.len(), told + 1);
                (told / COUNT, lcores.clone())
            }
            _ => {
                assert_eq!(entries.len(), told);
                (told / COUNT, Vec::new())
            }
        }
    }

    const COUNT: usize = 13;

    fn counted(lcores: u32) -> Value {
        let count = Some(u64::MAX);
        let node = |at: usize| NodeStats {
            name: format!("lookup{at}"),
            calls: count,
            objects: count,
            cycles: (at > 3).then_some(7),
            dropped: 0,
        };
        those_with_room((0..lcores).map(|lcore| (lcore, (0..COUNT).map(node).collect())))
    }

    #[test]
    fn lcores_whose_nodes_have_no_room_are_named() {
        let most = (1..).take_while(|n| whole_and_left_off(&counted(*n)).1.is_empty()).last();
        let most = most.unwrap();
        assert!(most > 5);
        let whole = counted(most);
        assert!(whole.fits(NODES));
        assert_eq!(whole_and_left_off(&whole), (most as usize, vec![]));
        // One more would not have had room.
        assert!(whole.size() + whole.size() / most as usize > room(NODES));
        for lcores in [most + 1, most + 2, 128, 512] {
            let answer = counted(lcores);
            assert!(answer.fits(NODES), "{lcores}");
            let (told, left_off) = whole_and_left_off(&answer);
            assert_eq!(left_off, (told as u64..lcores.into()).collect::<Vec<_>>());
            assert!(told > 0);
        }
        assert_eq!(counted(0), Value::List(vec![]));
    }

    #[test]
    fn one_lcore_is_asked_for_by_its_number() {
        let desks = [Arc::new(Desk::new(1)), Arc::new(Desk::new(2))];
        assert_eq!(nodes(&desks, "x"), None);
        assert_eq!(nodes(&desks, "7"), Some(Value::List(vec![])));
    }

    #[test]
    fn parameters_are_read() {
        assert_eq!(hits("ipv4"), Some(Wish::Hits(Family::Ipv4, 0)));
        assert_eq!(hits("ipv6,512"), Some(Wish::Hits(Family::Ipv6, 512)));
        let file = |name: &str| Some(Wish::Replace(Family::Ipv4, PathBuf::from(name)));
        assert_eq!(replace("ipv4,/a,b"), file("/a,b"));
        for wrong in ["", "ipv5", "ipv4,", "ipv4,-1", "ipv4,x"] {
            assert_eq!(hits(wrong), None, "{wrong:?}");
        }
        for wrong in ["", "ipv4", "ipv4,", "ipv5,/a", "/a"] {
            assert_eq!(replace(wrong), None, "{wrong:?}");
        }
    }
}
