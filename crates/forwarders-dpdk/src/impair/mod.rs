// SPDX-License-Identifier: BSD-3-Clause
//! An artificially bad link: it echoes or passes on frames, and drops, corrupts, duplicates,
//! reorders and delays some of them, by rules that give the same result each time.
//!
//! With one port each frame is sent back on it, with its MAC addresses swapped; with two ports,
//! frames received on one are sent on the other, unchanged. Each direction is a separate path: the
//! rules count its frames only.
//!
//! # Order of effects
//! drop, corrupt, duplicate, reorder, delay. Each rule counts the frames that reach it: of ten
//! frames with `--drop 2 --duplicate 5` five are dropped, and of the other five the last is
//! duplicated. A duplicate follows its original, corrupted if that was, and later rules count both.
//!
//! # Conservation of frames
//! `received + duplicated = sent + dropped + tx_refused + discarded_at_stop + held`, where `held`
//! is 0 at the end. `docs/impair-a-link.md` describes every count.
//!
//! # Threads
//! A path belongs to one lcore; any thread may read its counts.

mod counters;
mod delay;
mod document;
mod effects;
mod every;
mod frame;
mod options;
mod reorder;
mod run;

pub use options::{Corrupt, Delaying, Options, Reordering};
pub use run::{ChooseError, RunError, packet_pool, run, start};
