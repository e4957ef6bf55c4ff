// SPDX-License-Identifier: BSD-3-Clause
//! Checks whether DPDK's memory is still mapped.

/// Returns true if the page of an address is mapped; asks the kernel and does not access the page.
pub fn is_mapped<T>(address: *const T) -> bool {
    // SAFETY: a question without a precondition.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = address.map_addr(|address| address & !(page - 1));
    let mut resident = 0u8;
    // SAFETY: mincore looks at no memory but what it is given to answer in, one byte for one page.
    unsafe { libc::mincore(start.cast_mut().cast(), 1, &mut resident) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn what_was_allocated_is_there_and_the_first_page_is_not() {
        let there = Box::new(0u8);
        assert!(is_mapped(&raw const *there));
        // Linux maps nothing there (vm.mmap_min_addr).
        assert!(!is_mapped(ptr::without_provenance::<u8>(100)));
    }
}
