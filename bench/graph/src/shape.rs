// SPDX-License-Identifier: BSD-3-Clause
//! Shapes of graphs, as lists of nodes: sources first, then each node after those that send to it.

/// A shape. Behind the chains and splits are the rest of the seven that DPDK's graph_perf_autotest times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A source, a worker, a sink.
    Chain1,
    /// Four workers in a row.
    Chain4,
    /// A worker that splits what it gets between two sinks.
    Split2,
    /// Between four.
    Split4,
    /// Between eight.
    Split8,
    /// Two sources for one chain of four.
    Src2,
    /// A chain of four, the last of which splits between two sinks.
    Sink2,
    /// A worker splits to two, each of which splits to two, each of which has a sink.
    Tree,
    /// A worker splits to four, pairs of which meet in two, which meet in one.
    RevTree,
    /// Four sources with a worker each, which split to four workers with a sink each.
    ParTree,
}

/// Those of graph_perf_autotest but the chain, which has cells of its own.
pub const SEVEN: [Shape; 5] =
    [Shape::Src2, Shape::Sink2, Shape::Tree, Shape::RevTree, Shape::ParTree];

/// A node of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub is_source: bool,
    /// Places of the nodes that its edges lead to.
    pub next: Vec<usize>,
    /// Parts that a source's batch is cut into before it comes here.
    pub parts: usize,
}

impl Shape {
    pub fn name(self) -> &'static str {
        match self {
            Self::Chain1 => "chain1",
            Self::Chain4 => "chain4",
            Self::Split2 => "split2",
            Self::Split4 => "split4",
            Self::Split8 => "split8",
            Self::Src2 => "src2",
            Self::Sink2 => "sink2",
            Self::Tree => "tree",
            Self::RevTree => "revtree",
            Self::ParTree => "partree",
        }
    }

    /// Its nodes.
    pub fn places(self) -> Vec<Place> {
        let mut places = Vec::new();
        let mut add = |is_source, next: &[usize], parts| {
            places.push(Place { is_source, next: next.to_vec(), parts });
        };
        let chain = |add: &mut dyn FnMut(bool, &[usize], usize), sources: usize, workers: usize| {
            for _ in 0..sources {
                add(true, &[sources], 1);
            }
            for worker in sources..sources + workers {
                add(false, &[worker + 1], 1);
            }
        };
        let split = |add: &mut dyn FnMut(bool, &[usize], usize), ways: usize| {
            add(true, &[1], 1);
            add(false, &(2..2 + ways).collect::<Vec<_>>(), 1);
            (0..ways).for_each(|_| add(false, &[], ways));
        };
        match self {
            Self::Chain1 => {
                chain(&mut add, 1, 1);
                add(false, &[], 1);
            }
            Self::Chain4 => {
                chain(&mut add, 1, 4);
                add(false, &[], 1);
            }
            Self::Split2 => split(&mut add, 2),
            Self::Split4 => split(&mut add, 4),
            Self::Split8 => split(&mut add, 8),
            Self::Src2 => {
                chain(&mut add, 2, 4);
                add(false, &[], 1);
            }
            Self::Sink2 => {
                chain(&mut add, 1, 3);
                add(false, &[5, 6], 1);
                (0..2).for_each(|_| add(false, &[], 2));
            }
            Self::Tree => {
                add(true, &[1], 1);
                add(false, &[2, 3], 1);
                add(false, &[4, 5], 2);
                add(false, &[6, 7], 2);
                (8..12).for_each(|sink| add(false, &[sink], 4));
                (0..4).for_each(|_| add(false, &[], 4));
            }
            Self::RevTree => {
                add(true, &[1], 1);
                add(false, &[2, 3, 4, 5], 1);
                [6, 6, 7, 7].iter().for_each(|next| add(false, &[*next], 4));
                (0..2).for_each(|_| add(false, &[8], 4));
                add(false, &[9], 4);
                add(false, &[], 4);
            }
            Self::ParTree => {
                (4..8).for_each(|worker| add(true, &[worker], 1));
                (0..4).for_each(|_| add(false, &[8, 9, 10, 11], 1));
                (12..16).for_each(|sink| add(false, &[sink], 4));
                (0..4).for_each(|_| add(false, &[], 4));
            }
        }
        places
    }

    /// Sources.
    pub fn sources(self) -> usize {
        self.places().iter().filter(|place| place.is_source).count()
    }

    /// Workers that each object passes: as many on every way.
    pub fn path(self) -> usize {
        let places = self.places();
        let mut at = places.iter().position(|place| place.is_source).unwrap_or(0);
        let mut workers = 0;
        while let Some(next) = places[at].next.first() {
            at = *next;
            workers += usize::from(!places[at].next.is_empty());
        }
        workers
    }
}

/// The edge of an object with this lane: `lane >> shift & mask`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Split {
    pub shift: u8,
    pub mask: u8,
}

impl Split {
    /// For a node that gets one of `parts` of a batch and has so many edges.
    pub fn of(batch: u16, place: &Place) -> Self {
        let edges = place.next.len().max(1);
        let part = usize::from(batch) / (place.parts * edges);
        Self { shift: part.max(1).ilog2() as u8, mask: (edges - 1) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_lead_forward_and_every_way_has_as_many_workers() {
        for shape in [Shape::Chain1, Shape::Chain4, Shape::Split8].into_iter().chain(SEVEN) {
            let places = shape.places();
            for (at, place) in places.iter().enumerate() {
                assert!(
                    place.next.iter().all(|next| *next > at && *next < places.len()),
                    "{shape:?}"
                );
                assert!(place.next.len().is_power_of_two() || place.next.is_empty());
            }
            // Each way from each source.
            let mut ways: Vec<(usize, usize)> =
                (0..places.len()).filter(|at| places[*at].is_source).map(|at| (at, 0)).collect();
            while let Some((at, workers)) = ways.pop() {
                if places[at].next.is_empty() {
                    assert_eq!(workers, shape.path(), "{shape:?}");
                }
                let more = usize::from(!places[at].is_source);
                ways.extend(places[at].next.iter().map(|next| (*next, workers + more)));
            }
        }
    }

    #[test]
    fn halves_of_halves_are_told_by_the_lane() {
        let places = Shape::Tree.places();
        let root = Split::of(256, &places[1]);
        let branch = Split::of(256, &places[2]);
        let edge = |split: Split, lane: u32| lane >> split.shift & u32::from(split.mask);
        assert_eq!([0, 127, 128, 255].map(|lane| edge(root, lane)), [0, 0, 1, 1]);
        assert_eq!([0, 63, 64, 127, 128, 191].map(|lane| edge(branch, lane)), [0, 0, 1, 1, 0, 0]);
    }
}
