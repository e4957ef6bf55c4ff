// SPDX-License-Identifier: BSD-3-Clause
//! Commands of the process's telemetry socket, which `dpdk-telemetry.py` queries.
//!
//! One DPDK thread answers all clients, one after the other, as long as the process lives. So
//! handlers are `'static`, `Send` and `Sync`, and must be quick. A command cannot be removed.
//!
//! DPDK's own commands (`/ethdev/info` and others) crash the program on unexpected parameters, such
//! as port 65536. So in every program that has an [`Eal`], requests are checked first. DPDK's
//! commands for ports, memory, pools and rings are answered if their parameters are harmless, and
//! by `null` otherwise; its commands for other devices, and those of C code in the program, always
//! by `null`. Commands registered here get any parameters. DPDK's older socket (`telemetry`) is
//! removed.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use ::telemetry::pieces;
pub use ::telemetry::{Value, room};
use dpdk_sys::rte_tel_data;

use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::mutex::locked;
use crate::{lcore, tsc};

/// Why a command was not registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name does not begin with a slash, or it or the help text holds a NUL byte.
    #[error(
        "telemetry command {0:?} must begin with a slash, and it and its help hold no NUL byte"
    )]
    Name(String),
    /// DPDK refused: the name is in use or too long, or there are too many commands.
    #[error("telemetry command {name:?}: {errno}")]
    Refused {
        /// The command.
        name: String,
        /// DPDK's answer.
        errno: Errno,
    },
}

type Handler = Arc<dyn Fn(&str) -> Option<Value> + Send + Sync>;

/// DPDK calls back with the command's name and no data of ours: this maps the name to its handler.
static HANDLERS: Mutex<Option<HashMap<CString, Handler>>> = Mutex::new(None);

/// Registers commands; see [`Eal::telemetry`].
///
/// ```standalone_crate
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use dpdk::telemetry::{RegisterError, Value};
/// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
///
/// let packets = Arc::new(AtomicU64::new(0));
/// let counted = Arc::clone(&packets);
/// eal.telemetry().register("/myapp/packets", "Packets so far", move |_parameters| {
///     Some(Value::dict([("packets", counted.load(Relaxed).into())]))
/// })?;
/// // A name begins with a slash.
/// let refused = eal.telemetry().register("no slash", "", |_| None);
/// assert!(matches!(refused, Err(RegisterError::Name(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Telemetry<'eal>(PhantomData<&'eal Eal>);

impl_debug!([] Telemetry<'_>);

impl Eal {
    /// Registers telemetry commands.
    #[must_use]
    pub fn telemetry(&self) -> Telemetry<'_> {
        Telemetry(PhantomData)
    }
}

impl Telemetry<'_> {
    /// Answers `command` (such as `/linerate/clock`) by `handler` (`rte_telemetry_register_cmd`).
    /// The handler gets the text after the command's comma, or an empty text. `None` is answered as
    /// `null`, for bad parameters. So is a value that [does not fit](Value::fits), of which DPDK
    /// would silently omit a part. A command that was registered here before gets the new handler.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register<F>(&self, command: &str, help: &str, handler: F) -> Result<(), RegisterError>
    where
        F: Fn(&str) -> Option<Value> + Send + Sync + 'static,
    {
        let bad_name = || RegisterError::Name(command.to_owned());
        if !command.starts_with('/') {
            return Err(bad_name());
        }
        let name = CString::new(command).map_err(|_| bad_name())?;
        let help = CString::new(help).map_err(|_| bad_name())?;
        let mut all = locked(&HANDLERS);
        let handlers = all.get_or_insert_default();
        if let Some(known) = handlers.get_mut(&name) {
            let before = std::mem::replace(known, Arc::new(handler));
            // The old handler is code of the program: it is not dropped under the lock, which every
            // answer needs.
            drop(all);
            drop(before);
            return Ok(());
        }
        // SAFETY: C strings that DPDK copies, and a function that lives for ever.
        let code = unsafe {
            dpdk_sys::rte_telemetry_register_cmd(name.as_ptr(), Some(answer), help.as_ptr())
        };
        Errno::check(code)
            .map_err(|errno| RegisterError::Refused { name: command.to_owned(), errno })?;
        handlers.insert(name, Arc::new(handler));
        Ok(())
    }

    /// Registers `/linerate/clock`, which returns `tsc_hz`, cycles per second, and
    /// `clock_cost_cycles`, the measured cost of reading the TSC once.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register_clock(&self) -> Result<(), RegisterError> {
        let cost = tsc::cost();
        self.register("/linerate/clock", "Rate of the TSC and cost of reading it", move |_| {
            Some(Value::dict([("tsc_hz", tsc::hz().into()), ("clock_cost_cycles", cost.into())]))
        })
    }
}

/// Returns true if the program has registered this command.
pub(crate) fn is_registered(command: &str) -> bool {
    let handlers = locked(&HANDLERS);
    handlers
        .as_ref()
        .is_some_and(|known| known.keys().any(|name| name.to_bytes() == command.as_bytes()))
}

