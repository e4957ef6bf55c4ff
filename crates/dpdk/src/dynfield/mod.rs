// SPDX-License-Identifier: BSD-3-Clause
//! Fields and flags of an mbuf that a program adds to it, by name (`rte_mbuf_dyn.h`).
//!
//! # Lifecycle
//! A field is registered once in a process and stays until the process ends. [`DynField::register`]
//! returns a type and an offset, which can be copied to every thread. There is room for 36 bytes of
//! fields and 17 flags, which libraries and drivers use as well.
//!
//! # Who may write
//! A field belongs to an mbuf, not to the bytes of a packet: a clone has its own, with the values
//! at the time of cloning. A read-only packet ([`SharedMbuf`](crate::SharedMbuf)) has read-only
//! fields.
//!
//! The fields of a fresh mbuf are **not** cleared: they hold what the mbuf's last user left there.
//! Flags are cleared.
//!
//! # Names
//! Names that begin with `rte_` are DPDK's own, and drivers have some (`intel_pmd_`): C code may
//! use the value of such a field as a pointer or an index. So safe code can read fields that C code
//! has registered ([`DynReader`], [`DynFlagReader`]) but not write them; begin names of your own
//! with the name of your program. There are types for DPDK's fields that a program may write:
//! [`RxTimestamp`], [`TxTimestamp`].
//!
//! ```standalone_crate
//! use dpdk::dynfield::{DynError, DynField};
//! use dpdk::{Eal, Mbuf};
//!
//! fn register(eal: &Eal) -> Result<DynField<u32>, DynError> {
//!     DynField::register(eal, "myapp_flow")
//! }
//!
//! fn classify(mbuf: &mut Mbuf<'_>, flow: &DynField<u32>) -> u32 {
//!     flow.write(mbuf, 7);
//!     flow.read(mbuf)
//! }
//! # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
//! # let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig { count: 2047, ..dpdk::PoolConfig::named("packets") })?;
//! # let flow = register(&eal)?;
//! # let mut mbuf = pool.alloc().ok_or("no mbuf")?;
//! # assert_eq!(classify(&mut mbuf, &flow), 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod flag;
mod name;
mod timestamp;

use std::ffi::CStr;
use std::marker::PhantomData;

use crate::eal::Eal;
use crate::errno::Errno;
use crate::fast::mbuf::{field, set_field};
use crate::mbuf::Mbuf;

pub use flag::{DynFlag, DynFlagReader};
pub use timestamp::{RxTimestamp, TxTimestamp};

/// Plain data, which can lie in an mbuf.
///
/// # Safety
/// Every bit pattern is a value of the type (no `bool`, `char`, enum, reference or `NonZero`), it
/// has no padding, and a value means the same to every thread and owner.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot lie in an mbuf: any bits have to be a value of it",
    label = "not plain data",
    note = "use integers or arrays of them; implement the unsafe trait `DynData` for a `#[repr(C)]` struct of these without padding"
)]
pub unsafe trait DynData: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty)*) => {
        // SAFETY: numbers: any bits are one, and there is no padding.
        $(unsafe impl DynData for $type {})*
    };
}
plain!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

// SAFETY: elements lie side by side, each of any bits.
unsafe impl<T: DynData, const N: usize> DynData for [T; N] {}

/// Why a field or flag could not be registered or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DynError {
    /// The name is empty, too long, or contains a NUL byte.
    #[error(
        "invalid name {name:?} for a field or flag of mbufs: use 1 to {most} bytes without NUL"
    )]
    Name {
        /// The name.
        name: String,
        /// The most bytes.
        most: usize,
    },
    /// The name is one of DPDK's own.
    #[error(
        "{0:?} is one of DPDK's own, whose values C code relies on: choose a name without the prefix rte_, or read it with a reader"
    )]
    Reserved(String),
    /// C code, or another process, has registered it.
    #[error(
        "{0:?} is in use by C code, which may interpret its values: choose another name, or read it with a reader"
    )]
    Taken(String),
    /// It is not registered (`ENOENT`).
    #[error(
        "{0:?} is not registered: start the driver or library that registers it, or register it first"
    )]
    Missing(String),
    /// It is registered with another size or alignment (`EEXIST`).
    #[error(
        "{name:?} is registered with {there} bytes aligned to {there_align}, not {size} aligned to {align}: use the type that it was registered with"
    )]
    Shape {
        /// The field's name.
        name: String,
        /// Bytes of the type that was asked for.
        size: usize,
        /// Its alignment.
        align: usize,
        /// Bytes of the registered field.
        there: usize,
        /// Its alignment.
        there_align: usize,
    },
    /// No room is left in mbufs (`ENOENT`, `ENOMEM`).
    #[error("no room for {0:?}: mbufs have 36 bytes of fields and 17 flags for all of a program")]
    Full(String),
    /// DPDK refused for another reason: `EPERM` in a secondary process that would have to add it.
    #[error("{name:?}: {errno}")]
    Refused {
        /// The name.
        name: String,
        /// The reason.
        errno: Errno,
    },
}

/// A field that can be read. Made by [`DynReader::lookup`], or from a [`DynField`].
#[derive(Debug)]
pub struct DynReader<T> {
    offset: usize,
    data: PhantomData<fn() -> T>,
}

