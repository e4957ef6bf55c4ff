// SPDX-License-Identifier: BSD-3-Clause
//! XDP: programs that the kernel runs for each frame, before it makes an skb or in its place.
//!
//! - [`forwarder`]: one program on each port, which forwards alone; the process only counts and watches.
//! - [`attach`]: programs go on an interface by a bpf_link that is held by no file, and so they go with
//!   the process, SIGKILL too.
//! - [`shared`]: or beside others, by libxdp's dispatcher ([`libxdp`]), which [`bpffs`] keeps.
//! - [`drops`]: what drivers refuse afterwards is told by tracepoints alone.

mod attach;
mod bpffs;
mod drops;
mod forwarder;
mod layout;
mod libxdp;
mod object;
mod options;
mod shared;
mod stats;
mod way;

pub use attach::Mode;
pub(crate) use attach::{AttachError, Attached};
pub(crate) use forwarder::OpenError;
pub(crate) use object::{LoadError, load, map, number, opened, program};
pub use options::{Action, Options};
pub(crate) use way::Xdp;
