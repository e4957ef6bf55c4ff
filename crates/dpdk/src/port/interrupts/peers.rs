// SPDX-License-Identifier: BSD-3-Clause
//! Peers of net_memif: which of them are refused, and the descriptors that they send.
//!
//! A peer writes to memory that the driver trusts. Permissions of its socket decide who may connect, but an
//! abstract socket has none: there, peers of other users are refused.
//!
//! The driver takes one descriptor of a message, whatever kind of message it is, and closes only those that it has in
//! use when the link ends. So those that a message should not have are closed here, and the others when their peer is gone.
//!
//! The driver looks for rings where a peer says that they are. So a peer is refused whose memory is smaller than it
//! says, or whose rings do not lie in it. What is written into the rings later is trusted.

use std::ffi::c_int;
use std::fs;
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{Shutdown, SocketAddrAny, SocketAddrUnix};

use crate::mutex::locked;

/// Messages that have a descriptor: of memory, and of a ring's interrupts.
const ADD_REGION: u16 = 4;
const ADD_RING: u16 = 5;
/// Bytes of any message.
const MESSAGE: usize = 128;
/// Bytes of a ring before its slots, and of a slot; the driver makes rings of 2^1 to 2^14 slots.
const RING: u64 = 128;
const SLOT: u64 = 16;
const SLOTS: RangeInclusive<u8> = 1..=14;
/// Descriptors of one peer: 63 queues in each direction, and a region or more.
const MOST: usize = 256;

/// A descriptor that a peer has sent, by the argument of the callback that received it.
struct Sent {
    argument: usize,
    fd: c_int,
    file: File,
    /// Number and bytes, if it is of memory.
    region: Option<(u16, u64)>,
}

/// What a descriptor is of, as far as the kernel tells one from another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum File {
    /// Device and inode.
    Inode(u64, u64),
    /// The number of an event descriptor.
    Event(u64),
}

static SENT: Mutex<Vec<Sent>> = Mutex::new(Vec::new());
static SAID: AtomicBool = AtomicBool::new(false);

/// Returns true, and ends reading, if the other end of this socket is another user's and nothing but the socket's name had
/// to be known to get there. Root is nobody's stranger.
///
/// # Safety
/// The descriptor is open.
pub(super) unsafe fn refuse_stranger(fd: c_int) -> bool {
    // SAFETY: the contract is the caller's.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    let Ok(peer) = rustix::net::sockopt::socket_peercred(socket) else { return false };
    let own = rustix::process::geteuid();
    if peer.uid == own || peer.uid.is_root() || !is_abstract(socket) {
        return false;
    }
    if !SAID.swap(true, Ordering::Relaxed) {
        log(peer.uid.as_raw());
    }
    // Wakes the callback, which reads the end of the file.
    let _ = rustix::net::shutdown(socket, Shutdown::Read);
    true
}

/// Whether the name of the listening socket is abstract: that of this end if it has one, for a client has none.
fn is_abstract(socket: BorrowedFd<'_>) -> bool {
    let own = rustix::net::getsockname(socket).ok().and_then(unix);
    let other = || rustix::net::getpeername(socket).ok().flatten().and_then(unix);
    let named = own.filter(|name| !name.is_unnamed()).or_else(other);
    named.is_some_and(|name| name.abstract_name().is_some())
}

fn unix(name: SocketAddrAny) -> Option<SocketAddrUnix> {
    name.try_into().ok()
}

fn log(user: u32) {
    // SAFETY: a constant format with one number.
    unsafe {
        dpdk_sys::rte_log(
            dpdk_sys::RTE_LOG_ERR,
            dpdk_sys::RTE_LOGTYPE_USER1,
            c"memif: refused a peer of user %u: every user can connect to an abstract socket; for peers of other users \
              choose a socket in the file system (socket-abstract=no) and its permissions\n"
                .as_ptr(),
            user,
        );
    }
}

/// Looks at a message for the callback with this argument. Returns false if the driver should not have it, because it
/// has other descriptors than it should, or describes memory that is not there. Its descriptors are closed then.
///
/// # Safety
/// A message of so many bytes that has just been received.
pub(super) unsafe fn take(message: *const libc::msghdr, bytes: usize, argument: usize) -> bool {
    // SAFETY: the contract is the caller's.
    let (text, fds) = unsafe { (text(message, bytes), descriptors(message)) };
    let good = match (number(&text, 0), &fds[..]) {
        (ADD_REGION, [memory]) => {
            let region = (number(&text, 2), u64::from_le_bytes(part(&text, 4)));
            has_bytes(*memory, region.1) && note(argument, *memory, Some(region))
        }
        (ADD_RING, [event]) => {
            let place = u32::from_le_bytes(part(&text, 8));
            is_inside(argument, number(&text, 6), place, text[12]) && note(argument, *event, None)
        }
        (ADD_REGION | ADD_RING, _) => false,
        (_, none) => none.is_empty(),
    };
    if !good {
        for fd in fds {
            // SAFETY: it came with this message, and the driver does not see it.
            unsafe { libc::close(fd) };
        }
    }
    good
}

