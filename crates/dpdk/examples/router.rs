// SPDX-License-Identifier: BSD-3-Clause
//! Routes IPv4 by the longest matching prefix: `router [EAL options] -- [--packets N] --route NETWORK/LENGTH,PORT,MAC...`
//!
//! A route leads through a port to the neighbour with the address MAC. The time to live is
//! decremented, the checksum is updated, and the frame gets the addresses of its new link.
//!
//! ```text
//! $ frames dns.pcap
//! dns.pcap: 13 frames of UDP from 192.0.2.1 to port 53 of 198.51.100.1
//! $ router --no-pci --no-huge -m 128 -l 0 --vdev net_pcap0,rx_pcap=dns.pcap,tx_pcap=out.pcap -- \
//!     --packets 13 --route 198.51.100.0/24,0,02:00:00:00:00:24
//! port 0: 13 sent
//! not IPv4: 0 dropped
//! malformed: 0 dropped
//! without a route: 0 dropped
//! out of time: 0 dropped
//! ```

mod common;

use std::net::Ipv4Addr;
use std::process::ExitCode;

use common::{Options, Result};
use dpdk::lpm::{Lpm, LpmConfig};
use dpdk::{Burst, Eal, Mbuf, Port};
use packet::MacAddr;
use packet::ethernet::{self, Ethernet};
use packet::ipv4::Ipv4;

/// The next hop of a route.
struct Hop {
    port: usize,
    neighbour: MacAddr,
    /// The address of our port.
    own: MacAddr,
}

/// Why a packet was not forwarded.
#[derive(Clone, Copy)]
enum Reason {
    NotIpv4,
    Malformed,
    NoRoute,
    Expired,
}

const REASONS: [&str; 4] = ["not IPv4", "malformed", "without a route", "out of time"];

/// Adds a route whose next hop has the number `hop`, and returns the next hop.
fn add(routes: &mut Lpm<'_>, hop: usize, text: &str, macs: &[MacAddr]) -> Result<Hop> {
    let words: Vec<_> = text.split(',').collect();
    let [network, port, neighbour] = words[..] else {
        return Err("it is NETWORK/LENGTH,PORT,MAC".into());
    };
    let (network, len) = network.split_once('/').ok_or("a network is ADDRESS/LENGTH")?;
    let port = port.parse::<usize>()?;
    let own = *macs.get(port).ok_or_else(|| format!("there is no port {port}"))?;
    routes.add(network.parse::<Ipv4Addr>()?, len.parse()?, hop as u32)?;
    Ok(Hop { port, neighbour: neighbour.parse()?, own })
}

/// Finds a packet's next hop and prepares the packet for it.
fn route(
    packet: &mut Mbuf<'_>,
    routes: &Lpm<'_>,
    hops: &[Hop],
) -> std::result::Result<usize, Reason> {
    // A packet that was just received is not shared, so its bytes can be written.
    let frame = packet.data_mut().ok_or(Reason::Malformed)?;
    let (ethernet, rest) = Ethernet::split_mut(frame).map_err(|_| Reason::Malformed)?;
    if ethernet.ether_type() != ethernet::ETHERTYPE_IPV4 {
        return Err(Reason::NotIpv4);
    }
    let (ip, rest) = Ipv4::split_mut(rest).map_err(|_| Reason::Malformed)?;
    if !ip.checksum_is_right() || ip.payload(rest).is_err() {
        return Err(Reason::Malformed);
    }
    let hop = routes.lookup(ip.destination().into()).ok_or(Reason::NoRoute)?;
    let hop = &hops[hop as usize];
    ip.decrement_ttl().ok_or(Reason::Expired)?;
    ethernet.set_addresses(hop.neighbour, hop.own);
    Ok(hop.port)
}

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let mut options = Options::new(arguments)?;
    let texts = options.all("--route");
    let until = options.until()?;
    let pool = common::pool(&eal, 1)?;
    let mut ports = common::start(&eal, &pool, 1)?;
    let macs = ports.iter().map(|port| Ok(MacAddr(port.control().mac()?)));
    let macs = macs.collect::<Result<Vec<_>>>()?;
    let mut routes = Lpm::new(&eal, &LpmConfig::named("routes"))?;
    let mut hops = Vec::new();
    for text in texts {
        let hop = add(&mut routes, hops.len(), &text, &macs);
        hops.push(hop.map_err(|error| format!("--route {text}: {error}"))?);
    }

    let mut dropped = [0u64; REASONS.len()];
    let mut sent = vec![0; ports.len()];
    let mut queues: Vec<_> = ports.iter_mut().map(Port::queues).collect();
    let mut leaving: Vec<_> = queues.iter().map(|_| Burst::<32>::new()).collect();
    while until.more() {
        for index in 0..queues.len() {
            let mut burst = Burst::<32>::new();
            until.count(queues[index].rx[0].receive(&mut burst));
            for mut packet in burst.drain() {
                match route(&mut packet, &routes, &hops) {
                    // There is room: both bursts have the same size, and `leaving` is emptied below.
                    Ok(port) => drop(leaving[port].push(packet)),
                    Err(reason) => dropped[reason as usize] += 1,
                }
            }
            for ((burst, port), sent) in leaving.iter_mut().zip(&mut queues).zip(&mut sent) {
                if !burst.is_empty() {
                    *sent += port.tx[0].send(burst);
                    burst.clear();
                }
            }
        }
    }
    drop((leaving, queues));

    for (port, sent) in ports.into_iter().zip(sent) {
        println!("port {}: {sent} sent", port.id().index());
        port.stop()?;
    }
    for (reason, packets) in REASONS.iter().zip(dropped) {
        println!("{reason}: {packets} dropped");
    }
    Ok(())
}
