// SPDX-License-Identifier: BSD-3-Clause
//! Names of fields and flags, and the meaning of DPDK's error numbers.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char};
use std::sync::Mutex;

use super::DynError;
use crate::errno::Errno;
use crate::mutex::locked;
use crate::names::c_name;

/// The room for a name, its NUL included.
const SIZE: usize = dpdk_sys::RTE_MBUF_DYN_NAMESIZE as usize;

/// Names that safe code has registered. C code has registered all others, and interprets their
/// values.
pub(super) struct Ours(Mutex<BTreeSet<CString>>);

pub(super) static FIELDS: Ours = Ours(Mutex::new(BTreeSet::new()));
pub(super) static FLAGS: Ours = Ours(Mutex::new(BTreeSet::new()));

impl Ours {
    /// Registers a name that is ours or unused: `is_there` says whether it is in use.
    pub(super) fn register<T>(
        &self,
        name: &CStr,
        is_there: impl FnOnce() -> bool,
        register: impl FnOnce() -> Result<T, DynError>,
    ) -> Result<T, DynError> {
        // Held throughout: if two threads register the same name, the second finds it here.
        let mut names = locked(&self.0);
        if !names.contains(name) && is_there() {
            return Err(DynError::Taken(name.to_string_lossy().into_owned()));
        }
        let registered = register()?;
        names.insert(name.to_owned());
        Ok(registered)
    }
}

/// A name as DPDK takes it.
pub(super) fn checked(name: &str) -> Result<CString, DynError> {
    c_name(name, SIZE - 1, |name, most| DynError::Name { name, most })
}

/// A name that is the program's own.
pub(super) fn own(name: &str) -> Result<CString, DynError> {
    if name.starts_with("rte_") {
        return Err(DynError::Reserved(name.to_owned()));
    }
    checked(name)
}

/// Writes a name into a struct of DPDK's, which is zeroed.
pub(super) fn fill(room: &mut [c_char; SIZE], name: &CStr) {
    for (to, from) in room.iter_mut().zip(name.to_bytes()) {
        *to = *from as c_char;
    }
}

/// The error for a failed lookup.
pub(super) fn missing_or(name: &str, errno: Errno) -> DynError {
    match errno {
        Errno::ENOENT => DynError::Missing(name.to_owned()),
        _ => DynError::Refused { name: name.to_owned(), errno },
    }
}

/// The error for a failed registration.
pub(super) fn full_or(name: &str, errno: Errno) -> DynError {
    match errno {
        Errno::ENOENT | Errno::ENOMEM => DynError::Full(name.to_owned()),
        _ => DynError::Refused { name: name.to_owned(), errno },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_at() {
        assert!(checked(&"n".repeat(SIZE - 1)).is_ok());
        for name in [String::new(), "n".repeat(SIZE), "a\0b".into()] {
            assert_eq!(checked(&name), Err(DynError::Name { name, most: 63 }));
        }
        assert!(checked("rte_dynfield_timestamp").is_ok());
        assert_eq!(own("rte_mine"), Err(DynError::Reserved("rte_mine".into())));
    }
}