/// The bytes of a message, with zeros behind the last.
///
/// # Safety
/// As [`take`].
unsafe fn text(message: *const libc::msghdr, bytes: usize) -> [u8; MESSAGE] {
    let mut text = [0; MESSAGE];
    // SAFETY: the contract is the caller's: the first piece of memory has what was received, as far as there is room.
    unsafe {
        if (*message).msg_iovlen > 0 {
            let first = *(*message).msg_iov;
            let length = first.iov_len.min(bytes).min(MESSAGE);
            text.as_mut_ptr().copy_from_nonoverlapping(first.iov_base.cast(), length);
        }
    }
    text
}

fn part<const N: usize>(text: &[u8; MESSAGE], at: usize) -> [u8; N] {
    std::array::from_fn(|i| text[at + i])
}

fn number(text: &[u8; MESSAGE], at: usize) -> u16 {
    u16::from_le_bytes(part(text, at))
}

/// Returns true if there are so many bytes of memory. They stay there, if the kernel can see to it.
fn has_bytes(memory: c_int, bytes: u64) -> bool {
    // SAFETY: a property of a descriptor.
    unsafe { libc::fcntl(memory, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
    let is_enough =
        |status: libc::stat| u64::try_from(status.st_size).is_ok_and(|size| size >= bytes);
    bytes > 0 && status_of(memory).is_some_and(is_enough)
}

/// Returns true if a ring lies in memory that this peer has sent.
fn is_inside(argument: usize, region: u16, place: u32, slots: u8) -> bool {
    let holds = |sent: &Sent| {
        let bytes =
            sent.region.filter(|(number, _)| *number == region).map_or(0, |(_, bytes)| bytes);
        sent.argument == argument && u64::from(place) + RING + (SLOT << slots) <= bytes
    };
    SLOTS.contains(&slots) && locked(&SENT).iter().any(holds)
}

/// # Safety
/// As [`take`].
unsafe fn descriptors(message: *const libc::msghdr) -> Vec<c_int> {
    let mut found = Vec::new();
    // SAFETY: the contract is the caller's; descriptors need not be aligned there.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(part) = header.as_ref() {
            if (part.cmsg_level, part.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = part.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let first = libc::CMSG_DATA(header).cast::<c_int>();
                found
                    .extend((0..bytes / size_of::<c_int>()).map(|i| first.add(i).read_unaligned()));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    found
}

/// Notes a descriptor until its peer is gone. Returns false if there are too many, or if the kernel would not tell it
/// from others.
fn note(argument: usize, fd: c_int, region: Option<(u16, u64)>) -> bool {
    // The driver writes to it, and must not wait for a peer that does not read.
    never_wait(fd);
    let Some(file) = file_of(fd) else { return is_old_event(fd) };
    let mut sent = locked(&SENT);
    let room = sent.iter().filter(|each| each.argument == argument).count() < MOST;
    if room {
        sent.push(Sent { argument, fd, file, region });
    }
    room
}

/// Closes descriptors of peers that are gone, which the driver does only with those that were in use. To be called when
/// it is done with such a peer, by whoever has the turn.
pub(super) fn close_left(is_there: impl Fn(usize) -> bool) {
    locked(&SENT).retain(|sent| {
        let keep = is_there(sent.argument);
        if !keep && file_of(sent.fd) == Some(sent.file) {
            // SAFETY: the driver has forgotten it: no other descriptor of this number is of that file.
            unsafe { libc::close(sent.fd) };
        }
        keep
    });
}

/// Makes sure that nothing waits for the other end of a descriptor.
pub(super) fn never_wait(fd: c_int) {
    // SAFETY: flags of a descriptor.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        if flags >= 0 {
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
    }
}

/// Device and inode of what a descriptor is of.
pub(super) fn inode_of(fd: c_int) -> Option<(u64, u64)> {
    status_of(fd).map(|status| (status.st_dev, status.st_ino))
}

fn file_of(fd: c_int) -> Option<File> {
    let status = status_of(fd)?;
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG => Some(File::Inode(status.st_dev, status.st_ino)),
        _ => told(fd, "eventfd-id:").map(File::Event),
    }
}

/// Kernels before 5.2 do not number event descriptors: those that the driver forgets there stay open.
fn is_old_event(fd: c_int) -> bool {
    lines(fd).contains("eventfd-count:")
}

/// What the kernel tells of a descriptor under this name.
fn told(fd: c_int, name: &str) -> Option<u64> {
    lines(fd).lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

fn lines(fd: c_int) -> String {
    fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default()
}

fn status_of(fd: c_int) -> Option<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fills the struct in if it returns 0.
    unsafe { (libc::fstat(fd, status.as_mut_ptr()) == 0).then(|| status.assume_init()) }
}
