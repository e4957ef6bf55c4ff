// SPDX-License-Identifier: BSD-3-Clause
//! The functions of DPDK that the probe needs, looked up in the running program.
//!
//! The plugin is not linked with any DPDK library. Its own would be a second DPDK without ports,
//! next to the one that the program has linked statically, and would tie the plugin to one release.
//! The functions used here have the same C prototypes in 22.11, 24.11 and 25.11; a test compares
//! them with the installed headers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem;
use std::sync::OnceLock;

/// `struct rte_mbuf`, of which the probe touches `ol_flags` and its own dynamic field.
#[repr(C)]
pub struct Mbuf {
    _opaque: [u8; 0],
}

/// Offset of `ol_flags`, part of the ABI of every supported release.
pub const MBUF_OL_FLAGS: usize = 24;
/// Offset of `refcnt`, likewise.
pub const MBUF_REFCNT: usize = 18;

/// A telemetry answer that is being filled.
#[repr(C)]
pub struct TelData {
    _opaque: [u8; 0],
}

/// What DPDK returns for an added callback; it belongs to DPDK.
#[repr(C)]
pub struct Callback {
    _opaque: [u8; 0],
}

pub type RxCallback = unsafe extern "C" fn(u16, u16, *mut *mut Mbuf, u16, u16, *mut c_void) -> u16;
pub type TxCallback = unsafe extern "C" fn(u16, u16, *mut *mut Mbuf, u16, *mut c_void) -> u16;
pub type EventCallback = unsafe extern "C" fn(u16, c_uint, *mut c_void, *mut c_void) -> c_int;
pub type TelHandler = unsafe extern "C" fn(*const c_char, *const c_char, *mut TelData) -> c_int;

/// `RTE_ETH_EVENT_NEW`: a device is being probed.
pub const EVENT_NEW: c_uint = 7;
/// `RTE_ETH_EVENT_DESTROY`: a port is being released.
pub const EVENT_DESTROY: c_uint = 8;
/// `RTE_TEL_STRING_VAL`, the kind of an array.
pub const TEL_STRINGS: c_uint = 0;
/// `RTE_TEL_U64_VAL`, `RTE_TEL_UINT_VAL` from 23.03 on.
pub const TEL_NUMBERS: c_uint = 2;
/// `RTE_TEL_CONTAINER`.
pub const TEL_CONTAINERS: c_uint = 3;
/// `ROLE_OFF` of `enum rte_lcore_role_t`.
pub const ROLE_OFF: c_int = 1;

/// `struct rte_mbuf_dynfield`.
#[repr(C)]
pub struct DynField {
    pub name: [u8; 64],
    pub size: usize,
    pub align: usize,
    pub flags: c_uint,
}

/// `struct rte_mbuf_dynflag`.
#[repr(C)]
pub struct DynFlag {
    pub name: [u8; 64],
    pub flags: c_uint,
}

