// SPDX-License-Identifier: BSD-3-Clause
//! Random requests through every kind of end, in turn: contents and order equal those of a
//! `VecDeque`. Each item has one owner, so that it is dropped once; at the end the ring has leaked
//! nothing.

use std::cell::Cell;
use std::collections::VecDeque;

use dpdk::ring::{Items, NoRoom, Ring, RingConfig, TooFew};
use dpdk::{Burst, Eal, Mbuf, Mempool, PoolConfig};
use proptest::prelude::*;

use super::support::holdings::Holdings;
use super::support::property::for_all;

/// Which end is used: `&Ring` itself, or one from a split.
#[derive(Clone, Copy, Debug)]
enum End {
    Whole,
    One,
    Many,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Single,
    Array,
    Bulk,
    Burst,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    enqueue: bool,
    end: End,
    how: How,
    n: usize,
}

/// The number of items in this test's arrays.
const ARRAY: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![Just(End::Whole), Just(End::One), Just(End::Many)];
    let how = prop_oneof![Just(How::Single), Just(How::Array), Just(How::Bulk), Just(How::Burst)];
    (any::<bool>(), end, how, 0..12usize).prop_map(|(enqueue, end, how, n)| {
        let n = match how {
            How::Single => 1,
            How::Array => ARRAY,
            How::Bulk | How::Burst => n,
        };
        Step { enqueue, end, how, n }
    })
}

pub fn agree(eal: &Eal) {
    boxes::<1>(eal);
    boxes::<2>(eal);
    boxes::<5>(eal);
    packets(eal);
}

/// Calls the same method on the end that a step uses.
macro_rules! at {
    ($ring:ident, $step:ident, $end:ident, $method:ident($($argument:expr),*)) => {
        at!(@ $end, $ring, $step, $method($($argument),*))
    };
    (@ producer, $ring:ident, $step:ident, $method:ident($($argument:expr),*)) => {
        match $step.end {
            End::Whole => $ring.$method($($argument),*),
            End::One => $ring.split().0.$method($($argument),*),
            End::Many => $ring.split_many_to_one().0.clone().$method($($argument),*),
        }
    };
    (@ consumer, $ring:ident, $step:ident, $method:ident($($argument:expr),*)) => {
        match $step.end {
            End::Whole => $ring.$method($($argument),*),
            End::One => $ring.split().1.$method($($argument),*),
            End::Many => $ring.split_one_to_many().1.clone().$method($($argument),*),
        }
    };
}

/// An item of N times 8 bytes, each of which is dropped once.
struct Item<'l, const WORDS: usize> {
    words: [Box<u64>; WORDS],
    live: &'l Cell<usize>,
}

impl<const WORDS: usize> Drop for Item<'_, WORDS> {
    fn drop(&mut self) {
        assert!(self.words.iter().all(|word| **word == *self.words[0]), "parts of several items");
        self.live.set(self.live.get() - 1);
    }
}

fn boxes<const WORDS: usize>(eal: &Eal) {
    let live = Cell::new(0);
    let make = |number| {
        live.set(live.get() + 1);
        Item { words: std::array::from_fn(|_| Box::new(number)), live: &live }
    };
    compare::<Item<'_, WORDS>, Vec<_>>(eal, make, |item| *item.words[0], || live.get());
}

fn packets(eal: &Eal) {
    let config = PoolConfig { count: 127, cache: 8, ..PoolConfig::named("oracle") };
    let pool = Mempool::packet_pool(eal, &config).unwrap();
    let make = |number: u64| {
        let mut mbuf = pool.alloc().unwrap();
        mbuf.append(8).unwrap().copy_from_slice(&number.to_ne_bytes());
        mbuf
    };
    let number = |mbuf: &Mbuf<'_>| u64::from_ne_bytes(mbuf.data().try_into().unwrap());
    compare::<Mbuf<'_>, Burst<'_, 12>>(eal, make, number, || pool.in_use());
}

/// The source and destination of several items.
trait Several<T>: Items<T> {
    /// With this much room, if it can be chosen.
    fn with_room(room: usize) -> Self;
    fn put(&mut self, item: T);
    fn room(&self) -> usize;
    fn inside(&mut self) -> Vec<T>;
}

impl<T> Several<T> for Vec<T> {
    fn with_room(room: usize) -> Self {
        Self::with_capacity(room)
    }
    fn put(&mut self, item: T) {
        self.push(item);
    }
    fn room(&self) -> usize {
        self.capacity() - self.len()
    }
    fn inside(&mut self) -> Vec<T> {
        std::mem::take(self)
    }
}

impl<'m, const N: usize> Several<Mbuf<'m>> for Burst<'m, N> {
    fn with_room(_: usize) -> Self {
        Self::new()
    }
    fn put(&mut self, item: Mbuf<'m>) {
        assert!(self.push(item).is_ok());
    }
    fn room(&self) -> usize {
        self.spare()
    }
    fn inside(&mut self) -> Vec<Mbuf<'m>> {
        self.drain().collect()
    }
}

