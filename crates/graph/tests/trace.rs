// SPDX-License-Identifier: BSD-3-Clause
//! Traces: each packet at each node, in the pcapng format, as far as there is room.
#![allow(clippy::unwrap_used, missing_docs)] // A test may.

use std::sync::{Arc, Mutex};

use dpdk::{Mbuf, Mempool, PoolConfig};
use graph::{EachNode, Executor, GraphBuilder, Outlet, Room, Source};

#[path = "../../dpdk/tests/support/mod.rs"]
mod support;

graph::edges! { pub enum Made { Packets } }

/// A writer that a test can read, and that is full at some point.
#[derive(Clone)]
struct File(Arc<Mutex<Vec<u8>>>, usize);

impl std::io::Write for File {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut file = self.0.lock().unwrap();
        if file.len() + bytes.len() > self.1 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        file.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Sends all on.
struct Pass;

impl<'m> EachNode<Mbuf<'m>> for Pass {
    type Next = Made;

    fn each(&mut self, _: &mut Mbuf<'m>) -> Made {
        Made::Packets
    }
}

/// Gives out these frames at its first poll.
struct Frames<'m>(Vec<Mbuf<'m>>);

impl<'m> Source<Mbuf<'m>> for Frames<'m> {
    type Next = Made;

    fn poll<O: Outlet<Mbuf<'m>, Made>>(&mut self, mut room: Room<'_, Mbuf<'m>>, out: &mut O) {
        room.fill(&mut self.0.drain(..));
        out.forward(Made::Packets, room.into_batch());
    }
}

#[test]
fn a_trace_has_what_comes_to_nodes() {
    let eal = support::eal(&[]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    let walk = |full: usize, packets: u64| {
        let file = File(Arc::default(), full);
        let frames = [6, 4].map(|byte| {
            let mut packet = pool.alloc().unwrap();
            packet.resize(61).unwrap().fill(byte);
            packet
        });
        let mut graph = GraphBuilder::<Mbuf<'_>>::new(&eal, "traced")
            .source("frames", Frames(frames.into()), &[(Made::Packets, "pass")])
            .each("pass", Pass, &[(Made::Packets, "pkt_drop")])
            .pkt_drop()
            .trace(file.clone(), packets)
            .build::<true>()
            .unwrap();
        graph.walk();
        graph.walk();
        let written = graph.traced().unwrap().map_err(|error| error.kind());
        assert_eq!(graph.stats().last().unwrap().objects, Some(2));
        drop(graph);
        (written, Arc::into_inner(file.0).unwrap().into_inner().unwrap())
    };
    let (written, file) = walk(usize::MAX, 3);
    assert_eq!(written, Ok(3));
    // Blocks by their lengths: a section, an interface, three packets.
    let word = |at: usize| u32::from_ne_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut blocks) = (0, Vec::new());
    while at < file.len() {
        let end = at + word(at + 4);
        assert_eq!(word(end - 4), end - at);
        blocks.push((word(at), &file[at + 8..end - 4]));
        at = end;
    }
    let kinds: Vec<usize> = blocks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 6, 6]);
    for ((_, block), (byte, comment)) in
        blocks[2..].iter().zip([(6, "traced: pass"), (4, "traced: pass"), (6, "traced: pkt_drop")])
    {
        assert_eq!(block[12..20], [61u32.to_ne_bytes(), 61u32.to_ne_bytes()].concat());
        assert_eq!(block[20..81], [byte; 61]);
        assert_eq!(block[88..88 + comment.len()], *comment.as_bytes());
    }
    let (written, file) = walk(200, 3);
    assert_eq!(written, Err(std::io::ErrorKind::StorageFull));
    assert!(file.len() <= 200);
}
