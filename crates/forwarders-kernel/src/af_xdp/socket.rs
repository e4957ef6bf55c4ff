// SPDX-License-Identifier: BSD-3-Clause
//! An AF_XDP socket: its rings, its binding to a queue, and what was negotiated.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::sync::Arc;

use libc::{c_int, socklen_t};

use super::ring::{Consumer, Producer};
use super::umem::Umem;

/// Entries of each ring.
pub(crate) const ENTRIES: u32 = 2048;

// linux/socket.h; not in libc for every target.
const SO_PREFER_BUSY_POLL: c_int = 69;
const SO_BUSY_POLL_BUDGET: c_int = 70;

/// How frames get from the driver's memory into that of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copying {
    /// As the driver supports.
    Either,
    /// By a copy.
    Copy,
    /// Without a copy; binding fails if that is not possible.
    ZeroCopy,
}

/// How a socket gets its memory.
#[derive(Clone, Copy)]
pub(crate) enum Binding<'s> {
    /// It registered the memory; frames are copied like this.
    First(Copying),
    /// It uses the memory of this socket, and copies as it does.
    With(&'s XdpSocket),
}

/// A socket with its memory, not bound yet.
pub(crate) struct XdpSocket {
    fd: OwnedFd,
    /// The kernel uses it as long as the socket is open.
    _umem: Arc<Umem>,
}

/// The four rings of a socket.
pub(crate) struct Rings {
    pub(crate) fill: Producer<u64>,
    pub(crate) completion: Consumer<u64>,
    pub(crate) rx: Consumer<libc::xdp_desc>,
    pub(crate) tx: Producer<libc::xdp_desc>,
}

impl XdpSocket {
    /// A socket with rings. The first socket of a memory registers it; the others refer to that
    /// socket when they are bound.
    pub(crate) fn new(umem: &Arc<Umem>, first: bool) -> io::Result<(Self, Rings)> {
        // SAFETY: a plain system call; its result is checked.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = Self { fd, _umem: Arc::clone(umem) };
        if first {
            let region = libc::xdp_umem_reg_v1 {
                addr: umem.address(),
                len: umem.length(),
                chunk_size: umem.chunk(),
                headroom: 0,
            };
            socket.set(libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
        }
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            socket.set(libc::SOL_XDP, ring, &ENTRIES)?;
        }
        let offsets: libc::xdp_mmap_offsets = socket.get(libc::XDP_MMAP_OFFSETS)?;
        let fd = socket.fd.as_fd();
        let rings = Rings {
            fill: Producer::new(fd, libc::XDP_UMEM_PGOFF_FILL_RING as i64, offsets.fr, ENTRIES)?,
            completion: Consumer::new(
                fd,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64,
                offsets.cr,
                ENTRIES,
            )?,
            rx: Consumer::new(fd, libc::XDP_PGOFF_RX_RING, offsets.rx, ENTRIES)?,
            tx: Producer::new(fd, libc::XDP_PGOFF_TX_RING, offsets.tx, ENTRIES)?,
        };
        Ok((socket, rings))
    }

    /// Binds to a queue of an interface. The first socket of a memory decides how frames are
    /// copied; the others do the same.
    pub(crate) fn bind(&self, index: u32, queue: u32, how: Binding<'_>) -> io::Result<()> {
        let (flags, shared) = match how {
            Binding::First(copying) => {
                let flags = match copying {
                    Copying::Either => 0,
                    Copying::Copy => libc::XDP_COPY,
                    Copying::ZeroCopy => libc::XDP_ZEROCOPY,
                };
                (flags | libc::XDP_USE_NEED_WAKEUP, 0)
            }
            Binding::With(first) => (libc::XDP_SHARED_UMEM, first.raw() as u32),
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: index,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: shared,
        };
        let length = mem::size_of_val(&address) as socklen_t;
        // SAFETY: the address is of that length and lives until the call is over.
        done(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), length) })
    }

    /// Makes the kernel poll only in the program's calls, up to `budget` frames each
    /// (`SO_PREFER_BUSY_POLL`).
    pub(crate) fn busy_poll(&self, budget: c_int) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, &1 as &c_int)?;
        self.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, &20 as &c_int)?;
        self.set(libc::SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget)
    }

    /// Returns true if frames are received without a copy.
    pub(crate) fn is_zero_copy(&self) -> io::Result<bool> {
        let options: libc::xdp_options = self.get(libc::XDP_OPTIONS)?;
        Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// What the kernel counted since the socket was made.
    pub(crate) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        self.get(libc::XDP_STATISTICS)
    }

    /// Wakes the kernel to send what is in the TX ring.
    ///
    /// # Errors
    /// An error other than that it is busy or has no room now.
    pub(crate) fn wake_tx(&self) -> io::Result<()> {
        // SAFETY: no memory is read.
        let code = unsafe {
            libc::sendto(self.raw(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
        };
        passing(code)
    }

    /// Wakes the kernel to fill the RX ring.
    ///
    /// # Errors
    /// As for [`wake_tx`](Self::wake_tx).
    pub(crate) fn wake_rx(&self) -> io::Result<()> {
        let null = std::ptr::null_mut();
        // SAFETY: no memory is written.
        let code = unsafe {
            libc::recvfrom(self.raw(), null, 0, libc::MSG_DONTWAIT, null.cast(), null.cast())
        };
        passing(code)
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    fn set<T: Copy>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let length = mem::size_of::<T>() as socklen_t;
        // SAFETY: the kernel reads at most `length` bytes of the value, during the call.
        let code = unsafe {
            libc::setsockopt(self.raw(), level, option, (&raw const *value).cast(), length)
        };
        done(code)
    }

    /// Reads an option of plain numbers, for which zeros are valid: kernels that know fewer fields
    /// leave the rest unchanged.
    fn get<T: Copy>(&self, option: c_int) -> io::Result<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        let mut length = mem::size_of::<T>() as socklen_t;
        // SAFETY: the kernel writes at most `length` bytes of the value.
        let code = unsafe {
            libc::getsockopt(
                self.raw(),
                libc::SOL_XDP,
                option,
                value.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        done(code)?;
        // SAFETY: see above.
        Ok(unsafe { value.assume_init() })
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn done(code: c_int) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Checks the result of a call that only wakes the kernel.
fn passing(code: isize) -> io::Result<()> {
    if code >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR | libc::ENETDOWN) => Ok(()),
        _ => Err(error),
    }
}
