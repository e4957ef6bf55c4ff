// SPDX-License-Identifier: BSD-3-Clause
//! Captured frames in memory: one queue for each tap, read in order of time.

use std::collections::VecDeque;

use capture_file::ring::Record;

/// Bytes that a record counts besides its captured ones.
const RECORD_COST: usize = size_of::<Record>();

/// The frames of one tap, oldest first.
#[derive(Clone, Debug, Default)]
struct Lane {
    records: VecDeque<Record>,
    bytes: VecDeque<u8>,
}

/// The frames of all taps.
#[derive(Clone, Debug)]
pub(super) struct Store {
    lanes: Vec<Lane>,
    max_bytes: usize,
    max_frames: u64,
    bytes: usize,
    frames: u64,
}

impl Store {
    pub(super) fn new(lanes: usize, max_bytes: usize, max_frames: Option<u64>) -> Self {
        Store {
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            max_bytes,
            max_frames: max_frames.unwrap_or(u64::MAX),
            bytes: 0,
            frames: 0,
        }
    }

    /// Frames in it.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Bytes of these frames.
    pub(super) fn captured(&self) -> usize {
        self.bytes - RECORD_COST * usize::try_from(self.frames).unwrap_or_default()
    }

    /// Whether one more record is within the limits.
    pub(super) fn fits(&self, record: &Record) -> bool {
        self.frames < self.max_frames
            && self.bytes + RECORD_COST + record.captured as usize <= self.max_bytes
    }

    /// Drops the oldest frame; returns false if there is none.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let front = |lane: &Lane| lane.records.front().map(|record| record.tsc);
        let oldest = self
            .lanes
            .iter_mut()
            .filter(|lane| front(lane).is_some())
            .min_by_key(|lane| front(lane));
        let Some(lane) = oldest else { return false };
        let Some(record) = lane.records.pop_front() else { return false };
        lane.bytes.drain(..record.captured as usize);
        self.bytes -= RECORD_COST + record.captured as usize;
        self.frames -= 1;
        true
    }

    /// Appends a frame of a tap. Its bytes come in two parts.
    pub(super) fn push(&mut self, lane: usize, record: Record, one: &[u8], two: &[u8]) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        let captured = one.len() + two.len();
        // Doubled, but not beyond the limit.
        if lane.bytes.capacity() - lane.bytes.len() < captured {
            let doubled = (lane.bytes.capacity() * 2).clamp(1 << 16, self.max_bytes.max(1 << 16));
            let wanted = doubled.max(lane.bytes.len() + captured);
            lane.bytes.reserve_exact(wanted - lane.bytes.len());
        }
        lane.bytes.extend(one);
        lane.bytes.extend(two);
        lane.records.push_back(record);
        self.bytes += RECORD_COST + captured;
        self.frames += 1;
    }

    /// All frames by time, each with its bytes in two parts; at equal times the first tap's come
    /// first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Record, &[u8], &[u8])> {
        // The next record of each lane and where its bytes start.
        let mut next = vec![(0usize, 0usize); self.lanes.len()];
        std::iter::from_fn(move || {
            let heads = self.lanes.iter().zip(next.iter_mut());
            let (lane, (index, at), record) = heads
                .filter_map(|(lane, place)| {
                    let record = lane.records.get(place.0)?;
                    Some((lane, (&mut place.0, &mut place.1), record))
                })
                .min_by_key(|(.., record)| record.tsc)?;
            let (start, end) = (*at, *at + record.captured as usize);
            (*index, *at) = (*index + 1, end);
            let (front, back) = lane.bytes.as_slices();
            let part = |bytes, base| part_of(bytes, base, start, end);
            Some((record, part(front, 0), part(back, front.len())))
        })
    }
}

/// The part of `start..end` that lies in `bytes`, whose first byte has the index `base`.
fn part_of(bytes: &[u8], base: usize, start: usize, end: usize) -> &[u8] {
    let clip = |at: usize| at.saturating_sub(base).min(bytes.len());
    bytes.get(clip(start)..clip(end)).unwrap_or_default()
}
