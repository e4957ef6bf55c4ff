// SPDX-License-Identifier: BSD-3-Clause
//! The Open Traffic Generator model, as snappi 1.62 writes and reads it.
//!
//! A request is read strictly: what the generator does not do is refused with the path of the field
//! (`flows[0].packet[2].tcp: not supported`), all faults at once. What would change no frame is ignored, with
//! a warning in the answer. Nothing is ignored without one. Fields that
//! snappi writes by default, with the values that it writes, are understood. Integers of 64 bits
//! may be strings, as OTG has them, or numbers.

pub mod auth;
pub mod capture;
pub mod config;
pub mod connections;
mod devices;
mod duration;
pub mod edit;
mod endpoints;
pub mod error;
mod flow;
mod grpc;
mod headers;
mod hex;
mod ipv4_options;
pub mod json;
mod layer1;
mod leased;
pub mod metrics;
pub mod neighbors;
mod opening;
mod options;
pub mod patience;
mod pattern;
pub mod places;
pub mod replays;
pub mod sending;
pub mod server;
pub(crate) mod size;
pub mod state;
pub mod tags;
mod unsupported;
pub mod update;
pub mod walk;

pub use error::ApiError;

/// Version of the OTG model.
pub const API_VERSION: &str = "1.62.0";

/// The releases of the model whose clients are served. Those that check take it for a range (semantic versioning's, as
/// snappi and gosnappi read it) that their own release must be in; a single version would exclude all others.
pub const API_VERSIONS: &str = ">=1.0.0,<2.0.0";
/// Largest request body in bytes: 16,384 flows as snappi writes them.
pub const MAX_BODY: usize = 32 << 20;
/// Bytes of a request body from which on it is read alone, and on another thread: what it becomes in memory may be a
/// hundred times as large, and others are answered meanwhile.
pub const LARGE_BODY: usize = 64 << 10;
