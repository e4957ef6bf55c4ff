// SPDX-License-Identifier: BSD-3-Clause
//! The C library's heap, which Rust, DPDK and its drivers share. DPDK's own heap on huge pages is
//! separate.

/// Returns unused pages of the heap to the kernel (`malloc_trim`); returns true if there were any.
///
/// glibc keeps freed memory that lies below memory in use: hundreds of megabytes, if much was
/// allocated at a time. Any thread may call this, except one that sends or receives packets: it
/// takes some milliseconds for each hundred megabytes, and other threads that allocate wait. With
/// other C libraries it does nothing.
pub fn trim_heap() -> bool {
    #[cfg(target_env = "gnu")]
    // SAFETY: has no precondition; it frees nothing that is in use, and takes the locks of the heap.
    let trimmed = unsafe { libc::malloc_trim(0) } != 0;
    #[cfg(not(target_env = "gnu"))]
    let trimmed = false;
    trimmed
}
