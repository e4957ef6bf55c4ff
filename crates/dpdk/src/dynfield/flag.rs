// SPDX-License-Identifier: BSD-3-Clause
//! Flags of an mbuf by name.

use std::ffi::CStr;

use dpdk_sys::layout;

use super::{DynError, name};
use crate::eal::Eal;
use crate::errno::Errno;
use crate::fast::mbuf::{field, set_field};
use crate::mbuf::Mbuf;

/// A flag that can be read. Made by [`DynFlagReader::lookup`], or from a [`DynFlag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynFlagReader {
    mask: u64,
}

/// A flag that this program may change. Made by [`DynFlag::register`]. It is clear in a fresh mbuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynFlag(DynFlagReader);

impl DynFlagReader {
    /// Returns a flag that has been registered (`rte_mbuf_dynflag_lookup`).
    ///
    /// # Errors
    /// [`DynError::Missing`], [`DynError::Name`].
    pub fn lookup(_eal: &Eal, name: &str) -> Result<Self, DynError> {
        let bit = find(&name::checked(name)?).map_err(|errno| name::missing_or(name, errno))?;
        Ok(Self { mask: 1 << bit })
    }

    /// The flag of a mask that DPDK has given.
    pub(super) fn of(mask: u64) -> Self {
        Self { mask }
    }

    /// Returns true if the packet has the flag.
    #[inline]
    #[must_use]
    pub fn is_set(&self, mbuf: &Mbuf<'_>) -> bool {
        // SAFETY: the mbuf is valid, and nobody writes while it is borrowed.
        unsafe { field::<u64>(mbuf.as_ptr(), layout::MBUF_OL_FLAGS) & self.mask != 0 }
    }
}

impl DynFlag {
    /// Registers a flag (`rte_mbuf_dynflag_register`), or finds the one that this method has
    /// registered before under the same name.
    ///
    /// # Errors
    /// See [`DynError`]; [`DynError::Reserved`] for names that begin with `rte_`,
    /// [`DynError::Taken`] for names that C code has registered.
    pub fn register(_eal: &Eal, name: &str) -> Result<Self, DynError> {
        let c_name = name::own(name)?;
        let is_there = || find(&c_name).is_ok();
        name::FLAGS.register(&c_name, is_there, || Self::registered(name, &c_name))
    }

    fn registered(name: &str, c_name: &CStr) -> Result<Self, DynError> {
        // SAFETY: zeros are valid for a struct of numbers.
        let mut wanted: dpdk_sys::rte_mbuf_dynflag = unsafe { std::mem::zeroed() };
        name::fill(&mut wanted.name, c_name);
        // SAFETY: EAL runs (there is an Eal), and DPDK copies the arguments, under a lock of its
        // own.
        let bit = unsafe { dpdk_sys::rte_mbuf_dynflag_register(&raw const wanted) };
        if bit < 0 {
            return Err(name::full_or(name, Errno::last()));
        }
        Ok(Self(DynFlagReader { mask: 1 << bit }))
    }

    /// Returns a flag that C code has registered, for writing.
    ///
    /// # Errors
    /// As [`DynFlagReader::lookup`].
    ///
    /// # Safety
    /// Every reader of the flag accepts both values in any mbuf of the program.
    pub unsafe fn adopt(eal: &Eal, name: &str) -> Result<Self, DynError> {
        DynFlagReader::lookup(eal, name).map(Self)
    }

    /// The flag of a mask that DPDK has given.
    pub(super) fn of(mask: u64) -> Self {
        Self(DynFlagReader::of(mask))
    }

    /// The flag for reading only.
    #[must_use]
    pub fn reader(&self) -> DynFlagReader {
        self.0
    }

    /// Returns true if the packet has the flag.
    #[inline]
    #[must_use]
    pub fn is_set(&self, mbuf: &Mbuf<'_>) -> bool {
        self.0.is_set(mbuf)
    }

    /// Sets or clears it.
    #[inline]
    pub fn set(&self, mbuf: &mut Mbuf<'_>, on: bool) {
        // SAFETY: the first mbuf is this owner's, as for `Mbuf::set_port`. The bit is one of those
        // that DPDK assigns, none of which says where bytes are or who owns them.
        unsafe {
            let flags: u64 = field(mbuf.as_ptr(), layout::MBUF_OL_FLAGS);
            let flags = if on { flags | self.0.mask } else { flags & !self.0.mask };
            set_field(mbuf.as_ptr(), layout::MBUF_OL_FLAGS, flags);
        }
    }
}

/// The number of a flag's bit.
fn find(name: &CStr) -> Result<u32, Errno> {
    // SAFETY: the name is a C string, and DPDK accepts null if the parameters are not wanted.
    let bit = unsafe { dpdk_sys::rte_mbuf_dynflag_lookup(name.as_ptr(), std::ptr::null_mut()) };
    u32::try_from(bit).map_err(|_| Errno::last())
}
