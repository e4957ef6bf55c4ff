// SPDX-License-Identifier: BSD-3-Clause
//! prototype
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]
use graph::{
    Batch, EachNode, Executor, Fused, Librte, Node, Nowhere, Outlet, Room, Source, topology,
};
use std::ffi::CString;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed};

#[repr(C, align(64))]
pub struct Packet {
    addresses: u64,
    ports: u64,
    hash: AtomicU32,
    touched: AtomicU32,
    route: [AtomicU16; 8],
}
type P = &'static Packet;

graph::edges! { pub enum One { On } }

pub struct Src {
    packets: &'static [Packet],
}
impl Source<P> for Src {
    type Next = One;
    #[inline]
    fn poll<O: Outlet<P, One>>(&mut self, mut room: Room<'_, P>, out: &mut O) {
        room.fill(&mut self.packets.iter());
        out.forward(One::On, room.into_batch());
    }
}
fn fold(a: u64, b: u64) -> u64 {
    let p = u128::from(a) * u128::from(b);
    p as u64 ^ (p >> 64) as u64
}
#[inline(always)]
fn hash5(p: &Packet, seed: u64) -> u32 {
    fold(fold(p.addresses ^ 0xa0761d6478bd642f, p.ports ^ seed), 0xe7037ed1a0b428db) as u32
}
pub struct Worker<const PASS: u8, const COPY: usize, const WORK: u8> {
    seed: u64,
    next: One,
    hop: usize,
}
impl<const PASS: u8, const COPY: usize, const WORK: u8> Worker<PASS, COPY, WORK> {
    #[inline(always)]
    fn work(seed: u64, p: &Packet) {
        match WORK {
            1 => p.touched.store(p.touched.load(Relaxed).wrapping_add(1), Relaxed),
            2 => p.hash.store(p.hash.load(Relaxed) ^ hash5(p, seed), Relaxed),
            _ => {}
        }
    }
}
impl<const PASS: u8, const COPY: usize, const WORK: u8> Node<P> for Worker<PASS, COPY, WORK> {
    type Next = One;
    #[inline]
    fn process<O: Outlet<P, One>>(&mut self, mut batch: Batch<'_, P>, out: &mut O) {
        let seed = self.seed;
        match PASS {
            0 => {
                if WORK != 0 {
                    for p in batch.iter() {
                        Self::work(seed, p);
                    }
                }
                out.forward(One::On, batch)
            }
            1 => {
                if WORK != 0 {
                    for p in batch.iter() {
                        Self::work(seed, p);
                    }
                }
                while let Some(a) = batch.take_array::<COPY>() {
                    out.send_array(One::On, a);
                }
                out.send_batch(One::On, batch);
            }
            2 => {
                for p in batch.drain() {
                    Self::work(seed, p);
                    out.send(One::On, p);
                }
            }
            3 => {
                while let Some(a) = batch.take_array::<2>() {
                    for p in a {
                        Self::work(seed, p);
                    }
                    out.send_array(One::On, a);
                }
                for p in batch.drain() {
                    Self::work(seed, p);
                    out.send(One::On, p);
                }
            }
            4 => {
                while let Some(a) = batch.take_array::<4>() {
                    for p in a {
                        Self::work(seed, p);
                    }
                    out.send_array(One::On, a);
                }
                for p in batch.drain() {
                    Self::work(seed, p);
                    out.send(One::On, p);
                }
            }
            _ => {
                let hop = self.hop;
                out.sort(batch, |p| {
                    Self::work(seed, p);
                    if p.route[hop & 7].load(Relaxed) == 0 {
                        One::On
                    } else {
                        std::process::abort()
                    }
                })
            }
        }
    }
}
pub struct Each<const PASS: u8, const WORK: u8> {
    seed: u64,
    hop: usize,
}
impl<const PASS: u8, const WORK: u8> EachNode<P> for Each<PASS, WORK> {
    type Next = One;
    #[inline]
    fn each(&mut self, p: &mut P) -> One {
        Worker::<0, 1, WORK>::work(self.seed, p);
        if PASS == 0 || p.route[self.hop & 7].load(Relaxed) == 0 {
            One::On
        } else {
            std::process::abort()
        }
    }
}
topology! {
    pub struct EachChain4<W: EachNode<P, Next = One>> for P {
        source esrc: Src => { On => ea },
        each ea: W => { On => eb },
        each eb: W => { On => ec },
        each ec: W => { On => ed },
        each ed: W => { On => esink },
        node esink: Sink,
    }
}
fn each_chain<const PASS: u8, const WORK: u8>(
    packets: &'static [Packet],
) -> EachChain4<Each<PASS, WORK>> {
    let w = |i: u64| Each { seed: i.wrapping_mul(0x9e3779b97f4a7c15), hop: i as usize & 7 };
    EachChain4 { esrc: Src { packets }, ea: w(1), eb: w(2), ec: w(3), ed: w(4), esink: Sink(0) }
}
#[derive(Default)]
pub struct Sink(u64);
impl Node<P> for Sink {
    type Next = Nowhere;
    #[inline]
    fn process<O: Outlet<P, Nowhere>>(&mut self, batch: Batch<'_, P>, _: &mut O) {
        self.0 += batch.len() as u64;
        let _ = std::mem::ManuallyDrop::new(batch);
    }
}
topology! {
    pub struct Chain4<W: Node<P, Next = One>> for P {
        source src: Src => { On => a },
        node a: W => { On => b },
        node b: W => { On => c },
        node c: W => { On => d },
        node d: W => { On => sink },
        node sink: Sink,
    }
}
fn chain<const PASS: u8, const COPY: usize, const WORK: u8>(
    packets: &'static [Packet],
) -> Chain4<Worker<PASS, COPY, WORK>> {
    let w = |i: u64| Worker {
        seed: i.wrapping_mul(0x9e3779b97f4a7c15),
        next: One::On,
        hop: i as usize & 7,
    };
    Chain4 { src: Src { packets }, a: w(1), b: w(2), c: w(3), d: w(4), sink: Sink(0) }
}
struct Arm {
    name: String,
    walk: Box<dyn FnMut(u64)>,
    times: Vec<f64>,
}

