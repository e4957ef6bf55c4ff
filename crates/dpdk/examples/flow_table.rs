// SPDX-License-Identifier: BSD-3-Clause
//! Counts the packets of each IPv4 flow: `flow_table [EAL options] -- [--packets N] [--flows N] [--show N]`
//!
//! A flow is identified by addresses, ports and protocol. The table (`--flows`, by default 1024)
//! maps it to an index into a vector of counters. Packets leave on the port on which they came; at
//! the end the largest flows (`--show`, by default 10) are printed.
//!
//! ```text
//! $ frames dns.pcap
//! dns.pcap: 13 frames of UDP from 192.0.2.1 to port 53 of 198.51.100.1
//! $ flow_table --no-pci --no-huge -m 128 -l 0 --vdev net_pcap0,rx_pcap=dns.pcap,tx_pcap=out.pcap -- --packets 13 --show 2
//! 10 flows, 0 packets of no flow, 0 for which the table was full
//! 192.0.2.1:1003 > 198.51.100.1:53 protocol 17: 3 packets, 180 bytes
//! 192.0.2.1:1004 > 198.51.100.1:53 protocol 17: 2 packets, 120 bytes
//! ```

mod common;

use std::net::Ipv4Addr;
use std::process::ExitCode;

use common::{Options, Result};
use dpdk::hash::{Hash, HashConfig};
use dpdk::{Burst, Eal, Port};
use packet::ethernet::{self, Ethernet};
use packet::ipv4::{Ipv4, PROTOCOL_SCTP, PROTOCOL_TCP, PROTOCOL_UDP};

/// Source, destination, both ports, protocol. No padding: the table compares bytes.
type Flow = [u32; 4];

#[derive(Clone, Copy, Default)]
struct Counters {
    packets: u64,
    bytes: u64,
}

/// The flow of a frame, if it is IPv4. Packets without ports (ICMP, later fragments) have zeros.
fn flow(frame: &[u8]) -> Option<Flow> {
    let (ethernet, rest) = Ethernet::split(frame).ok()?;
    if ethernet.ether_type() != ethernet::ETHERTYPE_IPV4 {
        return None;
    }
    let (ip, rest) = Ipv4::split(rest).ok()?;
    let has_ports = matches!(ip.protocol(), PROTOCOL_TCP | PROTOCOL_UDP | PROTOCOL_SCTP)
        && ip.fragment_offset() == 0;
    let ports =
        rest.first_chunk().filter(|_| has_ports).map_or(0, |ports| u32::from_be_bytes(*ports));
    Some([ip.source().into(), ip.destination().into(), ports, ip.protocol().into()])
}

fn text([source, destination, ports, protocol]: Flow) -> String {
    let (source, destination) = (Ipv4Addr::from(source), Ipv4Addr::from(destination));
    format!("{source}:{} > {destination}:{} protocol {protocol}", ports >> 16, ports & 0xffff)
}

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let mut options = Options::new(arguments)?;
    let capacity = options.get("--flows")?.unwrap_or(1024);
    let show = options.get("--show")?.unwrap_or(10);
    let until = options.until()?;
    let pool = common::pool(&eal, 1)?;
    let config = HashConfig { capacity, ..HashConfig::named("flows") };
    let mut table = Hash::<Flow, u32>::new(&eal, &config)?;
    let mut counters = Vec::<Counters>::with_capacity(table.capacity());
    let (mut other, mut untracked) = (0u64, 0u64);
    let mut ports = common::start(&eal, &pool, 1)?;

    let mut queues: Vec<_> = ports.iter_mut().map(Port::queues).collect();
    while until.more() {
        for port in &mut queues {
            let mut burst = Burst::<32>::new();
            until.count(port.rx[0].receive(&mut burst));
            for packet in burst.iter() {
                let Some(flow) = flow(packet.data()) else {
                    other += 1;
                    continue;
                };
                let index = match table.get(&flow) {
                    Some(index) => index,
                    // The vector has the table's capacity: nothing is allocated here.
                    None => match table.insert(&flow, counters.len() as u32) {
                        Ok(_) => {
                            counters.push(Counters::default());
                            counters.len() as u32 - 1
                        }
                        Err(_full) => {
                            untracked += 1;
                            continue;
                        }
                    },
                };
                let flow = &mut counters[index as usize];
                flow.packets += 1;
                flow.bytes += packet.packet_len() as u64;
            }
            port.tx[0].send(&mut burst);
        }
    }
    drop(queues);

    for port in ports {
        port.stop()?;
    }
    let mut flows: Vec<_> =
        table.iter().map(|(flow, index)| (counters[index as usize], text(flow))).collect();
    flows.sort_by(|a, b| b.0.packets.cmp(&a.0.packets).then_with(|| a.1.cmp(&b.1)));
    println!(
        "{} flows, {other} packets of no flow, {untracked} for which the table was full",
        flows.len()
    );
    for (Counters { packets, bytes }, flow) in flows.into_iter().take(show) {
        println!("{flow}: {packets} packets, {bytes} bytes");
    }
    Ok(())
}
