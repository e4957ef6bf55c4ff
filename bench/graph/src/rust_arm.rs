// SPDX-License-Identifier: BSD-3-Clause
//! Rust nodes, in librte_graph and fused, and one loop that does their work without a graph.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use dpdk::Eal;
use graph::{Executor, Fused, GraphError, Librte, Topology};

use crate::arm::{Arm, Packets, Parts};
use crate::cell::{ASSIGN1, COPY1, COPY8, Cell, SPECULATE, SWAP};
use crate::nodes::{Each, Eight, Four, Object, One, Two, Worker};
use crate::packet::{HASH5, LINE, NOTHING, Packet, seed};
use crate::shape::{self, Shape};
use crate::topologies::{Sunk, batches, singles};

struct InLibrte<T: Topology, const BURST: usize, const STATS: bool>(
    Librte<'static, T, BURST, STATS>,
);

impl<T: Topology + Sunk, const BURST: usize, const STATS: bool> Arm for InLibrte<T, BURST, STATS> {
    fn walk(&mut self, walks: u64) {
        for _ in 0..walks {
            self.0.walk();
        }
    }

    fn sunk(&mut self) -> u64 {
        self.0.with_nodes(|nodes| nodes.sunk())
    }
}

struct InOne<T: Topology, const BURST: usize, const STATS: bool>(Fused<T, BURST, STATS>);

impl<T: Topology + Sunk, const BURST: usize, const STATS: bool> Arm for InOne<T, BURST, STATS> {
    fn walk(&mut self, walks: u64) {
        for _ in 0..walks {
            self.0.walk();
            // Keeps the compiler from removing the work of a walk.
            black_box(&mut self.0);
        }
    }

    fn sunk(&mut self) -> u64 {
        self.0.nodes().sunk()
    }
}

type Boxed = Box<dyn Arm>;
type Made = Result<Option<Boxed>, GraphError>;

fn in_librte<T: Topology + Sunk + 'static, const BURST: usize>(
    eal: &'static Eal,
    stats: bool,
    nodes: T,
) -> Made {
    static GRAPHS: AtomicU64 = AtomicU64::new(0);
    let name = format!("rust-{}", GRAPHS.fetch_add(1, Ordering::Relaxed));
    Ok(Some(if stats {
        Box::new(InLibrte::<T, BURST, true>(Librte::new(eal, &name, nodes)?))
    } else {
        Box::new(InLibrte::<T, BURST, false>(Librte::new(eal, &name, nodes)?))
    }))
}

fn fused<T: Topology + Sunk + 'static, const BURST: usize>(stats: bool, nodes: T) -> Option<Boxed> {
    Some(if stats {
        Box::new(InOne::<T, BURST, true>(Fused::new(nodes)))
    } else {
        Box::new(InOne::<T, BURST, false>(Fused::new(nodes)))
    })
}

/// Calls the function that is compiled for the cell's kind of work.
macro_rules! by_work {
    ($work:expr, $function:ident ($($argument:expr),*)) => {
        match $work {
            NOTHING => $function::<NOTHING>($($argument),*),
            LINE => $function::<LINE>($($argument),*),
            _ => $function::<HASH5>($($argument),*),
        }
    };
}

/// Makes the arm of Rust nodes in librte_graph; `None` if the cell has none.
pub fn librte(eal: &'static Eal, parts: &Parts<'_>) -> Made {
    by_work!(parts.cell.work, librte_of(eal, parts))
}

