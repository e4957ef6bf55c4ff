// SPDX-License-Identifier: BSD-3-Clause
//! The C library's heap, which Rust, DPDK and its drivers share. DPDK's own heap on huge pages is another.

/// Gives pages of the heap that hold nothing back to the kernel (`malloc_trim`), and says whether there were any.
///
/// glibc keeps what is freed below something that is still in use: hundreds of megabytes, where much was allocated at a
/// time. Any thread may call this, but not one that sends or receives packets: it takes some milliseconds for each hundred
/// megabytes, and other threads that allocate wait. Other C libraries decide for themselves, and it does nothing there.
pub fn trim_heap() -> bool {
    #[cfg(target_env = "gnu")]
    // SAFETY: has no precondition; it frees nothing that is in use, and takes the locks of the heap.
    let trimmed = unsafe { libc::malloc_trim(0) } != 0;
    #[cfg(not(target_env = "gnu"))]
    let trimmed = false;
    trimmed
}
