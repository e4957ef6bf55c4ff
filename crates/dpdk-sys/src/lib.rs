// SPDX-License-Identifier: BSD-3-Clause
//! Bindings to the DPDK that is installed, generated when this crate is built.
//!
//! - the crate root holds bindgen's output: functions, structs and constants under their C names;
//! - [`layout`] holds sizes, offsets and flags as the C compiler sees them. The native fast path of
//!   `linerate-dpdk` uses these and no struct fields, because between releases fields move into
//!   anonymous unions (`rte_mbuf`, 24.11) or are reordered (`rte_eth_fp_ops`, 25.11);
//! - functions named `lr_*` are the C shim (`shim.h`) over header-only functions.
//!
//! Nothing here is safe; use the `dpdk` crate.

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unsafe_op_in_unsafe_fn,
    unknown_lints, // of later compilers
    unnecessary_transmutes,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc
)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}
pub use bindings::*;

/// Sizes, offsets and flags as the C compiler sees them.
pub mod layout {
    include!(concat!(env!("OUT_DIR"), "/layout.rs"));
}

mod checks;
mod compat;
pub use compat::{TEL_ARRAY_U64, tel_data_add_array_u64, tel_data_add_dict_u64};