fn librte_of<const WORK: u8>(eal: &'static Eal, parts: &Parts<'_>) -> Made {
    /// Makes one shape with one way to pass objects on.
    macro_rules! graph {
        ($shape:ident<$($edges:ident),+>, $way:expr) => {
            in_librte::<batches::$shape<$(Worker<$edges, { $way }, WORK>),+>, 256>(
                eal, parts.cell.stats, batches::$shape::new(parts),
            )
        };
    }
    /// Makes one shape with the way to pass objects on that the cell asks for.
    macro_rules! of_four_ways {
        ($shape:ident<$edges:ident>) => {
            match parts.cell.way {
                SWAP => graph!($shape<$edges>, SWAP),
                COPY8 => graph!($shape<$edges>, COPY8),
                ASSIGN1 => graph!($shape<$edges>, ASSIGN1),
                SPECULATE => graph!($shape<$edges>, SPECULATE),
                _ => Ok(None),
            }
        };
    }
    if parts.cell.batch > 256 {
        type Nodes<const WORK: u8> = batches::Chain4<Worker<One, SWAP, WORK>>;
        return in_librte::<Nodes<WORK>, 512>(eal, parts.cell.stats, batches::Chain4::new(parts));
    }
    match parts.cell.shape {
        Shape::Chain1 => of_four_ways!(Chain1<One>),
        Shape::Split2 => of_four_ways!(Split2<Two>),
        Shape::Split4 => of_four_ways!(Split4<Four>),
        Shape::Split8 => of_four_ways!(Split8<Eight>),
        Shape::Src2 => graph!(Src2<One>, SWAP),
        Shape::Sink2 => graph!(Sink2<One, Two>, SWAP),
        Shape::Tree => graph!(Tree<One, Two>, SWAP),
        Shape::RevTree => graph!(RevTree<One, Four>, SWAP),
        Shape::ParTree => graph!(ParTree<One, Four>, SWAP),
        Shape::Chain4 => match parts.cell.way {
            SWAP => graph!(Chain4<One>, SWAP),
            1 => graph!(Chain4<One>, 1),
            2 => graph!(Chain4<One>, 2),
            3 => graph!(Chain4<One>, 3),
            4 => graph!(Chain4<One>, 4),
            5 => graph!(Chain4<One>, 5),
            6 => graph!(Chain4<One>, 6),
            7 => graph!(Chain4<One>, 7),
            8 => graph!(Chain4<One>, 8),
            9 => graph!(Chain4<One>, 9),
            10 => graph!(Chain4<One>, 10),
            11 => graph!(Chain4<One>, 11),
            _ => graph!(Chain4<One>, SPECULATE),
        },
    }
}

/// Makes the fused arm of nodes that get one object at a time; `None` where fused nodes have no pointers to copy.
pub fn fused_nodes(parts: &Parts<'_>) -> Option<Boxed> {
    if (COPY1..ASSIGN1).contains(&parts.cell.way) {
        return None;
    }
    by_work!(parts.cell.work, fused_of(parts))
}

/// Makes the fused arm of the nodes of `rust-graph`, which get batches; `None` if the cell has none.
pub fn fused_batches(parts: &Parts<'_>) -> Option<Boxed> {
    match parts.cell.way {
        SWAP => by_work!(parts.cell.work, fused_swap_of(parts)),
        SPECULATE => by_work!(parts.cell.work, fused_speculate_of(parts)),
        _ => None,
    }
}

macro_rules! batches {
    ($parts:expr, $shape:ident<$($edges:ident),+>, $way:ident, $burst:literal) => {
        fused::<batches::$shape<$(Worker<$edges, $way, WORK>),+>, $burst>(
            $parts.cell.stats, batches::$shape::new($parts),
        )
    };
}

fn fused_speculate_of<const WORK: u8>(parts: &Parts<'_>) -> Option<Boxed> {
    match parts.cell.shape {
        Shape::Chain1 => batches!(parts, Chain1<One>, SPECULATE, 256),
        Shape::Chain4 => batches!(parts, Chain4<One>, SPECULATE, 256),
        Shape::Split2 => batches!(parts, Split2<Two>, SPECULATE, 256),
        Shape::Split4 => batches!(parts, Split4<Four>, SPECULATE, 256),
        Shape::Split8 => batches!(parts, Split8<Eight>, SPECULATE, 256),
        _ => None,
    }
}

fn fused_swap_of<const WORK: u8>(parts: &Parts<'_>) -> Option<Boxed> {
    match parts.cell.shape {
        Shape::Chain1 => batches!(parts, Chain1<One>, SWAP, 256),
        Shape::Chain4 if parts.cell.batch > 256 => batches!(parts, Chain4<One>, SWAP, 512),
        Shape::Chain4 => batches!(parts, Chain4<One>, SWAP, 256),
        Shape::Split2 => batches!(parts, Split2<Two>, SWAP, 256),
        Shape::Split4 => batches!(parts, Split4<Four>, SWAP, 256),
        Shape::Split8 => batches!(parts, Split8<Eight>, SWAP, 256),
        Shape::Src2 => batches!(parts, Src2<One>, SWAP, 256),
        Shape::Sink2 => batches!(parts, Sink2<One, Two>, SWAP, 256),
        Shape::Tree => batches!(parts, Tree<One, Two>, SWAP, 256),
        Shape::RevTree => batches!(parts, RevTree<One, Four>, SWAP, 256),
        Shape::ParTree => batches!(parts, ParTree<One, Four>, SWAP, 256),
    }
}

