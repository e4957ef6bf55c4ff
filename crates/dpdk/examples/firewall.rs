// SPDX-License-Identifier: BSD-3-Clause
//! Forwards what the rules allow: `firewall [EAL options] -- [--packets N] --rule RULE...`
//!
//! A rule is `ACTION,SOURCE/LENGTH,DESTINATION/LENGTH,PROTOCOL,PORTS`: `allow` or `deny`, IPv4
//! networks, a protocol number or `any`, and destination ports `LOW-HIGH` or `any`. The first
//! matching rule decides. Packets that match no rule are denied; so are packets that are not IPv4,
//! and fragments without ports. Ports are forwarded in pairs; a single port echoes.
//!
//! ```text
//! $ frames dns.pcap
//! dns.pcap: 13 frames of UDP from 192.0.2.1 to port 53 of 198.51.100.1
//! $ firewall --no-pci --no-huge -m 128 -l 0 --vdev net_pcap0,rx_pcap=dns.pcap,tx_pcap=out.pcap -- \
//!     --packets 13 --rule deny,192.0.2.0/24,0.0.0.0/0,17,443-443 --rule allow,192.0.2.0/24,198.51.100.0/24,17,50-60
//! deny,192.0.2.0/24,0.0.0.0/0,17,443-443: 0 packets
//! allow,192.0.2.0/24,198.51.100.0/24,17,50-60: 13 packets
//! no rule: 0 packets
//! 13 sent
//! ```

mod common;

use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::process::ExitCode;

use common::{Options, Result};
use dpdk::acl::{Acl, AclConfig, Built, IPV4_5TUPLE, MAX_PRIORITY, Match, Rule};
use dpdk::{Burst, Eal, Port};

const ETHERNET: usize = 14;
const BURST: usize = 32;

/// A rule's action, and its text for the counters.
struct Action {
    allow: bool,
    rule: String,
    packets: u64,
}

fn network(text: &str) -> Result<Match> {
    let (address, len) = text.split_once('/').ok_or("a network is ADDRESS/LENGTH")?;
    Ok(Match::Prefix { value: u32::from(address.parse::<Ipv4Addr>()?).into(), len: len.parse()? })
}

/// Fields in the order of `IPV4_5TUPLE`: protocol, source, destination, source port, destination port.
fn fields(rule: &str) -> Result<(bool, [Match; 5])> {
    let words: Vec<_> = rule.split(',').collect();
    let [action, source, destination, protocol, ports] = words[..] else {
        return Err("five fields, with a comma between".into());
    };
    let allow = match action {
        "allow" => true,
        "deny" => false,
        _ => return Err("it begins with allow or deny".into()),
    };
    let protocol = match protocol {
        "any" => Match::Any,
        number => Match::Bits { value: number.parse::<u8>()?.into(), mask: 0xff },
    };
    let ports = match ports.split_once('-') {
        None if ports == "any" => Match::Any,
        None => return Err("ports are LOW-HIGH or any".into()),
        Some((low, high)) => {
            Match::Range { low: low.parse::<u16>()?.into(), high: high.parse::<u16>()?.into() }
        }
    };
    Ok((allow, [protocol, network(source)?, network(destination)?, Match::Any, ports]))
}

fn compile<'eal>(eal: &'eal Eal, texts: Vec<String>) -> Result<(Acl<'eal, Built, 5>, Vec<Action>)> {
    let mut acl = Acl::new(eal, &IPV4_5TUPLE, &AclConfig::named("firewall"))?;
    let mut actions = Vec::new();
    for (index, rule) in texts.into_iter().enumerate() {
        let (allow, fields) = fields(&rule).map_err(|error| format!("--rule {rule}: {error}"))?;
        // The verdict is the rule's position, from 1; the highest priority wins, so it decreases.
        let number = NonZeroU32::MIN.saturating_add(index as u32);
        acl.add(&Rule::new(number, MAX_PRIORITY - index as i32, fields))?;
        actions.push(Action { allow, rule, packets: 0 });
    }
    Ok((acl.build()?, actions))
}

fn is_ipv4(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[8, 0])
}

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let mut options = Options::new(arguments)?;
    let rules = options.all("--rule");
    let until = options.until()?;
    if rules.is_empty() {
        return Err("no --rule: nothing would pass".into());
    }
    let (acl, mut actions) = compile(&eal, rules)?;
    let pool = common::pool(&eal, 1)?;
    let (mut unmatched, mut sent) = (0u64, 0);
    let mut ports = common::start(&eal, &pool, 1)?;

    let mut queues: Vec<_> = ports.iter_mut().map(Port::queues).collect();
    while until.more() {
        for index in 0..queues.len() {
            let mut burst = Burst::<BURST>::new();
            until.count(queues[index].rx[0].receive(&mut burst));
            let mut verdicts = [[None; 1]; BURST];
            // Classifies all packets at once; those without ports match nothing.
            acl.classify_burst(&burst, ETHERNET, &mut verdicts);
            let mut verdicts = verdicts.into_iter().flatten();
            burst.retain(|packet| {
                let verdict = verdicts.next().flatten();
                let Some(rule) = verdict.filter(|_| is_ipv4(packet.data())) else {
                    unmatched += 1;
                    return false;
                };
                let action = &mut actions[rule.get() as usize - 1];
                action.packets += 1;
                action.allow
            });
            if !burst.is_empty() {
                let peer = common::peer(index, queues.len());
                sent += queues[peer].tx[0].send(&mut burst);
            }
        }
    }
    drop(queues);

    for port in ports {
        port.stop()?;
    }
    for Action { rule, packets, .. } in &actions {
        println!("{rule}: {packets} packets");
    }
    println!("no rule: {unmatched} packets");
    println!("{sent} sent");
    Ok(())
}