fn cell<const PASS: u8, const COPY: usize, const WORK: u8, const STATS: bool>(
    eal: &'static dpdk::Eal,
    packets: &'static [Packet],
) {
    let mut arms: Vec<Arm> = Vec::new();
    for cc in ["gcc", "clang"] {
        let path = format!("/tmp/w/gb/{cc}-{PASS}-{COPY}-{WORK}-{}.so", STATS as u8);
        let lib: &'static libloading::Library =
            Box::leak(Box::new(unsafe { libloading::Library::new(&path).unwrap() }));
        unsafe {
            let make: libloading::Symbol<
                '_,
                unsafe extern "C" fn(*const i8, *const Packet, u16, i32) -> i32,
            > = lib.get(b"bench_make").unwrap();
            let name =
                CString::new(format!("c-{cc}-{PASS}-{COPY}-{WORK}-{}", STATS as u8)).unwrap();
            assert_eq!(make(name.as_ptr(), packets.as_ptr(), packets.len() as u16, 4), 0);
            let walk: libloading::Symbol<'static, unsafe extern "C" fn(u64)> =
                lib.get(b"bench_walk").unwrap();
            arms.push(Arm {
                name: format!("c-{cc}"),
                walk: Box::new(move |n| walk(n)),
                times: vec![],
            });
        }
    }
    let fused: Fused<_, 256, STATS> = Fused::new(chain::<PASS, COPY, WORK>(packets));
    let mut fused = Box::new(fused);
    arms.push(Arm {
        name: "fused".into(),
        walk: Box::new(move |n| {
            for _ in 0..n {
                fused.walk();
                std::hint::black_box(&mut *fused);
            }
        }),
        times: vec![],
    });
    if PASS == 0 || PASS == 5 {
        let mut fused: Box<Fused<_, 256, STATS>> =
            Box::new(Fused::new(each_chain::<PASS, WORK>(packets)));
        arms.push(Arm {
            name: "fused-each".into(),
            walk: Box::new(move |n| {
                for _ in 0..n {
                    fused.walk();
                    std::hint::black_box(&mut *fused);
                }
            }),
            times: vec![],
        });
        let mut nodes = each_chain::<PASS, WORK>(packets);
        let _ = &mut nodes;
        let mut rust: Librte<'static, _, 256, STATS> =
            Librte::new(eal, &format!("each-{PASS}-{COPY}-{WORK}-{}", STATS as u8), nodes).unwrap();
        arms.push(Arm {
            name: "rust-each".into(),
            walk: Box::new(move |n| {
                for _ in 0..n {
                    rust.walk()
                }
            }),
            times: vec![],
        });
    }
    let mut rust: Librte<'static, _, 256, STATS> = Librte::new(
        eal,
        &format!("rust-{PASS}-{COPY}-{WORK}-{}", STATS as u8),
        chain::<PASS, COPY, WORK>(packets),
    )
    .unwrap();
    arms.push(Arm {
        name: "rust".into(),
        walk: Box::new(move |n| {
            for _ in 0..n {
                rust.walk()
            }
        }),
        times: vec![],
    });
    let mut plain = (0u64, 0u64);
    arms.push(Arm {
        name: "loop".into(),
        walk: Box::new(move |n| {
            for _ in 0..n {
                for p in packets {
                    for i in 1..=4u64 {
                        Worker::<PASS, COPY, WORK>::work(i.wrapping_mul(0x9e3779b97f4a7c15), p);
                    }
                    plain.0 += 1;
                }
                std::hint::black_box(&mut plain);
            }
        }),
        times: vec![],
    });
    let walks = 2000;
    let mut x = 88172645463325252u64;
    for _ in 0..60 {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        for i in (1..order.len()).rev() {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            order.swap(i, (x % (i as u64 + 1)) as usize);
        }
        for i in order {
            let start = dpdk::tsc::now();
            (arms[i].walk)(walks);
            let t = dpdk::tsc::now() - start;
            arms[i].times.push(t as f64 / (walks * packets.len() as u64) as f64 / 4.0);
        }
    }
    print!("pass {PASS} copy {COPY} work {WORK} stats {STATS:5}: ");
    let med = |v: &Vec<f64>| {
        let mut v = v.clone();
        v.sort_by(f64::total_cmp);
        v[v.len() / 2]
    };
    let best = med(&arms[0].times).min(med(&arms[1].times));
    for a in &arms {
        print!("{} {:.3} ({:.2})  ", a.name, med(&a.times), best / med(&a.times));
    }
    println!();
}
fn main() {
    let (eal, _) = dpdk::Eal::init(
        ["b", "-l", "1", "--no-pci", "--no-huge", "--no-shconf", "-m", "64"].map(str::to_owned),
    )
    .unwrap();
    let eal: &'static dpdk::Eal = Box::leak(Box::new(eal));
    let n: u64 = std::env::args().nth(1).map_or(256, |a| a.parse().unwrap());
    let packets: Vec<Packet> = (0..n)
        .map(|i| Packet {
            addresses: i * 77,
            ports: i * 13,
            hash: 0.into(),
            touched: 0.into(),
            route: Default::default(),
        })
        .collect();
    let packets: &'static [Packet] = packets.leak();
    macro_rules! run { ($($p:literal $c:literal),*) => { $(
        cell::<$p, $c, 0, false>(eal, packets); cell::<$p, $c, 0, true>(eal, packets);
        cell::<$p, $c, 1, false>(eal, packets);
        cell::<$p, $c, 2, false>(eal, packets); cell::<$p, $c, 2, true>(eal, packets); )* } }
    run!(0 8, 1 8, 1 256, 2 8, 3 8, 4 8, 5 8);
}