fn fused_of<const WORK: u8>(parts: &Parts<'_>) -> Option<Boxed> {
    macro_rules! graph {
        ($shape:ident<$($edges:ident),+>, $look:literal, $burst:literal) => {
            fused::<singles::$shape<$(Each<$edges, $look, WORK>),+>, $burst>(
                parts.cell.stats, singles::$shape::new(parts),
            )
        };
    }
    let look = parts.cell.way == SPECULATE;
    match parts.cell.shape {
        Shape::Chain1 if look => graph!(Chain1<One>, true, 256),
        Shape::Chain1 => graph!(Chain1<One>, false, 256),
        Shape::Chain4 if parts.cell.batch > 256 => graph!(Chain4<One>, false, 512),
        Shape::Chain4 if look => graph!(Chain4<One>, true, 256),
        Shape::Chain4 => graph!(Chain4<One>, false, 256),
        Shape::Split2 => graph!(Split2<Two>, false, 256),
        Shape::Split4 => graph!(Split4<Four>, false, 256),
        Shape::Split8 => graph!(Split8<Eight>, false, 256),
        Shape::Src2 => graph!(Src2<One>, false, 256),
        Shape::Sink2 => graph!(Sink2<One, Two>, false, 256),
        Shape::Tree => graph!(Tree<One, Two>, false, 256),
        Shape::RevTree => graph!(RevTree<One, Four>, false, 256),
        Shape::ParTree => graph!(ParTree<One, Four>, false, 256),
    }
}

/// A run of neighbouring objects of a batch, and the seeds of the workers that they pass.
struct Stretch<const WORKERS: usize> {
    first: *mut Packet,
    count: usize,
    seeds: [u64; WORKERS],
}

/// A loop over the packets. The innermost loop has no decisions: what differs between packets is decided outside.
struct Loop<const WORKERS: usize, const WORK: u8> {
    stretches: Vec<Stretch<WORKERS>>,
    sunk: u64,
}

impl<const WORKERS: usize, const WORK: u8> Arm for Loop<WORKERS, WORK> {
    fn walk(&mut self, walks: u64) {
        for _ in 0..walks {
            for Stretch { first, count, seeds } in &self.stretches {
                for at in 0..*count {
                    // SAFETY: so many packets lie there, and this arm alone uses them.
                    let packet: Object = unsafe { &mut *first.add(at) };
                    for seed in *seeds {
                        packet.work::<WORK>(seed);
                    }
                    self.sunk += 1;
                }
            }
            black_box(&mut *self);
        }
    }

    fn sunk(&mut self) -> u64 {
        self.sunk
    }
}

/// Makes the arm that does the same work in one loop; `None` if the cell has none.
pub fn one_loop(cell: Cell, packets: &Packets) -> Option<Boxed> {
    if cell.work == NOTHING {
        return None;
    }
    Some(by_work!(cell.work, loop_of(cell, packets)))
}

fn loop_of<const WORK: u8>(cell: Cell, packets: &Packets) -> Boxed {
    match cell.shape {
        Shape::Chain1 | Shape::Split2 | Shape::Split4 | Shape::Split8 => {
            looped::<1, WORK>(cell, packets)
        }
        Shape::ParTree => looped::<2, WORK>(cell, packets),
        Shape::Tree => looped::<3, WORK>(cell, packets),
        Shape::Chain4 | Shape::Src2 | Shape::Sink2 | Shape::RevTree => {
            looped::<4, WORK>(cell, packets)
        }
    }
}

/// Makes the loop for a shape in which each object passes `WORKERS` workers.
fn looped<const WORKERS: usize, const WORK: u8>(cell: Cell, packets: &Packets) -> Boxed {
    let stretch = |each: shape::Stretch| Stretch {
        // SAFETY: each source has as many packets as any batch, and lanes are places in it.
        first: unsafe { packets.of(each.source).add(each.lanes.start) },
        count: each.lanes.len(),
        seeds: std::array::from_fn(|worker| seed(each.workers[worker])),
    };
    let stretches = cell.shape.stretches(cell.batch).into_iter().map(stretch).collect();
    Box::new(Loop::<WORKERS, WORK> { stretches, sunk: 0 })
}