unsafe extern "C" fn answer(
    command: *const c_char,
    parameters: *const c_char,
    data: *mut rte_tel_data,
) -> c_int {
    const EINVAL: c_int = -Errno::EINVAL.0;
    const ENOSPC: c_int = -Errno::ENOSPC.0;
    // SAFETY: DPDK passes the registered name, the parameters or NULL, and a place for the answer.
    let (command, parameters) = unsafe {
        let parameters = match parameters.is_null() {
            true => String::new(),
            false => CStr::from_ptr(parameters).to_string_lossy().into_owned(),
        };
        (CStr::from_ptr(command), parameters)
    };
    let handler = locked(&HANDLERS).as_ref().and_then(|handlers| handlers.get(command).cloned());
    let Some(handler) = handler else { return EINVAL };
    let value = match catch_unwind(AssertUnwindSafe(|| handler(&parameters))) {
        Ok(Some(value)) => value,
        Ok(None) => return EINVAL,
        Err(panic) => lcore::abort(&*panic),
    };
    if !value.fits(&command.to_string_lossy()) {
        return ENOSPC;
    }
    let mut made = Made(Vec::new());
    // SAFETY: `data` is DPDK's place for this answer.
    match unsafe { made.fill(data, &value) } {
        Some(()) => {
            made.0.clear(); // DPDK frees what it was given when it has answered.
            0
        }
        None => EINVAL,
    }
}

/// Lists and dictionaries inside an answer. DPDK ignores the content of a refused answer and does
/// not free its parts: dropping this frees them.
struct Made(Vec<*mut rte_tel_data>);

impl Drop for Made {
    fn drop(&mut self) {
        for &data in &self.0 {
            // SAFETY: made by `fresh`, and in no answer. Each has its own memory, whatever is inside it.
            unsafe { dpdk_sys::rte_tel_data_free(data) };
        }
    }
}

impl Made {
    /// Fresh telemetry data; `None` without memory.
    fn fresh(&mut self) -> Option<*mut rte_tel_data> {
        // SAFETY: allocates.
        let data = unsafe { dpdk_sys::rte_tel_data_alloc() };
        if data.is_null() {
            return None;
        }
        self.0.push(data);
        Some(data)
    }

    /// Writes a value into telemetry data; `None` if it does not fit.
    ///
    /// # Safety
    /// `data` is fresh telemetry data.
    unsafe fn fill(&mut self, data: *mut rte_tel_data, value: &Value) -> Option<()> {
        // SAFETY: the contract is the caller's; strings are NUL-terminated and copied.
        unsafe {
            match value {
                Value::String(text) => {
                    let text = CString::new(text.as_str()).ok()?;
                    done(dpdk_sys::rte_tel_data_string(data, text.as_ptr()))
                }
                Value::U64(_) => None, // DPDK has no bare number as an answer.
                Value::Text(text) => {
                    done(dpdk_sys::rte_tel_data_start_array(data, dpdk_sys::RTE_TEL_STRING_VAL))?;
                    pieces(text).try_for_each(|piece| {
                        let piece = CString::new(piece).ok()?;
                        done(dpdk_sys::rte_tel_data_add_array_string(data, piece.as_ptr()))
                    })
                }
                Value::Numbers(numbers) => {
                    done(dpdk_sys::rte_tel_data_start_array(data, dpdk_sys::TEL_ARRAY_U64))?;
                    numbers.iter().try_for_each(|number| {
                        done(dpdk_sys::tel_data_add_array_u64(data, *number))
                    })
                }
                Value::List(values) => {
                    done(dpdk_sys::rte_tel_data_start_array(data, dpdk_sys::RTE_TEL_CONTAINER))?;
                    values.iter().try_for_each(|value| self.add_item(data, value))
                }
                Value::Dict(entries) => {
                    done(dpdk_sys::rte_tel_data_start_dict(data))?;
                    entries.iter().try_for_each(|(name, value)| self.add_entry(data, name, value))
                }
            }
        }
    }

    /// Adds a list or dictionary to a list.
    ///
    /// DPDK 22.11 can print a list of dictionaries but accepts only lists as its items. So the
    /// container is added while it is an empty list, and gets its real type afterwards.
    ///
    /// # Safety
    /// `data` is a list of containers in the making.
    unsafe fn add_item(&mut self, data: *mut rte_tel_data, value: &Value) -> Option<()> {
        let inner = self.fresh()?;
        // SAFETY: the contract is the caller's, and `inner` is fresh.
        unsafe {
            done(dpdk_sys::rte_tel_data_start_array(inner, dpdk_sys::TEL_ARRAY_U64))?;
            done(dpdk_sys::rte_tel_data_add_array_container(data, inner, 0))?;
            self.fill(inner, value)
        }
    }

    /// Adds a named value to a dictionary.
    ///
    /// # Safety
    /// `data` is a dictionary in the making.
    unsafe fn add_entry(
        &mut self,
        data: *mut rte_tel_data,
        name: &str,
        value: &Value,
    ) -> Option<()> {
        let name = CString::new(name).ok()?;
        // SAFETY: the contract is the caller's; strings are NUL-terminated and copied, and `inner` is fresh.
        unsafe {
            match value {
                Value::U64(number) => {
                    done(dpdk_sys::tel_data_add_dict_u64(data, name.as_ptr(), *number))
                }
                Value::String(text) => {
                    let text = CString::new(text.as_str()).ok()?;
                    done(dpdk_sys::rte_tel_data_add_dict_string(data, name.as_ptr(), text.as_ptr()))
                }
                nested => {
                    let inner = self.fresh()?;
                    self.fill(inner, nested)?;
                    done(dpdk_sys::rte_tel_data_add_dict_container(data, name.as_ptr(), inner, 0))
                }
            }
        }
    }
}

/// Returns `None` unless DPDK accepted all of it: a truncated text gives `E2BIG`, which is not
/// negative.
fn done(code: c_int) -> Option<()> {
    (code == 0).then_some(())
}
