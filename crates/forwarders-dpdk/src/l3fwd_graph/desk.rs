// SPDX-License-Identifier: BSD-3-Clause
//! Where an lcore publishes its nodes' counts when they are requested.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use graph::{Executor, NodeStats};

/// The published counts of one lcore.
pub struct Desk {
    /// The lcore.
    pub lcore: u32,
    asked: AtomicU64,
    told: AtomicU64,
    stats: Mutex<Vec<NodeStats>>,
}

impl Desk {
    /// For an lcore that has counted nothing.
    pub fn new(lcore: u32) -> Self {
        let (asked, told) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { lcore, asked, told, stats: Mutex::default() }
    }

    /// Called by the lcore between two walks: publishes the counts if they were requested.
    #[inline]
    pub fn serve(&self, graph: &dyn Executor) {
        let asked = self.asked.load(Ordering::Relaxed);
        if asked != self.told.load(Ordering::Relaxed) {
            self.tell(graph, asked);
        }
    }

    /// Called by the lcore at its end.
    pub fn close(&self, graph: &dyn Executor) {
        // All later requests are answered by this.
        self.tell(graph, u64::MAX);
    }

    #[cold]
    fn tell(&self, graph: &dyn Executor, asked: u64) {
        let stats = graph.stats();
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner) = stats;
        self.told.store(asked, Ordering::Release);
    }

    /// The present counts of the nodes. If the lcore does not answer within a second, the last
    /// published ones.
    pub fn stats(&self) -> Vec<NodeStats> {
        const PATIENCE: Duration = Duration::from_secs(1);
        let ticket = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let begin = Instant::now();
        while self.told.load(Ordering::Acquire) < ticket && begin.elapsed() < PATIENCE {
            sleep(Duration::from_micros(100));
        }
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
