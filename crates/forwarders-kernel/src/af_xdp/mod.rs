// SPDX-License-Identifier: BSD-3-Clause
//! AF_XDP: frames in memory that is shared with the kernel, exchanged through rings.
//!
//! Every queue of a port has a socket; a program on the port's interface passes each frame to the
//! socket of the queue that it arrived on. All sockets share one memory, so a frame that arrived on
//! one is sent on another without a copy by the program. Whether the kernel copies it (copy mode)
//! or not (zero-copy, if the driver supports it) is negotiated when the sockets are bound, and
//! always printed.
mod lane;
mod lanes;
mod options;
mod program;
mod ring;
mod socket;
mod umem;
mod way;

pub use lanes::{OpenError, Settings};
pub use options::Options;
pub use socket::Copying;
pub(crate) use way::AfXdp;
