// SPDX-License-Identifier: BSD-3-Clause
//! The memory that frames are in (UMEM): chunks of one size, shared by all sockets of a program.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// Possible sizes of a chunk, in bytes: a frame, and the headroom of XDP programs before it.
const CHUNKS: [u32; 2] = [2048, 4096];
/// Room before a frame that the kernel leaves to XDP programs (`XDP_PACKET_HEADROOM`).
const HEADROOM: u32 = 256;
/// Longest frame in bytes that fits in a chunk.
pub(crate) const LONGEST: usize = (CHUNKS[1] - HEADROOM) as usize;

/// The chunk size for frames of up to this many bytes; none if they are too long.
pub(crate) fn chunk_for(longest: usize) -> Option<u32> {
    CHUNKS.into_iter().find(|chunk| longest <= (chunk - HEADROOM) as usize)
}

/// The mapping; it lives until the last lane and socket have gone.
pub(crate) struct Umem {
    start: NonNull<u8>,
    length: usize,
    chunk: u32,
}

// SAFETY: chunks belong to one lane each, which hands them out by `&mut` alone (`Chunks`); the mapping
// itself never changes.
unsafe impl Send for Umem {}
// SAFETY: as above.
unsafe impl Sync for Umem {}

impl Umem {
    /// Memory for so many chunks of so many bytes.
    pub(crate) fn new(chunks: u32, chunk: u32) -> io::Result<Arc<Self>> {
        let length = chunks as usize * chunk as usize;
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
        );
        // SAFETY: a new mapping, wherever the kernel puts it.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Arc::new(Self { start, length, chunk }))
    }

    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    pub(crate) fn length(&self) -> u64 {
        self.length as u64
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk(&self) -> u32 {
        self.chunk
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; lanes and sockets, which use it, have gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The chunks of one lane: those that it holds, while the kernel has the others.
pub(crate) struct Chunks {
    umem: Arc<Umem>,
    first: u64,
    end: u64,
    free: Vec<u64>,
}

impl Chunks {
    /// The chunks `first` to before `end` of the memory, counted from 0.
    pub(crate) fn new(umem: &Arc<Umem>, first: u32, end: u32) -> Self {
        let at = |number: u32| u64::from(number) * u64::from(umem.chunk);
        assert!(first <= end && at(end) <= umem.length(), "chunks outside of the memory");
        let free = (first..end).rev().map(at).collect();
        Self { umem: Arc::clone(umem), first: at(first), end: at(end), free }
    }

    /// Takes a free chunk's address.
    pub(crate) fn take(&mut self) -> Option<u64> {
        self.free.pop()
    }

    /// Returns a chunk, given any address in it. An address outside of this lane's chunks is an
    /// error of the kernel, and is ignored.
    pub(crate) fn give(&mut self, address: u64) -> bool {
        let chunk = self.chunk_of(address);
        let ours = (self.first..self.end).contains(&chunk);
        if ours {
            self.free.push(chunk);
        }
        ours
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// The index of the lane's chunk that contains an address.
    pub(crate) fn number(&self, address: u64) -> Option<usize> {
        let chunk = self.chunk_of(address);
        let ours = (self.first..self.end).contains(&chunk);
        ours.then(|| ((chunk - self.first) / u64::from(self.umem.chunk)) as usize)
    }

    fn chunk_of(&self, address: u64) -> u64 {
        address - address % u64::from(self.umem.chunk)
    }

    /// The bytes of a frame that the kernel has passed to the program, and that was not passed
    /// back. None if they do not lie in one chunk of this lane.
    ///
    /// # Safety
    /// The frame's descriptor came from an RX ring of this lane, and its chunk was put into no ring
    /// since then.
    pub(crate) unsafe fn frame(&mut self, address: u64, length: u32) -> Option<&mut [u8]> {
        let chunk = self.chunk_of(address);
        let inside = (self.first..self.end).contains(&chunk)
            && address - chunk + u64::from(length) <= u64::from(self.umem.chunk);
        // SAFETY: inside the memory, in a chunk that is this lane's; the rest is the caller's.
        inside.then(|| unsafe {
            std::slice::from_raw_parts_mut(
                self.umem.start.as_ptr().add(address as usize),
                length as usize,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_one_lane_s_each() {
        assert_eq!((chunk_for(1518), chunk_for(1800)), (Some(2048), Some(4096)));
        assert_eq!((chunk_for(LONGEST), chunk_for(LONGEST + 1)), (Some(4096), None));
        let umem = Umem::new(8, 2048).unwrap();
        let (mut one, mut other) = (Chunks::new(&umem, 0, 4), Chunks::new(&umem, 4, 8));
        assert_eq!((one.free(), other.free()), (4, 4));
        let chunk = one.take().unwrap();
        assert_eq!(chunk, 0);
        assert!(!other.give(chunk + 300));
        assert!(one.give(chunk + 300));
        assert_eq!(one.free(), 4);
        assert_eq!(other.take(), Some(4 * 2048));
        assert_eq!((one.number(2048 + 256), one.number(4 * 2048)), (Some(1), None));
        // SAFETY: nothing else has these chunks.
        unsafe {
            assert_eq!(one.frame(256, 1500).unwrap().len(), 1500);
            assert!(one.frame(256, 1793).is_none());
            assert!(one.frame(4 * 2048, 60).is_none());
        }
    }
}
