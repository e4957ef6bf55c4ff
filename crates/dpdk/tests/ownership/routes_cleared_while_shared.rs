// SPDX-License-Identifier: BSD-3-Clause
// expect: E0599
//! All groups freed at once while readers may be using them.

use dpdk::lpm::{Lpm, LpmWriter};

#[cfg(not(fault))]
pub fn clear(lpm: &mut Lpm<'_>) {
    lpm.clear();
}

#[cfg(fault)]
pub fn clear(writer: &mut LpmWriter<'_, '_>) {
    writer.clear();
}
