// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's telemetry without DPDK: the values that travel over its socket, and a server for programs that
//! do not use DPDK and are to be read like those that do (by `dpdk-telemetry.py`, for instance).
//!
//! Features: `json` writes values as JSON, `server` has [`Server`], `front` has [`guard`], by which a program with DPDK
//! examines what DPDK's own handlers are asked.
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