/// A field that this program may write. Made by [`DynField::register`].
#[derive(Debug)]
pub struct DynField<T>(DynReader<T>);

// Not derived: a derived impl would require `T` to implement the trait too.
impl<T> Clone for DynReader<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for DynReader<T> {}
impl<T> Clone for DynField<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for DynField<T> {}

impl<T: DynData> DynReader<T> {
    const FITS: () = assert!(
        align_of::<T>() <= 8 && size_of::<T>() > 0,
        "fields of mbufs are aligned to 8 bytes at most, and not empty"
    );

    /// Returns a registered field (`rte_mbuf_dynfield_lookup`) of this size and alignment.
    ///
    /// # Errors
    /// [`DynError::Missing`], [`DynError::Shape`], [`DynError::Name`].
    pub fn lookup(_eal: &Eal, name: &str) -> Result<Self, DynError> {
        let () = Self::FITS;
        let (offset, there) =
            find(&name::checked(name)?).map_err(|errno| name::missing_or(name, errno))?;
        if there.size != size_of::<T>() || there.align != align_of::<T>() {
            return Err(shape::<T>(name, &there));
        }
        Ok(Self { offset, data: PhantomData })
    }

    /// Returns the packet's value: the last written one, or an arbitrary one.
    #[inline]
    #[must_use]
    pub fn read(&self, mbuf: &Mbuf<'_>) -> T {
        // SAFETY: DPDK has set this part of every mbuf apart for a field of this size and alignment, and
        // mbufs are aligned to cache lines; any bits are a value. Nobody writes while it is borrowed.
        unsafe { field(mbuf.as_ptr(), self.offset) }
    }
}

impl<T: DynData> DynField<T> {
    /// Adds a field to every mbuf (`rte_mbuf_dynfield_register`), or finds the one that this method
    /// has added before under the same name with the same size and alignment. Its first value in
    /// each mbuf is arbitrary.
    ///
    /// # Errors
    /// See [`DynError`]; [`DynError::Reserved`] for names that begin with `rte_`,
    /// [`DynError::Taken`] for names that C code has registered.
    pub fn register(_eal: &Eal, name: &str) -> Result<Self, DynError> {
        let () = DynReader::<T>::FITS;
        let c_name = name::own(name)?;
        let is_there = || find(&c_name).is_ok();
        name::FIELDS.register(&c_name, is_there, || Self::registered(name, &c_name))
    }

    fn registered(name: &str, c_name: &CStr) -> Result<Self, DynError> {
        // SAFETY: zeros are valid for a struct of numbers.
        let mut wanted: dpdk_sys::rte_mbuf_dynfield = unsafe { std::mem::zeroed() };
        name::fill(&mut wanted.name, c_name);
        (wanted.size, wanted.align) = (size_of::<T>(), align_of::<T>());
        // SAFETY: EAL runs (there is an Eal), and DPDK copies the arguments, under a lock of its
        // own.
        let offset = unsafe { dpdk_sys::rte_mbuf_dynfield_register(&raw const wanted) };
        match usize::try_from(offset) {
            Ok(offset) => Ok(Self(DynReader { offset, data: PhantomData })),
            Err(_) => Err(match (Errno::last(), find(c_name)) {
                (Errno::EEXIST, Ok((_, there))) => shape::<T>(name, &there),
                (errno, _) => name::full_or(name, errno),
            }),
        }
    }

    /// Returns a field that C code has registered, for writing.
    ///
    /// # Errors
    /// As [`DynReader::lookup`].
    ///
    /// # Safety
    /// Every reader of the field accepts any value of `T`, in every mbuf that the program may write
    /// it in.
    pub unsafe fn adopt(eal: &Eal, name: &str) -> Result<Self, DynError> {
        DynReader::lookup(eal, name).map(Self)
    }

    /// The field for reading only.
    #[must_use]
    pub fn reader(&self) -> DynReader<T> {
        self.0
    }

    /// Returns the packet's value: the last written one, or an arbitrary one.
    #[inline]
    #[must_use]
    pub fn read(&self, mbuf: &Mbuf<'_>) -> T {
        self.0.read(mbuf)
    }

    /// Sets the packet's value.
    #[inline]
    pub fn write(&self, mbuf: &mut Mbuf<'_>, value: T) {
        // SAFETY: as in `DynReader::read`; the first mbuf is this owner's, as for `Mbuf::set_port`.
        unsafe { set_field(mbuf.as_ptr(), self.0.offset, value) }
    }
}

/// Returns the offset of a field, and the parameters of its registration.
fn find(name: &CStr) -> Result<(usize, dpdk_sys::rte_mbuf_dynfield), Errno> {
    // SAFETY: zeros are valid for a struct of numbers, which DPDK fills in; the name is a C string.
    let (offset, there) = unsafe {
        let mut there: dpdk_sys::rte_mbuf_dynfield = std::mem::zeroed();
        (dpdk_sys::rte_mbuf_dynfield_lookup(name.as_ptr(), &raw mut there), there)
    };
    usize::try_from(offset).map(|offset| (offset, there)).map_err(|_| Errno::last())
}

fn shape<T>(name: &str, there: &dpdk_sys::rte_mbuf_dynfield) -> DynError {
    DynError::Shape {
        name: name.to_owned(),
        size: size_of::<T>(),
        align: align_of::<T>(),
        there: there.size,
        there_align: there.align,
    }
}
