// SPDX-License-Identifier: BSD-3-Clause
//! The shapes in Rust: once with workers that get batches, and once with workers that get single objects.
//!
//! Fields are named by shape and place; librte_graph knows the nodes by these names.

use graph::{EachNode, Node, topology};

use crate::nodes::{Eight, Four, Make, Object, One, Sink, Two};
use crate::shape::Split;

/// A worker for one place of a shape.
pub trait Worker {
    fn make(seed: u64, split: Split) -> Self;
}

impl<X, const WAY: u8, const WORK: u8> Worker for crate::nodes::Worker<X, WAY, WORK> {
    fn make(seed: u64, split: Split) -> Self {
        Self::new(seed, split)
    }
}

impl<X, const LOOK: bool, const WORK: u8> Worker for crate::nodes::Each<X, LOOK, WORK> {
    fn make(seed: u64, split: Split) -> Self {
        Self::new(seed, split)
    }
}

/// The number of objects that sinks got.
pub trait Sunk {
    fn sunk(&self) -> u64;
}

/// Makes sources, workers and sinks for their places in the shape.
pub trait Places {
    fn source(&self, place: usize) -> Make;
    fn worker<W: Worker>(&self, place: usize) -> W;
}

macro_rules! shape {
    ($kind:ident $bound:ident $name:ident<$($param:ident: $edges:ident),+>
        [$($source:ident $from:literal => $to:ident),+]
        [$($worker:ident $at:literal: $type:ident => { $($edge:ident => $target:ident),+ }),+]
        [$($sink:ident),+]
    ) => {
        topology! {
            pub struct $name<$($param: $bound<Object, Next = $edges>),+> for Object {
                $(source $source: Make => { A => $to },)+
                $($kind $worker: $type => { $($edge => $target),+ },)+
                $(node $sink: Sink),+
            }
        }

        impl<$($param: $bound<Object, Next = $edges> + Worker),+> $name<$($param),+> {
            pub fn new(places: &impl Places) -> Self {
                Self {
                    $($source: places.source($from),)+
                    $($worker: places.worker($at),)+
                    $($sink: Sink::default()),+
                }
            }
        }

        impl<$($param: $bound<Object, Next = $edges>),+> Sunk for $name<$($param),+> {
            fn sunk(&self) -> u64 {
                0 $(+ self.$sink.0)+
            }
        }
    };
}

macro_rules! shapes {
    ($kind:ident $bound:ident) => {
        use super::*;

        shape! { $kind $bound Chain1<W: One> [c1s 0 => c1a] [c1a 1: W => { A => c1z }] [c1z] }
        shape! { $kind $bound Chain4<W: One> [c4s 0 => c4a]
            [c4a 1: W => { A => c4b }, c4b 2: W => { A => c4c }, c4c 3: W => { A => c4d }, c4d 4: W => { A => c4z }]
            [c4z]
        }
        shape! { $kind $bound Split2<X: Two> [p2s 0 => p2a] [p2a 1: X => { A => p2x, B => p2y }] [p2x, p2y] }
        shape! { $kind $bound Split4<X: Four> [p4s 0 => p4a]
            [p4a 1: X => { A => p4w, B => p4x, C => p4y, D => p4z }] [p4w, p4x, p4y, p4z]
        }
        shape! { $kind $bound Split8<X: Eight> [p8s 0 => p8a]
            [p8a 1: X => { A => p8b, B => p8c, C => p8d, D => p8e, E => p8f, F => p8g, G => p8h, H => p8i }]
            [p8b, p8c, p8d, p8e, p8f, p8g, p8h, p8i]
        }
        shape! { $kind $bound Src2<W: One> [s2s 0 => s2a, s2t 1 => s2a]
            [s2a 2: W => { A => s2b }, s2b 3: W => { A => s2c }, s2c 4: W => { A => s2d }, s2d 5: W => { A => s2z }]
            [s2z]
        }
        shape! { $kind $bound Sink2<W: One, X: Two> [k2s 0 => k2a]
            [k2a 1: W => { A => k2b }, k2b 2: W => { A => k2c }, k2c 3: W => { A => k2d },
             k2d 4: X => { A => k2y, B => k2z }]
            [k2y, k2z]
        }
        shape! { $kind $bound Tree<W: One, X: Two> [tes 0 => tea]
            [tea 1: X => { A => teb, B => tec },
             teb 2: X => { A => ted, B => tee }, tec 3: X => { A => tef, B => teg },
             ted 4: W => { A => tew }, tee 5: W => { A => tex }, tef 6: W => { A => tey }, teg 7: W => { A => tez }]
            [tew, tex, tey, tez]
        }
        shape! { $kind $bound RevTree<W: One, X: Four> [rts 0 => rta]
            [rta 1: X => { A => rtb, B => rtc, C => rtd, D => rte },
             rtb 2: W => { A => rtf }, rtc 3: W => { A => rtf }, rtd 4: W => { A => rtg }, rte 5: W => { A => rtg },
             rtf 6: W => { A => rth }, rtg 7: W => { A => rth }, rth 8: W => { A => rtz }]
            [rtz]
        }
        shape! { $kind $bound ParTree<W: One, X: Four> [pts 0 => pta, ptt 1 => ptb, ptu 2 => ptc, ptv 3 => ptd]
            [pta 4: X => { A => pte, B => ptf, C => ptg, D => pth },
             ptb 5: X => { A => pte, B => ptf, C => ptg, D => pth },
             ptc 6: X => { A => pte, B => ptf, C => ptg, D => pth },
             ptd 7: X => { A => pte, B => ptf, C => ptg, D => pth },
             pte 8: W => { A => ptw }, ptf 9: W => { A => ptx }, ptg 10: W => { A => pty }, pth 11: W => { A => ptz }]
            [ptw, ptx, pty, ptz]
        }
    };
}

/// Workers get batches.
pub mod batches {
    shapes! { node Node }
}

/// Workers get one object at a time.
pub mod singles {
    shapes! { each EachNode }
}
