// SPDX-License-Identifier: BSD-3-Clause
//! What it costs to write a frame, in cycles of the core, for a few kinds of frames.
//!
//! `cargo run --release -p linerate-packet --example writer_cost [name]`
//!
//! A cycle is what a third of a dependent 64-bit multiplication takes (three cycles each on Intel
//! since Nehalem and on AMD since Zen), so that the figures hold whatever frequency the core runs
//! at. The best of many rounds is shown: what the code costs, not what the machine does meanwhile.

use std::hint::black_box;
use std::time::Instant;

use packet::field::Pattern;
use packet::frame::{FrameError, FrameSpec, Header, SignatureSpec};
use packet::headers::{ETHERNET, IPV4, IPV6, TCP, UDP, VLAN, VXLAN};
use packet::payload::Payload;
use packet::size::Sizes;
use packet::writer::{Buffer, FrameWriter};

const BURST: usize = 32;
const ROUNDS: usize = 200;
const BURSTS: usize = 500;

/// A buffer as a pool has it: a place that starts on a cache line, and the frame's length.
struct Slot {
    bytes: Box<[u8]>,
    start: usize,
    len: usize,
}

impl Buffer for Slot {
    #[inline]
    fn resize(&mut self, len: usize) -> Option<&mut [u8]> {
        self.len = len;
        self.bytes.get_mut(self.start..)?.get_mut(..len)
    }
}

fn count(start: u128, count: u64) -> Pattern {
    Pattern::Increment { start, step: 1, count }
}

fn counting(ip: Header, source: u128, destination: u128) -> Result<[Header; 2], FrameError> {
    Ok([
        ip.with("src", count(source, 16_126))?.with("dst", count(destination, 16_126))?,
        Header::new(&UDP)
            .with("src_port", count(10_000, 1000))?
            .with("dst_port", count(10_000, 1000))?,
    ])
}

/// Seconds that a cycle takes.
fn cycle() -> f64 {
    const STEPS: u32 = 1_000_000;
    let round = || {
        let mut x = black_box(3u64);
        let start = Instant::now();
        for _ in 0..STEPS {
            x = black_box(0x9e37_79b9_7f4a_7c15u64).wrapping_mul(x);
        }
        black_box(x);
        start.elapsed().as_secs_f64() / f64::from(STEPS) / 3.0
    };
    (0..50).map(|_| round()).fold(f64::MAX, f64::min)
}

/// Cycles per frame of the best round, for bursts of `n` frames.
fn best(n: usize, mut burst: impl FnMut(usize)) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let tick = cycle_once();
        let start = Instant::now();
        (0..BURSTS).for_each(&mut burst);
        let took = start.elapsed().as_secs_f64();
        best = best.min(took / tick / (BURSTS * n) as f64);
    }
    best
}

/// The cycle's length now; a short measurement, as frequencies change.
fn cycle_once() -> f64 {
    static TICK: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *TICK.get_or_init(cycle)
}

fn slots(n: usize, len: usize) -> Vec<Slot> {
    let slot = |_| {
        let bytes: Box<[u8]> = vec![0; len.max(2048) + 320].into();
        Slot { start: bytes.as_ptr().align_offset(64).min(64), bytes, len: 0 }
    };
    (0..n).map(slot).collect()
}

fn writer(name: &str, spec: &FrameSpec, resident: bool, n: usize) -> Result<(), FrameError> {
    let mut figures = [0.0; 2];
    for (figure, buffers) in figures.iter_mut().zip([BURST, 16 * BURST]) {
        let mut writer = FrameWriter::new(spec, 1)?;
        let mut slots = slots(buffers, spec.sizes.max_with_fcs());
        if resident {
            let len = writer.peek_len();
            slots.iter_mut().filter_map(|s| s.resize(len)).for_each(|f| writer.write_still(f));
        }
        let mut stamp = 0;
        *figure = best(n, |i| {
            let from = i * BURST % buffers;
            stamp += 1000;
            writer.write(black_box(&mut slots[from..from + n]), stamp, resident);
        });
    }
    println!("{name:40} {:6.1} {:6.1}", figures[0], figures[1]);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let stack = |headers: Vec<Header>, sizes: Sizes| FrameSpec {
        headers,
        sizes,
        payload: Payload::default(),
        signature: Some(SignatureSpec::Full { stamped: true, integrity: false }),
    };
    let ethernet = || Header::new(&ETHERNET);
    let [ipv4, udp] = counting(Header::new(&IPV4), 0xc612_0001, 0xc613_0001)?;
    let published = vec![ethernet(), ipv4.clone(), udp.clone()];
    let [ipv6, _] = counting(Header::new(&IPV6), 1 << 125 | 1, 1 << 125 | 2)?;
    let outer = vec![ethernet(), Header::new(&IPV4), Header::new(&UDP), Header::new(&VXLAN)];
    let vxlan = [outer, published.clone()].concat();
    let constant = vec![ethernet(), Header::new(&IPV4), Header::new(&UDP)];
    let mut integrity = stack(published.clone(), Sizes::Fixed(1518));
    integrity.signature = Some(SignatureSpec::Full { stamped: true, integrity: true });
    let tagged = vec![ethernet(), Header::new(&VLAN), ipv4.clone(), udp.clone()];
    let full = stack(tagged.clone(), Sizes::Fixed(68));
    let mut short = stack(tagged, Sizes::Fixed(64));
    short.signature = Some(SignatureSpec::Short);
    let tcp = Header::new(&TCP).with("src_port", count(10_000, 1000))?;
    let mut bare = stack(vec![ethernet(), ipv4.clone(), tcp], Sizes::Fixed(64));
    bare.signature = None;
    let imix = || Sizes::preset("imix").unwrap_or(Sizes::Fixed(64));

    println!("{:40} {:>6} {:>6}", "cycles per frame, buffers:", "32", "512");
    let cases = [
        ("IPv4/UDP 64, 4 fields", stack(published.clone(), Sizes::Fixed(64)), false),
        ("IPv4/UDP 64, no field", stack(constant, Sizes::Fixed(64)), false),
        ("VLAN/IPv4/UDP 68, 4 fields, full mark", full, false),
        ("VLAN/IPv4/UDP 64, 4 fields, short mark", short, false),
        ("IPv4/TCP 64, 3 fields, no mark", bare, false),
        ("IPv6/UDP 84, 4 fields", stack(vec![ethernet(), ipv6, udp], Sizes::Fixed(84)), false),
        ("IPv4/UDP 1518, resident", stack(published.clone(), Sizes::Fixed(1518)), true),
        ("IPv4/UDP 1518, resident, integrity", integrity, true),
        ("VXLAN 114, 4 inner fields", stack(vxlan, Sizes::Fixed(114)), false),
        ("IPv4/UDP imix, 4 fields", stack(published.clone(), imix()), false),
        ("IPv4/UDP imix, payload in place", stack(published, imix()), true),
    ];
    for (name, spec, resident) in &cases {
        if wanted(name) {
            writer(name, spec, *resident, BURST)?;
        }
    }
    for n in [16, 8, 4, 1] {
        let (name, spec, resident) = &cases[0];
        if wanted("bursts") {
            writer(&format!("{name}, bursts of {n}"), spec, *resident, n)?;
        }
    }
    Ok(())
}
