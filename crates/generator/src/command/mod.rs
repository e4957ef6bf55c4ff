// SPDX-License-Identifier: BSD-3-Clause
//! The generator as a command: flows on the command line, a live table, `--self-test`.
//!
//! The options become an OTG configuration, which the usual reader checks ([`job`]); a [`session`]
//! runs engine and control plane, and the command is their client like any script.

pub mod ceiling;
pub mod client;
mod error;
mod field;
pub mod figures;
pub mod flow;
mod items;
pub mod job;
pub mod options;
pub mod port;
pub mod quantity;
pub mod report;
pub mod run;
pub mod selftest;
pub mod session;
pub mod settle;
mod stack;
pub mod table;
pub mod write;

pub use error::SpecError;
