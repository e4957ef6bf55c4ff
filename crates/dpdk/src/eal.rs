// SPDX-License-Identifier: BSD-3-Clause
//! The environment abstraction layer: starting and ending DPDK.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::debug::impl_debug;
use crate::early_exit::Starting;
use crate::errno::Errno;
use crate::lcore::{self, Lcore, Scope};
use crate::port::{self, PortId};
use crate::sockets;
use crate::stop::Stop;
use crate::telemetry_guard::{guard_telemetry, spare_cpus};

/// Why DPDK did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EalError {
    /// DPDK can be started once in the life of a process.
    #[error("DPDK can be started only once in a process, and this process has tried already")]
    AlreadyInitialised,
    /// An argument holds a NUL byte.
    #[error("EAL argument {0:?} holds a NUL byte")]
    Nul(String),
    /// Other users can put files into EAL's run-time directory.
    #[error("run-time directory {0}")]
    Runtime(#[source] std::io::Error),
    /// `rte_eal_init` failed; it has printed its reasons to standard error.
    #[error("EAL did not start: {0}; its messages are above (options: {1})")]
    Init(Errno, String),
    /// The process was started as a secondary one (`--proc-type`): its ports and pools would be
    /// another process's.
    #[error(
        "this is a secondary process, and only primary ones are supported: leave --proc-type out"
    )]
    Secondary,
    /// DPDK's telemetry socket could not be guarded.
    #[error(
        "telemetry cannot be guarded, and is off: {0}; start with --no-telemetry to do without it"
    )]
    Telemetry(#[source] std::io::Error),
}

/// DPDK, running. One per process.
///
/// Dropping it stops and closes every port and removes EAL's files and sockets. It stays on the
/// thread that made it (the main lcore), but may be shared: `&Eal` is `Send`.
pub struct Eal {
    /// Ports that a `Port` exists for.
    pub(crate) taken: Mutex<BTreeSet<u16>>,
    /// CPUs of threads that are no lcores.
    spare: Vec<usize>,
    /// Makes `Eal` neither `Send` nor `Sync`; `Sync` is given back below.
    thread: PhantomData<*mut ()>,
}

impl_debug!([] Eal, eal => taken: eal.taken);

// SAFETY: through `&Eal` one reads DPDK's configuration, which is constant after initialisation, and
// reaches functions that check their thread themselves or that DPDK documents as thread-safe.
unsafe impl Sync for Eal {}

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// The arguments that EAL keeps: the strings, and the array that it permutes. Stored here so that a
/// leak detector finds them: they are not leaked.
static ARGUMENTS: OnceLock<(Vec<AtomicPtr<c_char>>, AtomicPtr<*mut c_char>)> = OnceLock::new();

