// SPDX-License-Identifier: BSD-3-Clause
//! DPDK telemetry answers, of the kinds that the probe gives.

use std::ffi::{CStr, CString, c_int};

use crate::dpdk::{Dpdk, TEL_CONTAINERS, TEL_NUMBERS, TEL_STRINGS, TelData};

/// DPDK refused a part of the answer.
#[derive(Debug)]
pub struct FullError;

/// Longest string in a list.
const STRING: usize = 127;

fn done(code: c_int) -> Result<(), FullError> {
    if code == 0 { Ok(()) } else { Err(FullError) }
}

/// A dictionary that is being filled, as long as a handler runs.
pub struct Dict<'d> {
    dpdk: &'d Dpdk,
    data: *mut TelData,
}

impl<'d> Dict<'d> {
    /// # Safety
    /// `data` is telemetry data that nobody else uses as long as this lives.
    pub unsafe fn start(dpdk: &'d Dpdk, data: *mut TelData) -> Result<Self, FullError> {
        // SAFETY: the contract is the caller's.
        done(unsafe { (dpdk.tel_start_dict)(data) })?;
        Ok(Self { dpdk, data })
    }

    pub fn number(&mut self, name: &CStr, number: u64) -> Result<(), FullError> {
        // SAFETY: `data` is a dictionary; DPDK copies the name.
        done(unsafe { (self.dpdk.tel_dict_number)(self.data, name.as_ptr(), number) })
    }

    pub fn string(&mut self, name: &CStr, text: &str) -> Result<(), FullError> {
        let text = CString::new(text).map_err(|_| FullError)?;
        // SAFETY: `data` is a dictionary; DPDK copies both.
        done(unsafe { (self.dpdk.tel_dict_string)(self.data, name.as_ptr(), text.as_ptr()) })
    }

    pub fn numbers(&mut self, name: &CStr, numbers: &[u64]) -> Result<(), FullError> {
        self.array(name, TEL_NUMBERS, |dpdk, array| {
            // SAFETY: `array` is an array of numbers.
            numbers
                .iter()
                .try_for_each(|number| unsafe { done((dpdk.tel_array_number)(array, *number)) })
        })
    }

    /// A text cut into several strings, because DPDK's are short.
    pub fn text(&mut self, name: &CStr, text: &str) -> Result<(), FullError> {
        self.array(name, TEL_STRINGS, |dpdk, array| {
            text.as_bytes().chunks(STRING).try_for_each(|piece| {
                let piece = CString::new(piece).map_err(|_| FullError)?;
                // SAFETY: `array` is an array of strings; DPDK copies them.
                done(unsafe { (dpdk.tel_array_string)(array, piece.as_ptr()) })
            })
        })
    }

    fn array(
        &mut self,
        name: &CStr,
        kind: u32,
        fill: impl FnOnce(&Dpdk, *mut TelData) -> Result<(), FullError>,
    ) -> Result<(), FullError> {
        let dpdk = self.dpdk;
        // SAFETY: fresh data, taken over by the dictionary or freed.
        unsafe {
            let array = (dpdk.tel_alloc)();
            if array.is_null() {
                return Err(FullError);
            }
            let added = done((dpdk.tel_start_array)(array, kind))
                .and_then(|()| fill(dpdk, array))
                .and_then(|()| done((dpdk.tel_dict_container)(self.data, name.as_ptr(), array, 0)));
            if added.is_err() {
                (dpdk.tel_free)(array);
            }
            added
        }
    }
}

/// A list of dictionaries that is being filled.
pub struct List<'d> {
    dpdk: &'d Dpdk,
    data: *mut TelData,
}

impl<'d> List<'d> {
    /// # Safety
    /// As for [`Dict::start`].
    pub unsafe fn start(dpdk: &'d Dpdk, data: *mut TelData) -> Result<Self, FullError> {
        // SAFETY: the contract is the caller's.
        done(unsafe { (dpdk.tel_start_array)(data, TEL_CONTAINERS) })?;
        Ok(Self { dpdk, data })
    }

    /// Adds a dictionary to be filled.
    ///
    /// DPDK 22.11 prints dictionaries in a list but accepts only arrays as items: so it is added as
    /// an empty array and then turned into a dictionary.
    pub fn dict(&mut self) -> Result<Dict<'_>, FullError> {
        // SAFETY: fresh data, taken over by the list or freed.
        unsafe {
            let inner = (self.dpdk.tel_alloc)();
            if inner.is_null() {
                return Err(FullError);
            }
            let added = done((self.dpdk.tel_start_array)(inner, TEL_NUMBERS))
                .and_then(|()| done((self.dpdk.tel_array_container)(self.data, inner, 0)));
            if added.is_err() {
                (self.dpdk.tel_free)(inner);
                return Err(FullError);
            }
            Dict::start(self.dpdk, inner)
        }
    }
}
