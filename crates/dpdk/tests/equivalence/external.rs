// SPDX-License-Identifier: BSD-3-Clause
//! Packets in memory outside of DPDK's.

use std::ffi::c_void;

use dpdk::{ExternalBuffer, ForeignMemory};
use dpdk_sys::{rte_mbuf, rte_mbuf_ext_shared_info};

pub const LEN: u16 = 500;

/// A buffer outside DPDK's memory, freed when its last owner is gone.
#[repr(C)]
struct External {
    shared: rte_mbuf_ext_shared_info,
    buffer: [u8; LEN as usize],
}

unsafe extern "C" fn free_external(_buffer: *mut c_void, external: *mut c_void) {
    // SAFETY: boxed by `attach`, and called once, for the last owner.
    drop(unsafe { Box::from_raw(external.cast::<External>()) });
}

/// The same bytes for the native side, attached by its own functions.
pub fn native(right: ForeignMemory<'_>) -> ExternalBuffer<'_> {
    ExternalBuffer::foreign(right, [0x5a; LEN as usize])
}

/// Makes an mbuf like a driver that receives into its own memory: it is full of external bytes, and
/// the first `len` belong to the packet.
pub fn attach(mbuf: *mut rte_mbuf, len: u16) {
    let external = Box::into_raw(Box::new(External {
        shared: rte_mbuf_ext_shared_info {
            free_cb: Some(free_external),
            fcb_opaque: std::ptr::null_mut(),
            refcnt: 1,
        },
        buffer: [0x5a; LEN as usize],
    }));
    // SAFETY: an empty packet of the test's own gets a buffer that lives until it is freed.
    unsafe {
        (*external).shared.fcb_opaque = external.cast();
        let (buffer, shared) = (&raw mut (*external).buffer, &raw mut (*external).shared);
        dpdk_sys::lr_pktmbuf_attach_extbuf(mbuf, buffer.cast(), buffer as u64, len, shared);
        assert!(!dpdk_sys::lr_pktmbuf_append(mbuf, len).is_null());
    }
}