impl Eal {
    /// Starts DPDK (`rte_eal_init`). `arguments` begin with the program's name, as
    /// `std::env::args_os()` does. Returns the arguments that EAL did not consume: those after
    /// `--`, without the program's name.
    ///
    /// # Errors
    /// See [`EalError`]. After a failure DPDK cannot be started again in this process, except after [`EalError::Nul`]
    /// and [`EalError::Runtime`], which have not reached DPDK.
    ///
    /// # Panics
    /// Never.
    ///
    /// # Exits
    /// DPDK itself ends the process, with success, after `--help`, and before 25.11 after
    /// `--version`. From 25.11 on it also ends the process, with status 234, for an unknown option,
    /// one without its value, and one that is given twice. It has then printed which option is
    /// wrong; a line that begins with the program's name follows on standard error, and lists all
    /// options.
    pub fn init<I>(arguments: I) -> Result<(Self, Vec<OsString>), EalError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let mut strings = Vec::with_capacity(arguments.len().max(1));
        for argument in &arguments {
            let string = CString::new(argument.as_bytes())
                .map_err(|_| EalError::Nul(argument.to_string_lossy().into_owned()))?;
            strings.push(string);
        }
        if strings.is_empty() {
            strings.push(CString::default());
        }
        host::make_runtime_directory().map_err(EalError::Runtime)?;
        if INITIALISED.swap(true, Ordering::SeqCst) {
            return Err(EalError::AlreadyInitialised);
        }
        // EAL keeps and permutes the pointers, and reads the strings later: they are given to it
        // for ever, once per process.
        let mut argv: Vec<*mut c_char> = strings.into_iter().map(CString::into_raw).collect();
        let kept = argv.iter().map(|string| AtomicPtr::new(*string)).collect();
        let argc = argv.len() as c_int;
        argv.push(std::ptr::null_mut());
        let argv = Vec::leak(argv);
        let _ = ARGUMENTS.set((kept, AtomicPtr::new(argv.as_mut_ptr())));
        let given: Vec<_> = arguments.iter().skip(1).map(|a| a.to_string_lossy()).collect();
        let given = given.join(" ");
        let allowed = host::allowed_cpus();
        let starting = Starting::with(last_words(arguments.first(), &given));
        // SAFETY: argv is a NULL-terminated array of argc C strings that live for ever, and the flag
        // above makes this the only call.
        let consumed = unsafe { dpdk_sys::rte_eal_init(argc, argv.as_mut_ptr()) };
        drop(starting);
        if consumed < 0 {
            return Err(EalError::Init(Errno::last(), given));
        }
        lcore::forget_current();
        // SAFETY: EAL has started.
        if unsafe { dpdk_sys::rte_eal_process_type() } != dpdk_sys::RTE_PROC_PRIMARY {
            remove_own_of_secondary(&runtime_dir());
            return Err(EalError::Secondary);
        }
        let (taken, spare) = (Mutex::new(BTreeSet::new()), spare_cpus(&allowed));
        let eal = Self { taken, spare, thread: PhantomData };
        guard_telemetry(&eal.runtime_dir(), &eal.spare).map_err(EalError::Telemetry)?;
        // EAL moves the arguments that it did not consume to the end (getopt permutes); `consumed`
        // is the index of the last one that it did consume, the `--` if there is one.
        let rest = argv[..argc as usize]
            .iter()
            .skip(consumed as usize + 1)
            // SAFETY: the C strings made above, which live for ever.
            .map(|argument| unsafe { CStr::from_ptr(*argument) })
            .map(|argument| OsStr::from_bytes(argument.to_bytes()).to_owned())
            .collect();
        Ok((eal, rest))
    }

    /// The lcore that called [`Eal::init`] (`rte_get_main_lcore`).
    #[must_use]
    pub fn main_lcore(&self) -> Lcore {
        lcore::main()
    }

    /// All lcores in ascending order, the main one among them (`rte_get_next_lcore`).
    #[must_use]
    pub fn lcores(&self) -> Vec<Lcore> {
        lcore::all()
    }

    /// The lcores that work can be launched on: all but the main one (`rte_get_next_lcore`).
    #[must_use]
    pub fn workers(&self) -> Vec<Lcore> {
        let main = self.main_lcore();
        self.lcores().into_iter().filter(|lcore| *lcore != main).collect()
    }

    /// Runs `body`, which may launch work on worker lcores, and returns when `body` and all that work
    /// have ended (`rte_eal_wait_lcore`). The work may borrow what outlives the scope.
    ///
    /// ```standalone_crate
    /// # fn run(eal: &dpdk::Eal) -> Result<(), dpdk::LaunchError> {
    /// let counter = std::sync::atomic::AtomicU64::new(0);
    /// eal.scope(|scope| {
    ///     for lcore in eal.workers() {
    ///         scope.launch(lcore, || {
    ///             counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    ///         })?;
    ///     }
    ///     Ok(())
    /// })
    /// # }
    /// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
    /// # run(&eal)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        lcore::scope(body)
    }

    /// Lets the calling thread run on the CPUs without lcores, of those that the process could use when it called [`Eal::init`]; on the
    /// main lcore's if there are no others. A thread runs on the CPU of the lcore that spawned it, and takes time from its polls.
    ///
    /// # Errors
    /// The system's. A thread that is an lcore is refused ([`InvalidInput`](std::io::ErrorKind::InvalidInput)).
    pub fn leave_lcores(&self) -> std::io::Result<()> {
        if let Some(lcore) = Lcore::current() {
            let reason = format!("lcore {} keeps its CPU", lcore.id());
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, reason));
        }
        host::run_on(&self.spare)
    }

    /// [`scope`](Self::scope) for work that runs until `stop` is set: sets it when `body` ends, in whatever way, before it waits for the
    /// work. If `body` returns early with an error, or panics, the lcores end too, and the error is seen at once.
    ///
    /// ```standalone_crate
    /// use dpdk::{LaunchError, Stop};
    ///
    /// # fn run(eal: &dpdk::Eal) -> Result<(), LaunchError> {
    /// let stop = Stop::new(); // give `stop.flag()` to `signal_hook::flag::register`
    /// eal.scope_until(&stop, |scope| {
    ///     for lcore in eal.workers() {
    ///         scope.launch(lcore, || {
    ///             while !stop.is_set() {
    ///                 // receive, work, send
    ///             }
    ///         })?; // if an lcore cannot be launched, those before it end
    ///     }
    ///     // The main lcore's work: until `stop` is set, or until here.
    ///     Ok(())
    /// })
    /// # }
    /// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
    /// # run(&eal)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope_until<'env, R>(
        &self,
        stop: &Stop,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        lcore::scope(|scope| {
            let _ends = stop.guard();
            body(scope)
        })
    }

    /// The ports that exist now, in ascending order (`rte_eth_dev_count_avail`).
    #[must_use]
    pub fn ports(&self) -> Vec<PortId> {
        let _alone = port::lock();
        port::valid_ports()
    }

    /// The port whose device has this name, such as `net_memif0` or a PCI address; `None` if there
    /// is none among [`ports`](Self::ports) (`rte_eth_dev_get_port_by_name`).
    #[must_use]
    pub fn port_named(&self, name: &str) -> Option<PortId> {
        let _alone = port::lock();
        port::valid_ports().into_iter().find(|id| id.name_locked().as_deref() == Some(name))
    }

    /// Writes a line to DPDK's log at level INFO, with the type of an application
    /// (`RTE_LOGTYPE_USER1`). `--log-level` and `--syslog` decide where it goes (`rte_log`). A NUL
    /// byte ends the line. Not for the packet path.
    pub fn log_info(&self, line: &str) {
        let most = c_int::try_from(line.len()).unwrap_or(c_int::MAX);
        // SAFETY: a constant format with one string, of which no more is read than there is.
        unsafe {
            dpdk_sys::rte_log(
                dpdk_sys::RTE_LOG_INFO,
                dpdk_sys::RTE_LOGTYPE_USER1,
                c"%.*s\n".as_ptr(),
                most,
                line.as_ptr(),
            );
        }
    }

    /// The directory of this process's run-time files, its telemetry socket among them (`rte_eal_get_runtime_dir`).
    #[must_use]
    pub fn runtime_dir(&self) -> PathBuf {
        runtime_dir()
    }

    /// Returns true if packet memory is in huge pages (`rte_eal_has_hugepages`); false with
    /// `--no-huge`.
    #[must_use]
    pub fn has_hugepages(&self) -> bool {
        // SAFETY: reads EAL's configuration.
        unsafe { dpdk_sys::rte_eal_has_hugepages() != 0 }
    }
}

