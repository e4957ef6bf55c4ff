// SPDX-License-Identifier: BSD-3-Clause
//! The generator as a command of its own: flows on the command line, a live table, `--self-test`.
//!
//! What is given becomes an OTG configuration, which the one reader of configurations checks
//! ([`job`]); a [`session`] runs engine and control plane, and the command is their client as any
//! script is.

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
