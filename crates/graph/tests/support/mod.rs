// SPDX-License-Identifier: BSD-3-Clause
//! Nodes for tests, and an Eal without devices.
#![allow(dead_code)] // No test uses all of it.

use std::sync::{Arc, Mutex};

use dpdk::Eal;
use graph::{Batch, EachNode, Node, Nowhere, Outlet, Room, Source};

/// Starts DPDK without devices, root or hugepages.
pub fn eal() -> Eal {
    let cpu = host::allowed_cpus().first().unwrap().to_string();
    let prefix = format!("linerate-test-{}", std::process::id());
    let arguments =
        ["test", "-l", &cpu, "--no-pci", "--no-huge", "--no-shconf", "-m", "64", "--file-prefix"];
    Eal::init(arguments.into_iter().map(str::to_owned).chain([prefix])).unwrap().0
}

/// An object: Miri, the sanitizer and the count of live ones detect if it is not freed exactly
/// once.
#[derive(Debug)]
pub struct Item {
    pub number: u64,
    /// The number of single-object nodes that it has passed.
    pub visits: u64,
    pub live: Arc<()>,
}

pub type Object = Box<Item>;

graph::edges! { pub enum Found { Items } }
graph::edges! { pub enum Two { A, B } }
graph::edges! { pub enum Four { A, B, C, D } }

/// Produces numbers, as many in each walk as a list says.
pub struct Numbers {
    pub next: u64,
    pub counts: Vec<usize>,
    pub live: Arc<()>,
}

impl Source<Object> for Numbers {
    type Next = Found;

    fn poll<O: Outlet<Object, Found>>(&mut self, mut room: Room<'_, Object>, out: &mut O) {
        for _ in 0..self.counts.pop().unwrap_or(0) {
            let item = Box::new(Item { number: self.next, visits: 0, live: self.live.clone() });
            if room.push(item).is_err() {
                break;
            }
            self.next += 1;
        }
        out.forward(Found::Items, room.into_batch());
    }
}

/// A number that looks random, made of two.
pub fn mix(number: u64, seed: u64) -> u64 {
    let mut x = number.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 29)
}

/// How a node passes objects on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    Each,
    Pairs,
    Fours,
    Sort,
    /// All to the edge of the first object.
    Forward,
    /// All to the edge of the first object, in pieces.
    Pieces,
}

/// Sends each object to an edge chosen by its number and a seed.
pub struct Choose {
    pub seed: u64,
    pub way: Way,
}

impl Choose {
    pub fn edge(&self, number: u64) -> Four {
        // Long runs and short ones.
        let edges = [Four::A, Four::B, Four::C, Four::D];
        edges[(mix(number / (1 + self.seed % 7), self.seed) % 4) as usize]
    }

    /// Where each object of a batch goes.
    pub fn choices(&self, numbers: &[u64]) -> Vec<Option<Four>> {
        let edge = |number: &u64| Some(self.edge(*number));
        match self.way {
            Way::Each | Way::Sort => numbers.iter().map(edge).collect(),
            Way::Forward => vec![edge(&numbers[0]); numbers.len()],
            // The remainder at the end stays in the batch.
            Way::Pairs => grouped(numbers, 2, edge),
            Way::Fours => grouped(numbers, 4, edge),
            Way::Pieces => {
                numbers.chunks(5).flat_map(|piece| vec![edge(&piece[0]); piece.len()]).collect()
            }
        }
    }
}

/// Sends each object as `Choose` with `Way::Each` does.
pub struct ChooseEach(pub Choose);

impl EachNode<Object> for ChooseEach {
    type Next = Four;

    fn each(&mut self, item: &mut Object) -> Four {
        item.visits += 1;
        self.0.edge(item.number)
    }
}

fn grouped(numbers: &[u64], of: usize, edge: impl Fn(&u64) -> Option<Four>) -> Vec<Option<Four>> {
    let whole = numbers.chunks_exact(of);
    let rest = whole.remainder().len();
    let mut choices: Vec<_> = whole.flat_map(|group| vec![edge(&group[0]); of]).collect();
    choices.extend(vec![None; rest]);
    choices
}

impl Node<Object> for Choose {
    type Next = Four;

    fn process<O: Outlet<Object, Four>>(&mut self, mut batch: Batch<'_, Object>, out: &mut O) {
        match self.way {
            Way::Each => batch.drain().for_each(|item| out.send(self.edge(item.number), item)),
            Way::Pairs => {
                while let Some(items) = batch.take_array::<2>() {
                    out.send_array(self.edge(items[0].number), items);
                }
            }
            Way::Fours => {
                while batch.len() >= 4 {
                    assert!(out.send_front::<4>(self.edge(batch[0].number), &mut batch));
                }
                let edge = self.edge(0);
                assert!(!out.send_front::<4>(edge, &mut batch));
            }
            Way::Sort => out.sort(batch, |item| self.edge(item.number)),
            Way::Forward => out.forward(self.edge(batch[0].number), batch),
            Way::Pieces => {
                while !batch.is_empty() {
                    let piece = batch.split_front(5);
                    out.forward(self.edge(piece[0].number), piece);
                }
            }
        }
    }
}

/// Keeps the numbers of the objects that arrive.
#[derive(Clone, Default)]
pub struct Keep(pub Arc<Mutex<Vec<u64>>>);

impl Keep {
    pub fn numbers(&self) -> Vec<u64> {
        self.0.lock().unwrap().clone()
    }
}

impl Node<Object> for Keep {
    type Next = Nowhere;

    fn process<O: Outlet<Object, Nowhere>>(&mut self, batch: Batch<'_, Object>, _: &mut O) {
        self.0.lock().unwrap().extend(batch.drain().map(|item| item.number + (item.visits << 32)));
    }
}
