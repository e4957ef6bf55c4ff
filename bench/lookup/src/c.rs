// SPDX-License-Identifier: BSD-3-Clause
//! The loops in C, from a library that `c/Makefile` builds.

use std::ffi::{CString, OsStr, c_char, c_void};

use libloading::{Error, Library};

use crate::loops::{Header, Key};

type Lookups = unsafe extern "C" fn(*const c_char, *const c_void, usize, u64) -> u64;
type Pool = unsafe extern "C" fn(*const c_char, u64) -> u64;
type Ring = unsafe extern "C" fn(*const c_char, *mut *mut c_void, u64) -> u64;

/// A build of the loops in C.
pub struct Loops {
    pub build: String,
    lpm: Lookups,
    lpm_x4: Lookups,
    hash: Lookups,
    acl: Lookups,
    pool: Pool,
    ring: Ring,
    ring_single: Ring,
    /// Loops over packets' bytes, by cell.
    packets: [(&'static str, Pool); 5],
}

/// A table's name as a C string; our names have no NUL byte.
fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// Packets for C: pointers, which it returns in any order.
pub type Packets = [*mut c_void; crate::loops::PACKETS];

impl Loops {
    /// Loads a library, which stays loaded until the process ends.
    pub fn load(build: &str, file: &OsStr) -> Result<Self, Error> {
        // SAFETY: the command line names a library of ours, which has no constructors.
        let library: &'static Library = Box::leak(Box::new(unsafe { Library::new(file) }?));
        // SAFETY: the functions are declared as in `c/lookup.c` and `c/packets.c`.
        unsafe {
            Ok(Self {
                build: build.to_owned(),
                lpm: *library.get(b"bench_lpm\0")?,
                lpm_x4: *library.get(b"bench_lpm_x4\0")?,
                hash: *library.get(b"bench_hash\0")?,
                acl: *library.get(b"bench_acl\0")?,
                pool: *library.get(b"bench_pool\0")?,
                ring: *library.get(b"bench_ring\0")?,
                ring_single: *library.get(b"bench_ring_single\0")?,
                packets: [
                    ("header", *library.get(b"bench_header\0")?),
                    ("prepend-adj", *library.get(b"bench_prepend_adj\0")?),
                    ("append-trim", *library.get(b"bench_append_trim\0")?),
                    ("checksum", *library.get(b"bench_checksum\0")?),
                    ("ipip", *library.get(b"bench_ipip\0")?),
                ],
            })
        }
    }

    pub fn lpm(&self, name: &str, addresses: &[u32], rounds: u64) -> u64 {
        // SAFETY: the table of that name is an LPM table, and the count is the number of addresses.
        unsafe {
            (self.lpm)(c_name(name).as_ptr(), addresses.as_ptr().cast(), addresses.len(), rounds)
        }
    }

    pub fn lpm_x4(&self, name: &str, addresses: &[u32], rounds: u64) -> u64 {
        // SAFETY: as above.
        unsafe {
            (self.lpm_x4)(c_name(name).as_ptr(), addresses.as_ptr().cast(), addresses.len(), rounds)
        }
    }

    pub fn hash(&self, name: &str, keys: &[Key], rounds: u64) -> u64 {
        // SAFETY: the table of that name has keys of this type, and the count is their number.
        unsafe { (self.hash)(c_name(name).as_ptr(), keys.as_ptr().cast(), keys.len(), rounds) }
    }

    pub fn acl(&self, name: &str, headers: &[Header], rounds: u64) -> u64 {
        // SAFETY: the list of that name reads only within a header, and the count is their number.
        unsafe { (self.acl)(c_name(name).as_ptr(), headers.as_ptr().cast(), headers.len(), rounds) }
    }

    pub fn pool(&self, name: &str, rounds: u64) -> u64 {
        // SAFETY: the pool of that name is a packet pool.
        unsafe { (self.pool)(c_name(name).as_ptr(), rounds) }
    }

    /// 0 if there is no such cell.
    pub fn packets(&self, cell: &str, pool: &str, rounds: u64) -> u64 {
        let found = self.packets.iter().find(|(name, _)| *name == cell);
        // SAFETY: the pool of that name is a packet pool.
        found.map_or(0, |(_, loops)| unsafe { loops(c_name(pool).as_ptr(), rounds) })
    }

    pub fn ring(&self, name: &str, packets: &mut Packets, rounds: u64) -> u64 {
        // SAFETY: the ring of that name holds pointers, and has room for these.
        unsafe { (self.ring)(c_name(name).as_ptr(), packets.as_mut_ptr(), rounds) }
    }

    pub fn ring_single(&self, name: &str, packets: &mut Packets, rounds: u64) -> u64 {
        // SAFETY: as above; nothing else uses the ring.
        unsafe { (self.ring_single)(c_name(name).as_ptr(), packets.as_mut_ptr(), rounds) }
    }
}