fn compare<T, S: Several<T>>(
    eal: &Eal,
    make: impl Fn(u64) -> T,
    number: impl Fn(&T) -> u64,
    live: impl Fn() -> usize,
) {
    // One slot that is never used, several, and only the one that every ring has.
    let capacity = prop_oneof![Just(1), Just(7), Just(8), Just(21)];
    for_all(10..=100, &(capacity, prop::collection::vec(step(), 1..150)), |(capacity, steps)| {
        let before = Holdings::now();
        let config = RingConfig { capacity, ..RingConfig::named("oracle") };
        let mut ring = Ring::<T>::new(eal, &config).unwrap();
        let mut model = VecDeque::new();
        let mut next = 0;
        for step in steps {
            if step.enqueue {
                let numbers = next..next + step.n as u64;
                next = numbers.end;
                let items = numbers.clone().map(&make).collect();
                let spare = capacity as usize - model.len();
                let taken = enqueue::<T, S>(&mut ring, items, step, spare, &number)?;
                model.extend(numbers.take(taken));
            } else {
                let items = dequeue::<T, S>(&mut ring, step, model.len(), &make)?;
                let numbers: Vec<u64> = items.iter().map(&number).collect();
                let expected: Vec<u64> = model.drain(..items.len()).collect();
                prop_assert_eq!(numbers, expected);
            }
            let capacity = capacity as usize;
            prop_assert_eq!((ring.len(), ring.capacity()), (model.len(), capacity));
            prop_assert_eq!(
                (ring.is_empty(), ring.spare()),
                (model.is_empty(), capacity - model.len())
            );
            prop_assert_eq!(live(), model.len(), "each is inside, or dropped");
        }
        drop(ring);
        prop_assert_eq!(live(), 0);
        prop_assert_eq!(Holdings::now(), before);
        Ok(())
    });
}

/// Returns how many were enqueued; the others stay, at the end and in their places.
fn enqueue<T, S: Several<T>>(
    ring: &mut Ring<'_, T>,
    mut items: Vec<T>,
    step: Step,
    spare: usize,
    number: impl Fn(&T) -> u64,
) -> Result<usize, TestCaseError> {
    let n = items.len();
    let all = if n <= spare { n } else { 0 };
    let numbers: Vec<u64> = items.iter().map(&number).collect();
    let (taken, mut left) = match step.how {
        How::Single => match at!(ring, step, producer, enqueue(items.remove(0))) {
            Ok(()) => (1, Vec::new()),
            Err(item) => (0, vec![item]),
        },
        How::Array => {
            let Ok(items) = <[T; ARRAY]>::try_from(items) else { unreachable!() };
            match at!(ring, step, producer, enqueue_array(items)) {
                Ok(()) => (ARRAY, Vec::new()),
                Err(items) => (0, Vec::from(items)),
            }
        }
        How::Bulk | How::Burst => {
            let mut several = S::with_room(n);
            items.into_iter().for_each(|item| several.put(item));
            let taken = match step.how {
                How::Bulk => match at!(ring, step, producer, enqueue_bulk(&mut several)) {
                    Ok(()) => n,
                    Err(NoRoom(asked)) => {
                        prop_assert_eq!(asked, n);
                        0
                    }
                },
                _ => at!(ring, step, producer, enqueue_burst(&mut several)),
            };
            (taken, several.inside())
        }
    };
    prop_assert_eq!(taken, if matches!(step.how, How::Burst) { n.min(spare) } else { all });
    let left: Vec<u64> = left.drain(..).map(|item| number(&item)).collect();
    prop_assert_eq!(&left[..], &numbers[taken..]);
    Ok(taken)
}

/// Returns the items that were dequeued.
fn dequeue<T, S: Several<T>>(
    ring: &mut Ring<'_, T>,
    step: Step,
    inside: usize,
    make: impl Fn(u64) -> T,
) -> Result<Vec<T>, TestCaseError> {
    let n = step.n;
    let items = match step.how {
        How::Single => Vec::from_iter(at!(ring, step, consumer, dequeue())),
        How::Array => {
            let items: Option<[T; ARRAY]> = at!(ring, step, consumer, dequeue_array());
            items.map_or_else(Vec::new, Vec::from)
        }
        How::Bulk | How::Burst => {
            // After an item that is already there.
            let mut several = S::with_room(n);
            several.put(make(u64::MAX));
            let room = several.room();
            let expected = match step.how {
                How::Bulk => {
                    let outcome = at!(ring, step, consumer, dequeue_bulk(&mut several, n));
                    let expected = match (n <= room, n <= inside) {
                        (false, _) => Err(TooFew::Places { asked: n, spare: room }),
                        (true, false) => Err(TooFew::Items(n)),
                        (true, true) => Ok(()),
                    };
                    prop_assert_eq!(outcome, expected);
                    if outcome.is_ok() { n } else { 0 }
                }
                _ => at!(ring, step, consumer, dequeue_burst(&mut several)),
            };
            if matches!(step.how, How::Burst) {
                prop_assert_eq!(expected, room.min(inside));
            }
            let mut items = several.inside();
            prop_assert_eq!(items.len(), expected + 1);
            drop(items.remove(0));
            return Ok(items);
        }
    };
    prop_assert_eq!(items.len(), if n <= inside { n } else { 0 });
    Ok(items)
}
