// SPDX-License-Identifier: BSD-3-Clause
//! XDP: programs that the kernel runs for each frame, before it allocates an skb or instead of
//! that.
//!
//! - [`forwarder`]: one program on each port, which forwards alone; the process only counts and
//!   watches.
//! - [`attach`]: programs are attached by a bpf_link that is not pinned, so they are detached when
//!   the process ends, even by SIGKILL.
//! - [`shared`]: or beside others, by libxdp's dispatcher ([`libxdp`]), which is pinned in
//!   [`bpffs`].
//! - [`drops`]: frames that drivers refuse afterwards are only visible in tracepoints.

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
