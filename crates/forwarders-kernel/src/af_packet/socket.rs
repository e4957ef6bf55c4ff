// SPDX-License-Identifier: BSD-3-Clause
//! A packet socket and its options.
//!
//! The layouts and numbers are those of `linux/if_packet.h`; see packet(7).

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::Mutex;

use libc::{c_int, c_uint, c_void, socklen_t};

/// How a fanout group distributes frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fanout {
    /// By a hash over the flow: frames of a flow keep their order.
    Hash,
    /// Round robin.
    Lb,
    /// By the CPU that the frame arrived on.
    Cpu,
}

impl Fanout {
    fn flags(self) -> c_uint {
        let kind = match self {
            Self::Hash => libc::PACKET_FANOUT_HASH,
            Self::Lb => libc::PACKET_FANOUT_LB,
            Self::Cpu => libc::PACKET_FANOUT_CPU,
        };
        // Kernels that do not know the flag ignore it; lanes do not forward outgoing frames.
        kind | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING
    }
}

/// A packet socket (`SOCK_RAW`), which closes when it is dropped.
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    /// Reading the kernel's counts resets them.
    dropped: Mutex<u64>,
}

impl PacketSocket {
    /// A socket that receives nothing yet.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; its result is checked.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, dropped: Mutex::new(0) })
    }

    /// Binds to an interface by its index, to receive every frame that arrives there.
    pub(crate) fn receive_from(&self, index: u32) -> io::Result<()> {
        self.bind(index, libc::ETH_P_ALL as u16)
    }

    /// Binds to an interface by its index, only for sending.
    pub(crate) fn send_to(&self, index: u32) -> io::Result<()> {
        self.bind(index, 0)
    }

    fn bind(&self, index: u32, protocol: u16) -> io::Result<()> {
        // SAFETY: all zero is a value of this plain structure.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index as c_int;
        let length = mem::size_of_val(&address) as socklen_t;
        // SAFETY: the address is of that length and lives until the call is over.
        done(unsafe { libc::bind(self.raw(), (&raw const address).cast(), length) })
    }

    /// Sets an option of level SOL_PACKET. `T` is the type in packet(7).
    pub(crate) fn set<T: Copy>(&self, option: c_int, value: &T) -> io::Result<()> {
        self.set_at(libc::SOL_PACKET, option, value)
    }

    /// Makes the socket receive nothing, bound or not, by a filter that accepts no byte. Such
    /// frames are not counted.
    pub(crate) fn refuse_all(&self) -> io::Result<()> {
        let code = (libc::BPF_RET | libc::BPF_K) as u16;
        let mut nothing = libc::sock_filter { code, jt: 0, jf: 0, k: 0 };
        // The kernel copies the filter during the call.
        let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
        self.set_at(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Ends [`refuse_all`](Self::refuse_all).
    pub(crate) fn refuse_nothing(&self) -> io::Result<()> {
        self.set_at(libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0 as &c_int)
    }

    fn set_at<T: Copy>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let length = mem::size_of::<T>() as socklen_t;
        // SAFETY: the kernel reads at most `length` bytes of the value, during the call.
        let code = unsafe {
            libc::setsockopt(self.raw(), level, option, (&raw const *value).cast(), length)
        };
        done(code)
    }

    /// Requests `bytes` for the send and receive buffers; without CAP_NET_ADMIN the system's limit
    /// applies.
    pub(crate) fn set_buffers(&self, bytes: c_int) -> io::Result<()> {
        for (forced, asked) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            self.set_at(libc::SOL_SOCKET, forced, &bytes)
                .or_else(|_| self.set_at(libc::SOL_SOCKET, asked, &bytes))?;
        }
        Ok(())
    }

    /// Makes the interface promiscuous as long as the socket is open.
    pub(crate) fn promiscuous(&self, index: u32) -> io::Result<()> {
        self.set(
            libc::PACKET_ADD_MEMBERSHIP,
            &libc::packet_mreq {
                mr_ifindex: index as c_int,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            },
        )
    }

    /// Joins the fanout group of that number. Sockets of a group share the frames of their
    /// interface.
    pub(crate) fn join(&self, group: u16, fanout: Fanout) -> io::Result<()> {
        self.set(libc::PACKET_FANOUT, &(c_uint::from(group) | fanout.flags() << 16))
    }

    /// Makes a fanout group; the kernel chooses a number that is not in use.
    pub(crate) fn found(&self, fanout: Fanout) -> io::Result<u16> {
        let flags = fanout.flags() | libc::PACKET_FANOUT_FLAG_UNIQUEID;
        self.set(libc::PACKET_FANOUT, &(flags << 16))?;
        // The number is in the lower half.
        Ok(self.get::<c_uint>(libc::PACKET_FANOUT)? as u16)
    }

    fn get<T: Copy>(&self, option: c_int) -> io::Result<T> {
        self.get_at(libc::SOL_PACKET, option)
    }

    fn get_at<T: Copy>(&self, level: c_int, option: c_int) -> io::Result<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        let mut length = mem::size_of::<T>() as socklen_t;
        // SAFETY: the kernel writes at most `length` bytes of the value.
        let code = unsafe {
            libc::getsockopt(
                self.raw(),
                level,
                option,
                value.as_mut_ptr().cast::<c_void>(),
                &raw mut length,
            )
        };
        done(code)?;
        // SAFETY: callers ask for plain structures of numbers, of which zeros are values.
        Ok(unsafe { value.assume_init() })
    }

    /// Frames without room, since the socket was made. Any thread may call this.
    pub(crate) fn dropped(&self) -> u64 {
        let mut dropped = self.dropped.lock().unwrap_or_else(|poison| poison.into_inner());
        // The first two fields are the same in every version of the structure.
        if let Ok(stats) = self.get::<libc::tpacket_stats_v3>(libc::PACKET_STATISTICS) {
            *dropped += u64::from(stats.tp_drops);
        }
        *dropped
    }

    /// Clears the error that is waiting for the next call, such as that of an interface that went
    /// down.
    pub(crate) fn take_error(&self) {
        let _: io::Result<c_int> = self.get_at(libc::SOL_SOCKET, libc::SO_ERROR);
    }

    pub(crate) fn raw(&self) -> c_int {
        self.fd.as_raw_fd()
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn done(code: c_int) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The last error of a system call.
pub(crate) fn errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Why the kernel did not take a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotSent {
    Full,
    TooLong,
    Down,
    Refused,
    /// The interface may be gone: it is, if it cannot be found any more.
    Gone,
}

/// Interprets the error of a send call.
pub(crate) fn not_sent(errno: c_int) -> NotSent {
    match errno {
        libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM => NotSent::Full,
        libc::EMSGSIZE => NotSent::TooLong,
        libc::ENETDOWN => NotSent::Down,
        libc::ENXIO | libc::ENODEV => NotSent::Gone,
        _ => NotSent::Refused,
    }
}