/// A function of DPDK was not found.
#[derive(Debug, thiserror::Error)]
#[error(
    "this program does not show DPDK's {0}: DPDK is linked into it statically, or it does not use \
     ethdev ports. The probe works in programs that load DPDK's shared libraries (pkg-config --libs \
     libdpdk, without --static) or export what they hold of it (-Wl,--export-dynamic)"
)]
pub struct MissingError(&'static str);

/// Finds a symbol in the running program, as its libraries would.
fn look_up(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a C string; RTLD_DEFAULT searches the program and the libraries it was started with.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Casts a symbol to the function that it is.
///
/// # Safety
/// The symbol is a function of type `F`.
unsafe fn function<F: Copy>(symbol: *mut c_void) -> F {
    assert!(mem::size_of::<F>() == mem::size_of::<*mut c_void>());
    // SAFETY: a function pointer is as large as a pointer, and the caller knows its type.
    unsafe { mem::transmute_copy(&symbol) }
}

/// A table of functions: `field: "symbol" or "its newer name" => type`.
macro_rules! functions {
    ($($field:ident: $symbol:literal $(or $newer:literal)? => $type:ty;)*) => {
        /// DPDK's functions in this program. All may be called from any thread; further conditions
        /// are given at the calls.
        pub struct Dpdk {
            $(pub $field: $type,)*
        }

        impl Dpdk {
            fn new() -> Result<Self, MissingError> {
                Ok(Self { $($field: {
                    let symbol = look_up(c_name!($symbol))
                        $(.or_else(|| look_up(c_name!($newer))))?
                        .ok_or(MissingError($symbol))?;
                    // SAFETY: DPDK declares this function so; a test compares with its headers.
                    unsafe { function::<$type>(symbol) }
                },)* })
            }
        }
    };
}

macro_rules! c_name {
    ($name:literal) => {{
        const NAME: &CStr = match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a NUL byte in a name"),
        };
        NAME
    }};
}

functions! {
    find_next: "rte_eth_find_next" => unsafe extern "C" fn(u16) -> u16;
    is_valid_port: "rte_eth_dev_is_valid_port" => unsafe extern "C" fn(u16) -> c_int;
    add_first_rx_callback: "rte_eth_add_first_rx_callback" =>
        unsafe extern "C" fn(u16, u16, RxCallback, *mut c_void) -> *const Callback;
    remove_rx_callback: "rte_eth_remove_rx_callback" =>
        unsafe extern "C" fn(u16, u16, *const Callback) -> c_int;
    add_tx_callback: "rte_eth_add_tx_callback" =>
        unsafe extern "C" fn(u16, u16, TxCallback, *mut c_void) -> *const Callback;
    remove_tx_callback: "rte_eth_remove_tx_callback" =>
        unsafe extern "C" fn(u16, u16, *const Callback) -> c_int;
    register_event: "rte_eth_dev_callback_register" =>
        unsafe extern "C" fn(u16, c_uint, EventCallback, *mut c_void) -> c_int;
    free: "rte_free" => unsafe extern "C" fn(*mut c_void);
    register_field: "rte_mbuf_dynfield_register" => unsafe extern "C" fn(*const DynField) -> c_int;
    register_flag: "rte_mbuf_dynflag_register" => unsafe extern "C" fn(*const DynFlag) -> c_int;
    tsc_hz: "rte_get_tsc_hz" => unsafe extern "C" fn() -> u64;
    lcore_role: "rte_eal_lcore_role" => unsafe extern "C" fn(c_uint) -> c_int;
    lcore_cpuset: "rte_lcore_cpuset" => unsafe extern "C" fn(c_uint) -> libc::cpu_set_t;
    register_command: "rte_telemetry_register_cmd" =>
        unsafe extern "C" fn(*const c_char, TelHandler, *const c_char) -> c_int;
    tel_alloc: "rte_tel_data_alloc" => unsafe extern "C" fn() -> *mut TelData;
    tel_free: "rte_tel_data_free" => unsafe extern "C" fn(*mut TelData);
    tel_start_array: "rte_tel_data_start_array" =>
        unsafe extern "C" fn(*mut TelData, c_uint) -> c_int;
    tel_start_dict: "rte_tel_data_start_dict" => unsafe extern "C" fn(*mut TelData) -> c_int;
    // The old names are gone in 25.11, the new ones not yet there in 22.11.
    tel_array_number: "rte_tel_data_add_array_u64" or "rte_tel_data_add_array_uint" =>
        unsafe extern "C" fn(*mut TelData, u64) -> c_int;
    tel_dict_number: "rte_tel_data_add_dict_u64" or "rte_tel_data_add_dict_uint" =>
        unsafe extern "C" fn(*mut TelData, *const c_char, u64) -> c_int;
    tel_array_string: "rte_tel_data_add_array_string" =>
        unsafe extern "C" fn(*mut TelData, *const c_char) -> c_int;
    tel_dict_string: "rte_tel_data_add_dict_string" =>
        unsafe extern "C" fn(*mut TelData, *const c_char, *const c_char) -> c_int;
    tel_array_container: "rte_tel_data_add_array_container" =>
        unsafe extern "C" fn(*mut TelData, *mut TelData, c_int) -> c_int;
    tel_dict_container: "rte_tel_data_add_dict_container" =>
        unsafe extern "C" fn(*mut TelData, *const c_char, *mut TelData, c_int) -> c_int;
}

impl Dpdk {
    /// The functions of this program's DPDK, looked up once.
    pub fn find() -> Result<&'static Self, MissingError> {
        static FOUND: OnceLock<Dpdk> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found);
        }
        let found = Self::new()?;
        Ok(FOUND.get_or_init(|| found))
    }
}

