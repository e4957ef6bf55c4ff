// SPDX-License-Identifier: BSD-3-Clause
//! One name for functions that have different names in different releases.

use core::ffi::{c_char, c_int};

use crate::rte_tel_data;

/// `rte_tel_data_add_dict_u64`, which later releases call `_uint`.
///
/// # Safety
/// `data` is a telemetry dictionary that is being built, `name` a C string.
pub unsafe fn tel_data_add_dict_u64(
    data: *mut rte_tel_data,
    name: *const c_char,
    value: u64,
) -> c_int {
    // SAFETY: the contract is the caller's.
    unsafe {
        #[cfg(dpdk_23_11)]
        return crate::rte_tel_data_add_dict_uint(data, name, value);
        #[cfg(not(dpdk_23_11))]
        return crate::rte_tel_data_add_dict_u64(data, name, value);
    }
}

/// `rte_tel_data_add_array_u64`, which later releases call `_uint`.
///
/// # Safety
/// `data` is a telemetry array of unsigned numbers that is being built.
pub unsafe fn tel_data_add_array_u64(data: *mut rte_tel_data, value: u64) -> c_int {
    // SAFETY: the contract is the caller's.
    unsafe {
        #[cfg(dpdk_23_11)]
        return crate::rte_tel_data_add_array_uint(data, value);
        #[cfg(not(dpdk_23_11))]
        return crate::rte_tel_data_add_array_u64(data, value);
    }
}

/// The type of an array of unsigned numbers.
#[cfg(dpdk_23_11)]
pub const TEL_ARRAY_U64: crate::rte_tel_value_type = crate::RTE_TEL_UINT_VAL;
/// The type of an array of unsigned numbers.
#[cfg(not(dpdk_23_11))]
pub const TEL_ARRAY_U64: crate::rte_tel_value_type = crate::RTE_TEL_U64_VAL;
