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

/// Has the C library give each block of `bytes` or more a mapping of its own (`mallopt`), which
/// returns to the kernel as soon as the block is freed. Returns true if that is in force.
///
/// By default glibc raises this limit to the size of freed blocks, up to 32 MiB, and keeps what is
/// freed between blocks in use: after many large requests at a time, tens of megabytes for good.
/// Each such block then costs two system calls and its page faults. With other C libraries it does
/// nothing.
pub fn map_large_blocks(bytes: usize) -> bool {
    #[cfg(target_env = "gnu")]
    let done = {
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        // SAFETY: has no precondition; it sets a limit, under the heap's own locks.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) != 0 }
    };
    #[cfg(not(target_env = "gnu"))]
    let done = bytes == 0;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_env = "gnu")]
    #[test]
    fn large_blocks_go_back_when_they_are_freed() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
        };
        assert!(map_large_blocks(1 << 18));
        let before = resident();
        let blocks: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 1 << 20]).collect();
        assert!(resident() - before > 60 << 20);
        // The last stays: a heap would keep what is freed below it.
        let last = blocks.into_iter().next_back();
        assert!(resident().saturating_sub(before) < 16 << 20);
        drop(last);
    }
}
