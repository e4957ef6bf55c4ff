// SPDX-License-Identifier: BSD-3-Clause
//! Loads eBPF objects through libbpf.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Mutex;

use libbpf_rs::{Map, MapCore as _, MapFlags, Object, ObjectBuilder, OpenObject, PrintLevel};

/// Why a program could not be loaded into the kernel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(
        "the kernel refuses BPF programs: they need the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; run as root"
    )]
    NotAllowed,
    #[error("{what}: {why}")]
    Refused { what: &'static str, why: String },
    /// The built-in object lacks a part.
    #[error("the built-in eBPF object has no {0}")]
    Lacks(&'static str),
}

/// libbpf's last messages. Its functions print them, and return only that there was an error.
static COMPLAINTS: Mutex<String> = Mutex::new(String::new());

fn keep(_: PrintLevel, text: String) {
    if let Ok(mut kept) = COMPLAINTS.lock() {
        kept.push_str(&text);
    }
}

/// Converts an error of libbpf, with its last messages.
pub(crate) fn refused(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> LoadError {
    move |error| {
        let complaints =
            COMPLAINTS.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
        match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => LoadError::NotAllowed,
            _ => {
                let told: Vec<&str> = complaints.lines().map(str::trim).collect();
                LoadError::Refused { what, why: format!("{error:#}\n{}", told.join("\n")) }
            }
        }
    }
}

/// Opens a built-in object, not loaded yet, with one of its programs to be loaded, or all.
pub(crate) fn opened(bytes: &[u8], program: Option<&'static str>) -> Result<OpenObject, LoadError> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    let mut object =
        ObjectBuilder::default().open_memory(bytes).map_err(refused("an eBPF object"))?;
    if let Some(wanted) = program {
        for mut program in object.progs_mut() {
            let is_wanted = program.name() == wanted;
            program.set_autoload(is_wanted);
        }
    }
    Ok(object)
}

/// Loads an opened object.
pub(crate) fn load(object: OpenObject) -> Result<Object, LoadError> {
    object.load().map_err(refused("an XDP program"))
}

/// Sets the constants of an object: the variables of its read-only data, in order.
pub(crate) fn set_constants(object: &mut OpenObject, bytes: &[u8]) -> Result<(), LoadError> {
    let mut maps = object.maps_mut();
    let Some(mut map) = maps.find(|map| map.name().as_encoded_bytes().ends_with(b".rodata")) else {
        return Err(LoadError::Lacks(".rodata"));
    };
    let Some(value) = map.initial_value_mut().filter(|value| value.len() >= bytes.len()) else {
        return Err(LoadError::Lacks(".rodata of the size that is wanted"));
    };
    value[..bytes.len()].copy_from_slice(bytes);
    Ok(())
}

/// Makes an object use the maps of another one with the same names.
pub(crate) fn share_maps(object: &mut OpenObject, with: &Object) -> Result<(), LoadError> {
    for mut map in object.maps_mut() {
        let is_data = map.name().as_encoded_bytes().ends_with(b".rodata");
        if let Some(other) = with.maps().find(|other| !is_data && other.name() == map.name()) {
            map.reuse_fd(other.as_fd()).map_err(refused("a shared map"))?;
        }
    }
    Ok(())
}

/// A map of an object.
pub(crate) fn map<'o>(object: &'o Object, name: &'static str) -> Result<Map<'o>, LoadError> {
    object.maps().find(|map| map.name() == OsStr::new(name)).ok_or(LoadError::Lacks(name))
}

/// A descriptor of a program.
pub(crate) fn program(object: &Object, name: &'static str) -> Result<OwnedFd, LoadError> {
    let found = object.progs().find(|program| program.name() == OsStr::new(name));
    let found = found.ok_or(LoadError::Lacks(name))?;
    found.as_fd().try_clone_to_owned().map_err(|error| LoadError::Refused {
        what: "a program's descriptor",
        why: error.to_string(),
    })
}

/// Sets an entry of a map from number to number.
pub(crate) fn number(map: &Map<'_>, key: u32, value: u32) -> Result<(), LoadError> {
    map.update(&key.to_ne_bytes(), &value.to_ne_bytes(), MapFlags::ANY)
        .map_err(refused("an entry of a map"))
}
