// SPDX-License-Identifier: BSD-3-Clause
//! A program on an interface, through a bpf_link that is not pinned: it is detached when its
//! process ends, even by SIGKILL.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use crate::interface::Port;

// linux/bpf.h and linux/if_link.h.
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_LINK_UPDATE: libc::c_int = 29;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// The mode of a program on an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In the driver, before the kernel allocates an skb.
    Native,
    /// In the kernel's stack, on any interface.
    Generic,
}

impl Mode {
    /// Its name in `ip link` and xdp-tools.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }

    fn flag(self) -> u32 {
        match self {
            Self::Native => XDP_FLAGS_DRV_MODE,
            Self::Generic => XDP_FLAGS_SKB_MODE,
        }
    }
}

/// Why a program could not be attached to an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The process lacks capabilities.
    #[error("{device}: XDP programs need the capabilities CAP_NET_ADMIN and CAP_BPF; run as root")]
    NotAllowed {
        /// The port's device.
        device: String,
    },
    /// Another program is attached.
    #[error("{device}: {iface} has an XDP program already; see ip link show {iface}")]
    Taken {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
    },
    /// The driver does not support XDP.
    #[error("{device}: the driver of {iface} does not support native XDP; use --mode generic")]
    NoNative {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
    },
    /// The driver supports XDP, but not with this configuration.
    #[error(
        "{device}: native XDP on {iface} is refused ({source}): its MTU of {mtu} or, of a veth, the other end's may be too long for it, or its driver wants offloads off; or use --mode generic"
    )]
    NotLikeThis {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// Its MTU.
        mtu: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused.
    #[error("{device}: an XDP program on {iface} ({mode}): {source}")]
    System {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// The requested mode.
        mode: &'static str,
        /// The reason.
        source: io::Error,
    },
}

/// A program that runs on an interface until this is dropped.
pub struct Attached {
    link: OwnedFd,
    /// The mode that it runs in.
    pub mode: Mode,
    /// Why it does not run in the driver, if that was tried.
    refused: Option<io::Error>,
}

/// The part of `union bpf_attr` that creates links.
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
    rest: [u64; 6],
}

/// The part that replaces a link's program.
#[repr(C)]
struct LinkUpdate {
    link_fd: u32,
    new_prog_fd: u32,
    flags: u32,
    old_prog_fd: u32,
}

impl Attached {
    /// Attaches a program in the requested mode; by default native, or generic if that is not
    /// possible.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn new(
        program: BorrowedFd<'_>,
        port: &Port,
        wanted: Option<Mode>,
    ) -> Result<Self, AttachError> {
        let first = wanted.unwrap_or(Mode::Native);
        match create(program, port.index, first) {
            Ok(link) => Ok(Self { link, mode: first, refused: None }),
            Err(error) if wanted.is_none() && is_unsupported(&error) => {
                create(program, port.index, Mode::Generic)
                    .map(|link| Self { link, mode: Mode::Generic, refused: Some(error) })
                    .map_err(|error| explain(port, Mode::Generic, error))
            }
            Err(error) => Err(explain(port, first, error)),
        }
    }

    /// Describes its mode and the reason for it.
    #[must_use]
    pub fn told(&self) -> String {
        match &self.refused {
            None => format!("XDP {}", self.mode.name()),
            Some(error) => format!("XDP {} (native: {error})", self.mode.name()),
        }
    }

    /// Replaces the running program by another one, between two frames.
    ///
    /// # Errors
    /// The kernel's; the old program continues.
    pub fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let request = LinkUpdate {
            link_fd: self.link.as_raw_fd() as u32,
            new_prog_fd: program.as_raw_fd() as u32,
            flags: 0,
            old_prog_fd: 0,
        };
        bpf(BPF_LINK_UPDATE, &request).map(drop)
    }
}

fn create(program: BorrowedFd<'_>, index: u32, mode: Mode) -> io::Result<OwnedFd> {
    let request = LinkCreate {
        prog_fd: program.as_raw_fd() as u32,
        target_ifindex: index,
        attach_type: BPF_XDP,
        flags: mode.flag(),
        rest: [0; 6],
    };
    let fd = bpf(BPF_LINK_CREATE, &request)?;
    // SAFETY: the descriptor is new and ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bpf<T>(command: libc::c_int, request: &T) -> io::Result<libc::c_int> {
    let size = mem::size_of::<T>();
    // SAFETY: the kernel reads `size` bytes of the request, during the call.
    let code = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *request, size) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code as libc::c_int) }
}

pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE | libc::ENOSPC)
    )
}

fn explain(port: &Port, mode: Mode, source: io::Error) -> AttachError {
    let (device, iface) = (port.device.clone(), port.iface.clone());
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => AttachError::NotAllowed { device },
        Some(libc::EBUSY | libc::EEXIST) => AttachError::Taken { device, iface },
        Some(libc::EOPNOTSUPP) if mode == Mode::Native => AttachError::NoNative { device, iface },
        Some(libc::EINVAL | libc::ERANGE | libc::ENOSPC) if mode == Mode::Native => {
            AttachError::NotLikeThis { device, iface, mtu: port.mtu, source }
        }
        _ => AttachError::System { device, iface, mode: mode.name(), source },
    }
}
