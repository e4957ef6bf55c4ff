// SPDX-License-Identifier: BSD-3-Clause
//! Keys and values: data without pointers or padding.

use std::ffi::c_void;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Data that is compared and hashed by its bytes.
///
/// Numbers, IP addresses and arrays of them implement this. It may be implemented for a struct that
/// is `#[repr(C)]` (or `packed`), whose fields are all such data, and which has no padding:
/// ```
/// use dpdk::hash::Plain;
///
/// #[derive(Clone, Copy)]
/// #[repr(C, packed)]
/// struct FiveTuple {
///     source: [u8; 4],
///     destination: [u8; 4],
///     ports: [u16; 2],
///     protocol: u8,
/// }
/// // SAFETY: `repr(C, packed)` has no padding, and the fields are plain.
/// unsafe impl Plain for FiveTuple {}
/// ```
///
/// # Safety
/// Every byte of every value is initialised: there is no padding, and no field that may be uninitialised, a
/// pointer or a reference.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key or value of a table: its bytes are compared and kept",
    label = "not plain data",
    note = "use integers, IP addresses or arrays of them; implement the unsafe trait `Plain` for a `#[repr(C)]` struct of these without padding"
)]
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty)+) => { $(
        // SAFETY: a number, without padding.
        unsafe impl Plain for $type {}
    )+ };
}

plain! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize bool char }

// SAFETY: the standard library promises four bytes, and no padding fits between bytes.
unsafe impl Plain for Ipv4Addr {}
// SAFETY: as above, sixteen.
unsafe impl Plain for Ipv6Addr {}
// SAFETY: arrays have no padding between elements, which have none inside.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

const _: () = assert!(size_of::<Ipv4Addr>() == 4 && size_of::<Ipv6Addr>() == 16);
// Values lie where C has a pointer.
const _: () = assert!(size_of::<usize>() == size_of::<*mut c_void>());

/// A value in the place of C's pointer, which C never follows.
#[inline(always)]
pub(super) fn pack<V: Plain>(value: V) -> *mut c_void {
    let mut bytes = [0; size_of::<usize>()];
    // SAFETY: the value has no more bytes than the array (the table's type says so), and all are initialised.
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const value).cast(),
            bytes.as_mut_ptr(),
            size_of::<V>(),
        );
    }
    std::ptr::without_provenance_mut(usize::from_ne_bytes(bytes))
}

/// Returns the value that was packed.
///
/// # Safety
/// `packed` is what `pack` gave for a `V`.
#[inline(always)]
pub(super) unsafe fn unpack<V: Plain>(packed: *mut c_void) -> V {
    let bytes = packed.addr().to_ne_bytes();
    // SAFETY: the first bytes are those of a `V`.
    unsafe { bytes.as_ptr().cast::<V>().read_unaligned() }
}