/// Where the calling thread's lcore id is stored: valid as long as the thread lives, and written
/// only by it (by EAL when it starts an lcore or registers a thread). None in a program without
/// EAL.
pub fn own_lcore_id() -> Option<*const u32> {
    // The linker resolves a thread-local symbol to the calling thread's copy.
    look_up(c_name!("per_lcore__lcore_id")).map(|place| place.cast_const().cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dpdk_sys as sys;
    use std::mem::{offset_of, size_of};

    #[test]
    fn the_program_that_loads_dpdk_shows_every_function() {
        // Used, so that the linker keeps the library.
        let expected: unsafe extern "C" fn(u16) -> u16 = sys::rte_eth_find_next;
        let found = Dpdk::find().unwrap();
        assert!(std::ptr::fn_addr_eq(found.find_next, expected));
        assert!(own_lcore_id().is_some());
        assert!(look_up(c"rte_no_such_function").is_none());
    }

    /// The compiler compares the declarations in the table with those in the installed headers,
    /// with the headers' own names for pointer targets.
    #[test]
    fn functions_are_declared_as_in_the_headers() {
        let _: unsafe extern "C" fn(u16) -> u16 = sys::rte_eth_find_next;
        let _: unsafe extern "C" fn(u16) -> c_int = sys::rte_eth_dev_is_valid_port;
        type Added = *const sys::rte_eth_rxtx_callback;
        type AddRx = unsafe extern "C" fn(u16, u16, sys::rte_rx_callback_fn, *mut c_void) -> Added;
        type AddTx = unsafe extern "C" fn(u16, u16, sys::rte_tx_callback_fn, *mut c_void) -> Added;
        type Remove = unsafe extern "C" fn(u16, u16, Added) -> c_int;
        type OnRx =
            unsafe extern "C" fn(u16, u16, *mut *mut sys::rte_mbuf, u16, u16, *mut c_void) -> u16;
        type OnTx =
            unsafe extern "C" fn(u16, u16, *mut *mut sys::rte_mbuf, u16, *mut c_void) -> u16;
        let _: [AddRx; 1] = [sys::rte_eth_add_first_rx_callback];
        let _: [AddTx; 1] = [sys::rte_eth_add_tx_callback];
        let _: [Remove; 2] = [sys::rte_eth_remove_rx_callback, sys::rte_eth_remove_tx_callback];
        let _: (Option<OnRx>, Option<OnTx>) =
            (None as sys::rte_rx_callback_fn, None as sys::rte_tx_callback_fn);
        let _: unsafe extern "C" fn(u16, c_uint, sys::rte_eth_dev_cb_fn, *mut c_void) -> c_int =
            sys::rte_eth_dev_callback_register;
        let _: Option<EventCallback> = None as sys::rte_eth_dev_cb_fn;
        let _: unsafe extern "C" fn(*const sys::rte_mbuf_dynfield) -> c_int =
            sys::rte_mbuf_dynfield_register;
        let _: unsafe extern "C" fn(*const sys::rte_mbuf_dynflag) -> c_int =
            sys::rte_mbuf_dynflag_register;
        let _: unsafe extern "C" fn() -> u64 = sys::rte_get_tsc_hz;
        let _: unsafe extern "C" fn(c_uint) -> c_uint = sys::rte_eal_lcore_role;
        let _: unsafe extern "C" fn(c_uint) -> sys::rte_cpuset_t = sys::rte_lcore_cpuset;
        let _: unsafe extern "C" fn(*mut c_void) = sys::rte_free;
        type Data = *mut sys::rte_tel_data;
        let _: unsafe extern "C" fn(*const c_char, sys::telemetry_cb, *const c_char) -> c_int =
            sys::rte_telemetry_register_cmd;
        let _: Option<unsafe extern "C" fn(*const c_char, *const c_char, Data) -> c_int> =
            None as sys::telemetry_cb;
        let _: unsafe extern "C" fn() -> Data = sys::rte_tel_data_alloc;
        let _: unsafe extern "C" fn(Data) = sys::rte_tel_data_free;
        let _: unsafe extern "C" fn(Data, c_uint) -> c_int = sys::rte_tel_data_start_array;
        let _: unsafe extern "C" fn(Data) -> c_int = sys::rte_tel_data_start_dict;
        let _: unsafe extern "C" fn(Data, *const c_char) -> c_int =
            sys::rte_tel_data_add_array_string;
        let _: unsafe extern "C" fn(Data, *const c_char, *const c_char) -> c_int =
            sys::rte_tel_data_add_dict_string;
        let _: unsafe extern "C" fn(Data, Data, c_int) -> c_int =
            sys::rte_tel_data_add_array_container;
        let _: unsafe extern "C" fn(Data, *const c_char, Data, c_int) -> c_int =
            sys::rte_tel_data_add_dict_container;
        // By dpdk-sys' names for both generations of them.
        let _: unsafe fn(Data, u64) -> c_int = sys::tel_data_add_array_u64;
        let _: unsafe fn(Data, *const c_char, u64) -> c_int = sys::tel_data_add_dict_u64;
    }

    #[test]
    fn constants_and_structs_are_those_of_the_headers() {
        assert_eq!(MBUF_OL_FLAGS, sys::layout::MBUF_OL_FLAGS);
        assert_eq!(MBUF_REFCNT, sys::layout::MBUF_REFCNT);
        assert_eq!(EVENT_NEW, sys::RTE_ETH_EVENT_NEW);
        assert_eq!(EVENT_DESTROY, sys::RTE_ETH_EVENT_DESTROY);
        assert_eq!(TEL_STRINGS, sys::RTE_TEL_STRING_VAL);
        assert_eq!(TEL_NUMBERS, sys::TEL_ARRAY_U64);
        assert_eq!(TEL_CONTAINERS, sys::RTE_TEL_CONTAINER);
        assert_eq!(u32::try_from(ROLE_OFF).unwrap(), sys::ROLE_OFF);
        assert_eq!(size_of::<libc::cpu_set_t>(), size_of::<sys::rte_cpuset_t>());
        assert_eq!(size_of::<DynField>(), size_of::<sys::rte_mbuf_dynfield>());
        assert_eq!(offset_of!(DynField, size), offset_of!(sys::rte_mbuf_dynfield, size));
        assert_eq!(offset_of!(DynField, align), offset_of!(sys::rte_mbuf_dynfield, align));
        assert_eq!(offset_of!(DynField, flags), offset_of!(sys::rte_mbuf_dynfield, flags));
        assert_eq!(size_of::<DynFlag>(), size_of::<sys::rte_mbuf_dynflag>());
        assert_eq!(offset_of!(DynFlag, flags), offset_of!(sys::rte_mbuf_dynflag, flags));
    }
}
