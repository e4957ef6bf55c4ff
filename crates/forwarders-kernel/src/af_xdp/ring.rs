// SPDX-License-Identifier: BSD-3-Clause
//! One of the four rings of an AF_XDP socket: single producer, single consumer, one of them the kernel.
//!
//! Producer and consumer are counters modulo 2^32; an entry's index is its number modulo the ring's
//! size, a power of two. The layouts are those of `linux/if_xdp.h`.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The entries of a ring: frame addresses or descriptors.
pub(crate) trait Entry: Copy {}

impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

/// A mapped ring, as producer or as consumer.
struct Mapped<T> {
    start: NonNull<u8>,
    length: usize,
    offsets: libc::xdp_ring_offset,
    mask: u32,
    entries: PhantomData<T>,
}

// SAFETY: memory that belongs to one owner; what is shared with the kernel is handed over by atomics.
unsafe impl<T: Entry> Send for Mapped<T> {}

impl<T: Entry> Mapped<T> {
    /// Maps a ring of `size` entries, which was requested of the socket before.
    fn new(
        socket: BorrowedFd<'_>,
        page: i64,
        offsets: libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        assert!(size.is_power_of_two(), "a ring's size is a power of two");
        let length = offsets.desc as usize + size as usize * size_of::<T>();
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping, wherever the kernel puts it.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, flags, socket.as_raw_fd(), page)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = Self { start, length, offsets, mask: size - 1, entries: PhantomData };
        for at in [offsets.producer, offsets.consumer, offsets.flags] {
            assert!(at % 4 == 0 && at as usize + 4 <= length, "the kernel's offsets of a ring");
        }
        Ok(mapped)
    }

    fn word(&self, at: u64) -> &AtomicU32 {
        // SAFETY: inside and aligned, as `new` saw; only ever used as an atomic.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at as usize).cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offsets.consumer)
    }

    fn needs_wakeup(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// The address of an entry: inside the ring for any number.
    fn entry(&self, number: u32) -> *mut T {
        let at = self.offsets.desc as usize + (number & self.mask) as usize * size_of::<T>();
        // SAFETY: the mask keeps it below the size that the mapping was made for.
        unsafe { self.start.as_ptr().add(at).cast() }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nobody has a reference any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A ring that the program fills: fill and TX.
pub(crate) struct Producer<T: Entry> {
    mapped: Mapped<T>,
    /// The program's counter: entries below it are written.
    head: u32,
    /// The kernel's counter when it was read last.
    seen: u32,
}

impl<T: Entry> Producer<T> {
    pub(crate) fn new(
        socket: BorrowedFd<'_>,
        page: i64,
        offsets: libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let mapped = Mapped::new(socket, page, offsets, size)?;
        let head = mapped.producer().load(Ordering::Relaxed);
        let seen = mapped.consumer().load(Ordering::Acquire);
        Ok(Self { mapped, head, seen })
    }

    /// The number of entries that there is room for, at most `wanted`.
    pub(crate) fn room(&mut self, wanted: u32) -> u32 {
        let size = self.mapped.mask + 1;
        let mut free = size - self.head.wrapping_sub(self.seen);
        if free < wanted {
            self.seen = self.mapped.consumer().load(Ordering::Acquire);
            free = size - self.head.wrapping_sub(self.seen);
        }
        free.min(wanted)
    }

    /// Writes an entry; the kernel sees it after [`submit`](Self::submit). Returns `false`, and
    /// writes nothing, if there is no room.
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        // SAFETY: an entry between the kernel's counter and the ring's end is ours.
        unsafe { self.mapped.entry(self.head).write(entry) };
        self.head = self.head.wrapping_add(1);
        true
    }

    /// Publishes the pushed entries to the kernel.
    pub(crate) fn submit(&self) {
        self.mapped.producer().store(self.head, Ordering::Release);
    }

    /// Returns true if the kernel sleeps until it is called.
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.mapped.needs_wakeup()
    }

    /// The number of entries that the kernel has not taken.
    pub(crate) fn waiting(&mut self) -> u32 {
        self.seen = self.mapped.consumer().load(Ordering::Acquire);
        self.head.wrapping_sub(self.seen)
    }
}

/// A ring that the kernel fills: RX and completion.
pub(crate) struct Consumer<T: Entry> {
    mapped: Mapped<T>,
    /// The program's counter: entries below it are read.
    tail: u32,
}

impl<T: Entry> Consumer<T> {
    pub(crate) fn new(
        socket: BorrowedFd<'_>,
        page: i64,
        offsets: libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let mapped = Mapped::new(socket, page, offsets, size)?;
        let tail = mapped.consumer().load(Ordering::Relaxed);
        Ok(Self { mapped, tail })
    }

    /// Takes up to `most` entries and returns their slots to the kernel; returns their number.
    pub(crate) fn take(&mut self, most: u32, mut each: impl FnMut(T)) -> u32 {
        let head = self.mapped.producer().load(Ordering::Acquire);
        let count = head.wrapping_sub(self.tail).min(most).min(self.mapped.mask + 1);
        for number in 0..count {
            // SAFETY: an entry below the kernel's counter is written, and the kernel leaves it alone until
            // our counter has passed it.
            each(unsafe { self.mapped.entry(self.tail.wrapping_add(number)).read() });
        }
        if count > 0 {
            self.tail = self.tail.wrapping_add(count);
            self.mapped.consumer().store(self.tail, Ordering::Release);
        }
        count
    }
}
