// SPDX-License-Identifier: BSD-3-Clause
//! Memory that a packet socket shares with its program.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use super::socket::PacketSocket;

/// A ring's memory, unmapped when it is dropped.
///
/// The kernel may write to it at any time, so there are no Rust references to it except to the
/// status words that pass parts of it over ([`status`](Self::status)), and to parts that were
/// passed to the program.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: memory that belongs to one owner; what is shared with the kernel is handed over by atomics.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the ring that the socket was given.
    pub(crate) fn new(socket: &PacketSocket, length: usize) -> io::Result<Self> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping, wherever the kernel puts it.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, socket.raw(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// A status word, by which one side passes memory to the other.
    ///
    /// # Panics
    /// If it lies outside, or is not aligned.
    pub(crate) fn status(&self, at: usize) -> &AtomicU32 {
        assert!(at % 4 == 0 && at + 4 <= self.length, "a status word outside of the ring");
        // SAFETY: inside, aligned (mappings begin at a page), and only ever used as an atomic.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Reads a plain value.
    ///
    /// # Safety
    /// The part that contains it was passed to the program, and any bytes are a valid `T`.
    ///
    /// # Panics
    /// If it lies outside.
    pub(crate) unsafe fn read<T: Copy>(&self, at: usize) -> T {
        let end = at.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.length), "a value outside of the ring");
        // SAFETY: inside; the rest is the caller's.
        unsafe { self.start.as_ptr().add(at).cast::<T>().read_unaligned() }
    }

    /// Writes a plain value.
    ///
    /// # Safety
    /// The part that contains it was passed to the program.
    ///
    /// # Panics
    /// If it lies outside.
    pub(crate) unsafe fn write<T: Copy>(&mut self, at: usize, value: T) {
        let end = at.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.length), "a value outside of the ring");
        // SAFETY: inside; the rest is the caller's.
        unsafe { self.start.as_ptr().add(at).cast::<T>().write_unaligned(value) }
    }

    /// The bytes of a part.
    ///
    /// # Safety
    /// The part was passed to the program, and is not passed back as long as the bytes are used.
    ///
    /// # Panics
    /// If it lies outside.
    pub(crate) unsafe fn bytes(&self, at: usize, length: usize) -> &[u8] {
        let end = at.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.length), "bytes outside of the ring");
        // SAFETY: inside; the rest is the caller's.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), length) }
    }

    /// As [`bytes`](Self::bytes), for writing.
    ///
    /// # Safety
    /// As for [`bytes`](Self::bytes).
    ///
    /// # Panics
    /// If it lies outside.
    pub(crate) unsafe fn bytes_mut(&mut self, at: usize, length: usize) -> &mut [u8] {
        let end = at.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.length), "bytes outside of the ring");
        // SAFETY: inside; the rest is the caller's.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), length) }
    }

    /// Copies `length` bytes from one part to another.
    ///
    /// # Safety
    /// Both parts were passed to the program.
    ///
    /// # Panics
    /// If one lies outside.
    pub(crate) unsafe fn copy(&mut self, from: usize, to: usize, length: usize) {
        let end = from.max(to).checked_add(length);
        assert!(end.is_some_and(|end| end <= self.length), "bytes outside of the ring");
        let start = self.start.as_ptr();
        // SAFETY: inside, and they may overlap; the rest is the caller's.
        unsafe { std::ptr::copy(start.add(from), start.add(to), length) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nobody has a reference any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
