// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! Memory on DPDK's heap after DPDK has ended.

use dpdk::{Eal, ExternalBuffer, HeapBuffer, HeapError};

pub fn outlive(eal: Eal) -> Result<usize, HeapError> {
    let buffer = ExternalBuffer::on_heap(HeapBuffer::zeroed(&eal, 64, None)?);
    #[cfg(fault)]
    drop(eal);
    Ok(buffer.len())
}
