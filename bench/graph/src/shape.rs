// SPDX-License-Identifier: BSD-3-Clause
//! Shapes of graphs, as lists of nodes: sources first, then each node after the nodes that send to it.

use std::ops::Range;

/// A shape. The last five are shapes that DPDK's graph_perf_autotest times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A source, a worker, a sink.
    Chain1,
    /// Four workers in a row.
    Chain4,
    /// A worker that splits what it gets between two sinks.
    Split2,
    /// A worker that splits what it gets among four sinks.
    Split4,
    /// A worker that splits what it gets among eight sinks.
    Split8,
    /// Two sources for one chain of four.
    Src2,
    /// A chain of four, the last of which splits between two sinks.
    Sink2,
    /// A worker splits to two workers, each of these to two more, and each of those has a sink.
    Tree,
    /// A worker splits to four workers; two pairs of them meet in two workers, and these in one.
    RevTree,
    /// Four sources with a worker each; each of these splits to the same four workers, which have a sink each.
    ParTree,
}

/// The shapes of graph_perf_autotest, without the chain, which has cells of its own.
pub const SEVEN: [Shape; 5] =
    [Shape::Src2, Shape::Sink2, Shape::Tree, Shape::RevTree, Shape::ParTree];

/// A node of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub is_source: bool,
    /// The nodes that its edges lead to, by their place in the list.
    pub next: Vec<usize>,
    /// The number of parts into which a source's batch has been cut when it arrives here.
    pub parts: usize,
}

/// A run of neighbouring objects in a source's batch that pass the same workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The source, by its place, which is also its number.
    pub source: usize,
    /// The lanes of its objects.
    pub lanes: Range<usize>,
    /// The workers, by their places, in the order in which the objects pass them.
    pub workers: Vec<usize>,
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

    /// The number of workers that each object passes, which is the same on every path.
    pub fn path(self) -> usize {
        way(&self.places(), 1, 0, 0).len()
    }

    /// The batches of all sources, cut where the path changes.
    pub fn stretches(self, batch: u16) -> Vec<Stretch> {
        let places = self.places();
        let mut found: Vec<Stretch> = Vec::new();
        for source in (0..places.len()).filter(|at| places[*at].is_source) {
            for lane in 0..usize::from(batch) {
                let workers = way(&places, batch, source, lane);
                match found.last_mut() {
                    Some(last) if last.source == source && last.workers == workers => {
                        last.lanes.end += 1;
                    }
                    _ => found.push(Stretch { source, lanes: lane..lane + 1, workers }),
                }
            }
        }
        found
    }
}

/// The workers that an object of this source with this lane passes.
fn way(places: &[Place], batch: u16, source: usize, lane: usize) -> Vec<usize> {
    let edge = |at: usize| Split::of(batch, &places[at]).edge(lane);
    let next = |at: &usize| places[*at].next.get(edge(*at)).copied();
    let there = std::iter::successors(next(&source), next);
    there.filter(|at| !places[*at].next.is_empty()).collect()
}

/// The edge of an object with this lane: `lane >> shift & mask`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Split {
    pub shift: u8,
    pub mask: u8,
}

impl Split {
    /// The split of a node that gets one of `parts` parts of a batch and has this many edges.
    pub fn of(batch: u16, place: &Place) -> Self {
        let edges = place.next.len().max(1);
        let part = usize::from(batch) / (place.parts * edges);
        Self { shift: part.max(1).ilog2() as u8, mask: (edges - 1) as u8 }
    }

    fn edge(self, lane: usize) -> usize {
        lane >> self.shift & usize::from(self.mask)
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
            // Every path from every source.
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
        assert_eq!([0, 127, 128, 255].map(|lane| root.edge(lane)), [0, 0, 1, 1]);
        assert_eq!([0, 63, 64, 127, 128, 191].map(|lane| branch.edge(lane)), [0, 0, 1, 1, 0, 0]);
    }

    #[test]
    fn stretches_are_as_long_as_their_way_is_the_same() {
        let told = |shape: Shape| -> Vec<(usize, Range<usize>, Vec<usize>)> {
            let found = shape.stretches(256).into_iter();
            found.map(|each| (each.source, each.lanes, each.workers)).collect()
        };
        assert_eq!(told(Shape::Sink2), [(0, 0..256, vec![1, 2, 3, 4])]);
        assert_eq!(
            told(Shape::Src2),
            [(0, 0..256, vec![2, 3, 4, 5]), (1, 0..256, vec![2, 3, 4, 5])]
        );
        assert_eq!(
            told(Shape::Tree),
            [
                (0, 0..64, vec![1, 2, 4]),
                (0, 64..128, vec![1, 2, 5]),
                (0, 128..192, vec![1, 3, 6]),
                (0, 192..256, vec![1, 3, 7]),
            ]
        );
        assert_eq!(told(Shape::RevTree)[2], (0, 128..192, vec![1, 4, 7, 8]));
        assert_eq!(told(Shape::ParTree).len(), 16);
        assert_eq!(told(Shape::ParTree)[7], (1, 192..256, vec![5, 11]));
    }
}
