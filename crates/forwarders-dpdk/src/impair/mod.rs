// SPDX-License-Identifier: BSD-3-Clause
//! A link that is bad on purpose: it echoes or passes on every frame, and on the way drops, corrupts,
//! duplicates, reorders and delays some, by rules that give the same result each time.
//!
//! With one port each frame goes back where it came from, its MAC addresses swapped; with two, what
//! comes in on one goes out on the other as it is. Each direction is a path of its own: the rules count
//! its frames alone.
//!
//! # Order of effects
//! drop, corrupt, duplicate, reorder, delay. Each rule counts the frames that come to it: of ten frames
//! with `--drop 2 --duplicate 5` five are dropped, and of the other five the last is duplicated. A
//! duplicate follows its original, corrupted if that was, and both are counted by what comes after.
//!
//! # Books
//! `received + duplicated = sent + dropped + tx_refused + discarded_at_stop + held`, where `held` is 0
//! at the end. `docs/impair-a-link.md` describes every count.
//!
//! # Threads
//! A path belongs to one lcore; anybody may read its counts.

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
