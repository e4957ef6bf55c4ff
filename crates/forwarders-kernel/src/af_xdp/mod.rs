// SPDX-License-Identifier: BSD-3-Clause
//! AF_XDP: the driver's frames in memory that is shared with the kernel, taken and given by rings.
//!
//! Every queue of a port has a socket; a program on the port's interface gives each frame to the socket of
//! the queue that it came in on. All sockets share one memory, so that a frame that came in on one leaves
//! by another without a copy of ours. Whether the kernel copies it on the way (copy mode) or not (zero
//! copy, where the driver can) is negotiated when the sockets are bound, and always told.
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
