// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's telemetry without DPDK: the values of its protocol, and a server for programs without
//! DPDK that the same tools can read (`dpdk-telemetry.py`, for instance).
//!
//! Features: `json` writes values as JSON; `server` has [`Server`]; `front` has [`guard`], with
//! which a program that uses DPDK checks requests to DPDK's own handlers.
#![forbid(unsafe_code)]

#[cfg(feature = "front")]
mod arguments;
#[cfg(feature = "front")]
mod clients;
#[cfg(feature = "server")]
mod commands;
#[cfg(feature = "front")]
mod front;
#[cfg(feature = "json")]
mod json;
#[cfg(feature = "server")]
mod place;
mod room;
#[cfg(feature = "server")]
mod server;
mod value;

#[cfg(feature = "server")]
pub use commands::Commands;
#[cfg(feature = "front")]
pub use front::{Program, guard};
#[cfg(feature = "server")]
pub use place::{Place, PlaceError};
pub use room::room;
#[cfg(feature = "server")]
pub use server::{Server, ServerError};
pub use value::{Value, pieces};
