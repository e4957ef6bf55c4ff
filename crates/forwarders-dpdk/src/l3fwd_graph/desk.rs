// SPDX-License-Identifier: BSD-3-Clause
//! Where an lcore lays down what its nodes have counted, when somebody asks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use graph::{Executor, NodeStats};

/// One lcore's.
pub struct Desk {
    /// The lcore.
    pub lcore: u32,
    asked: AtomicU64,
    told: AtomicU64,
    stats: Mutex<Vec<NodeStats>>,
}

impl Desk {
    /// Of an lcore that has counted nothing.
    pub fn new(lcore: u32) -> Self {
        let (asked, told) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { lcore, asked, told, stats: Mutex::default() }
    }

    /// For the lcore, between two walks: tells when it was asked.
    #[inline]
    pub fn serve(&self, graph: &dyn Executor) {
        let asked = self.asked.load(Ordering::Relaxed);
        if asked != self.told.load(Ordering::Relaxed) {
            self.tell(graph, asked);
        }
    }

    /// For the lcore, at its end.
    pub fn close(&self, graph: &dyn Executor) {
        // Whatever will be asked has been told.
        self.tell(graph, u64::MAX);
    }

    #[cold]
    fn tell(&self, graph: &dyn Executor, asked: u64) {
        let stats = graph.stats();
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner) = stats;
        self.told.store(asked, Ordering::Release);
    }

    /// What the nodes have counted until now. An lcore that does not answer within a second gives what it
    /// said last.
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
