// SPDX-License-Identifier: BSD-3-Clause
//! Counts frames that drivers refuse after a program has passed them on, by tracepoints of the
//! kernel.

use std::os::unix::fs::MetadataExt as _;

use libbpf_rs::{Link, MapCore as _, MapFlags, Object};

use super::object::{LoadError, map, number, opened, refused, set_constants};
use crate::interface::Port;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/drops.bpf.o"));

/// Counts as long as this lives.
pub(super) struct Drops {
    object: Object,
    _links: Vec<Link>,
}

impl Drops {
    /// Counts for these ports.
    ///
    /// # Errors
    /// The kernel has no BTF, or no tracepoints for BPF, or refuses.
    pub(super) fn of(ports: &[Port]) -> Result<Self, LoadError> {
        let namespace = std::fs::metadata("/proc/thread-self/ns/net")
            .map_err(|error| LoadError::Refused {
                what: "the network namespace",
                why: error.to_string(),
            })?
            .ino();
        let mut object = opened(OBJECT, None)?;
        set_constants(&mut object, &(namespace as u32).to_ne_bytes())?;
        let object = object.load().map_err(refused("tracing of what drivers refuse"))?;
        let port_of = map(&object, "port_of")?;
        for port in ports {
            number(&port_of, port.index, port.id.into())?;
        }
        let links: Result<Vec<Link>, _> =
            object.progs_mut().map(|program| program.attach_trace()).collect();
        let links = links.map_err(refused("tracing of what drivers refuse"))?;
        Ok(Self { object, _links: links })
    }

    /// Frames that were to be sent on a port and were refused, so far.
    pub(super) fn count(&self, port: u16) -> Option<u64> {
        let map = map(&self.object, "port_drops").ok()?;
        let values = map.lookup_percpu(&u32::from(port).to_ne_bytes(), MapFlags::ANY).ok()??;
        let number =
            |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Some(values.iter().map(number).sum())
    }
}