/// Removes the files of a secondary process in its primary's directory: sockets, and copies of its
/// memory lists, whose names contain its process ID as a word.
fn remove_own_of_secondary(dir: &Path) {
    let id = std::process::id().to_string();
    let lists = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let lists = lists.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("fbarray_") && name.split('_').any(|word| word == id)
    });
    for path in lists.chain(sockets::own(dir)) {
        let _ = std::fs::remove_file(path);
    }
}

/// To be called once EAL has started.
fn runtime_dir() -> PathBuf {
    // SAFETY: returns a static C string then.
    let dir = unsafe { CStr::from_ptr(dpdk_sys::rte_eal_get_runtime_dir()) };
    PathBuf::from(OsStr::from_bytes(dir.to_bytes()))
}

/// The message when EAL ends the process.
fn last_words(program: Option<&OsString>, options: &str) -> String {
    let name = program.and_then(|path| Path::new(path).file_name()).unwrap_or(OsStr::new("EAL"));
    let name = name.to_string_lossy();
    format!(
        "{name}: EAL did not start and ends the program; its messages are above (options: {options})"
    )
}

impl Drop for Eal {
    fn drop(&mut self) {
        let forgotten =
            std::mem::take(self.taken.get_mut().unwrap_or_else(|poison| poison.into_inner()));
        let runtime_dir = self.runtime_dir();
        // EAL leaves its sockets until the process exits, and the directory for ever. Telemetry's
        // socket is removed first, so that no client can connect and ask about a port that is being
        // closed. The socket for other processes is needed while ports close. Drivers remove their
        // ports' own sockets.
        for socket in sockets::own(&runtime_dir) {
            let name = socket.file_name().unwrap_or_default();
            if name.as_bytes().starts_with(b"dpdk_telemetry") {
                let _ = std::fs::remove_file(socket);
            }
        }
        let alone = port::lock();
        for port in port::valid_ports() {
            // No thread sends on it any more. Its sockets end with the process; an XDP program that
            // it has put on its interface stays.
            if !port::may_be_closed(port) {
                continue;
            }
            let _apart = port::apart(port);
            // SAFETY: every `Port` and queue borrows from this Eal and is gone. A port that is still
            // taken was forgotten, perhaps started; it will never be used again.
            unsafe {
                if forgotten.contains(&port.index()) {
                    dpdk_sys::rte_eth_dev_stop(port.index());
                }
                dpdk_sys::rte_eth_dev_close(port.index());
            }
        }
        drop(alone);
        // rte_eal_cleanup is not called: it unmaps DPDK's memory while EAL's interrupt thread and
        // the threads of telemetry clients still read it (seen: a forwarder crashed at its end
        // while a telemetry client was connected). The kernel frees the memory when the process
        // exits. A directory that other processes share holds files and sockets of theirs and
        // stays.
        for socket in sockets::own(&runtime_dir) {
            let _ = std::fs::remove_file(socket);
        }
        let _ = std::fs::remove_dir(runtime_dir);
    }
}
