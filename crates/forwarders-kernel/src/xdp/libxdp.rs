// SPDX-License-Identifier: BSD-3-Clause
//! libxdp, loaded only when it is needed: a program that shares no interface runs without it.
//!
//! It has its own libbpf, which must open the programs that libxdp is to load. It gets a program as
//! the bytes of an object, and pins it in a bpffs; all programs that use libxdp find it there.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

use super::Mode;

const NAME: &CStr = c"libxdp.so.1";
const MODE_UNSPECIFIED: c_int = 0;

/// Why libxdp cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MissingError {
    /// The library was not found.
    #[error("libxdp is missing ({0}); Debian: apt install libxdp1")]
    Library(String),
    /// It lacks a function.
    #[error("libxdp is too old: it has no {0}; 1.3 or later is needed")]
    Function(&'static str),
}

/// The program to attach to an interface.
pub(super) struct Wanted<'w> {
    /// The object file, and the program's name in it.
    pub(super) object: &'static [u8],
    pub(super) program: &'static str,
    /// The first bytes of its read-only data.
    pub(super) constants: &'w [u8],
    /// Maps that it shares, by name.
    pub(super) maps: &'w [(String, BorrowedFd<'w>)],
    /// The interface's index.
    pub(super) interface: u32,
}

/// A program that a dispatcher calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Called {
    pub(super) id: u32,
    pub(super) name: String,
}

/// `struct xdp_program_opts`.
#[repr(C)]
struct ProgramOptions {
    size: usize,
    object: *mut c_void,
    open_options: *const c_void,
    program: *const c_char,
    find_file: *const c_char,
    open_file: *const c_char,
    pin: *const c_char,
    id: u32,
    fd: c_int,
}

type Pointer = *mut c_void;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that are used, of libxdp and of its libbpf.
        #[derive(Clone, Copy)]
        #[expect(non_snake_case, reason = "they are called as the library calls them")]
        pub(super) struct Libxdp {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Libxdp {
            fn of(handle: Pointer) -> Result<Self, MissingError> {
                Ok(Self {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: the handle is an open library's, the name ends with a zero.
                        let found = unsafe { libc::dlsym(handle, name.as_ptr().cast()) };
                        if found.is_null() {
                            return Err(MissingError::Function(stringify!($name)));
                        }
                        type Function = unsafe extern "C" fn($($argument),*) $(-> $result)?;
                        // SAFETY: it is a function with the arguments and the result that the library's header
                        // gives it, and the library is never closed.
                        unsafe { std::mem::transmute::<Pointer, Function>(found) }
                    },)*
                })
            }
        }
    };
}

functions! {
    libxdp_get_error: fn(*const c_void) -> c_long;
    libxdp_set_print: fn(Pointer) -> Pointer;
    libbpf_set_print: fn(Pointer) -> Pointer;
    bpf_object__open_mem: fn(*const c_void, usize, *const c_void) -> Pointer;
    bpf_object__close: fn(Pointer);
    bpf_object__next_map: fn(Pointer, Pointer) -> Pointer;
    bpf_object__next_program: fn(Pointer, Pointer) -> Pointer;
    bpf_map__name: fn(Pointer) -> *const c_char;
    bpf_map__initial_value: fn(Pointer, *mut usize) -> Pointer;
    bpf_map__reuse_fd: fn(Pointer, c_int) -> c_int;
    bpf_program__name: fn(Pointer) -> *const c_char;
    bpf_program__set_autoload: fn(Pointer, bool) -> c_int;
    xdp_program__from_pin: fn(*const c_char) -> Pointer;
    xdp_program__create: fn(*mut ProgramOptions) -> Pointer;
    xdp_program__close: fn(Pointer);
    xdp_program__id: fn(Pointer) -> u32;
    xdp_program__name: fn(Pointer) -> *const c_char;
    xdp_program__attach: fn(Pointer, c_int, c_int, u32) -> c_int;
    xdp_program__detach: fn(Pointer, c_int, c_int, u32) -> c_int;
    xdp_multiprog__get_from_ifindex: fn(c_int) -> Pointer;
    xdp_multiprog__next_prog: fn(Pointer, Pointer) -> Pointer;
    xdp_multiprog__is_legacy: fn(Pointer) -> bool;
    xdp_multiprog__close: fn(Pointer);
}

/// The result of attaching a program.
pub(super) enum Attached {
    /// A dispatcher calls it; its ID.
    Shared(u32),
    /// It would not have shared the interface, and was detached again: libxdp attaches a program
    /// without a dispatcher, unasked, if it cannot load its dispatcher.
    Alone,
}

impl Libxdp {
    /// Finds the library.
    ///
    /// # Errors
    /// See [`MissingError`].
    pub(super) fn find() -> Result<Self, MissingError> {
        // SAFETY: the name ends with a zero; the library's start does nothing but set itself up.
        let handle = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: after an error it is a text of the C library's, until the next call.
            let told = unsafe { text(libc::dlerror()) };
            return Err(MissingError::Library(told));
        }
        let found = Self::of(handle)?;
        // SAFETY: without a function they print nothing; errors are told by what calls return.
        unsafe {
            (found.libxdp_set_print)(ptr::null_mut());
            (found.libbpf_set_print)(ptr::null_mut());
        }
        Ok(found)
    }

    /// Attaches a program to an interface, beside those that are there.
    ///
    /// # Errors
    /// libxdp's; nothing was changed then.
    pub(super) fn attach(&self, wanted: &Wanted<'_>, mode: Mode) -> io::Result<Attached> {
        let bytes = wanted.object;
        // SAFETY: the bytes live for ever; no options.
        let object =
            unsafe { (self.bpf_object__open_mem)(bytes.as_ptr().cast(), bytes.len(), ptr::null()) };
        if object.is_null() {
            return Err(io::Error::last_os_error());
        }
        let done = self.attach_opened(object, wanted, mode);
        // SAFETY: it was opened above, and what was made of it is closed.
        unsafe { (self.bpf_object__close)(object) };
        done
    }

    fn attach_opened(
        &self,
        object: Pointer,
        wanted: &Wanted<'_>,
        mode: Mode,
    ) -> io::Result<Attached> {
        self.prepare(object, wanted)?;
        let name = CString::new(wanted.program)?;
        let mut options = ProgramOptions {
            size: size_of::<ProgramOptions>(),
            object,
            open_options: ptr::null(),
            program: name.as_ptr(),
            find_file: ptr::null(),
            open_file: ptr::null(),
            pin: ptr::null(),
            id: 0,
            fd: 0,
        };
        // SAFETY: the options are laid out as libxdp.h has them and outlive the call, like the name.
        let program = self.checked(unsafe { (self.xdp_program__create)(&raw mut options) })?;
        let mode = match mode {
            Mode::Native => 1,
            Mode::Generic => 2,
        };
        let interface = wanted.interface as c_int;
        // SAFETY: the program is open.
        let code = unsafe { (self.xdp_program__attach)(program, interface, mode, 0) };
        let done = returned(code).and_then(|()| {
            // SAFETY: the program is open, and loaded now.
            let id = unsafe { (self.xdp_program__id)(program) };
            if self.called(wanted.interface).iter().any(|called| called.id == id) {
                return Ok(Attached::Shared(id));
            }
            // SAFETY: as above.
            returned(unsafe { (self.xdp_program__detach)(program, interface, mode, 0) })?;
            Ok(Attached::Alone)
        });
        // SAFETY: it was created above; what is attached stays, by its pins.
        unsafe { (self.xdp_program__close)(program) };
        done
    }

    /// Sets an object's constants and maps, and selects one of its programs to be loaded.
    fn prepare(&self, object: Pointer, wanted: &Wanted<'_>) -> io::Result<()> {
        let mut map = ptr::null_mut();
        loop {
            // SAFETY: the object is open, the map one of its own or none.
            map = unsafe { (self.bpf_object__next_map)(object, map) };
            if map.is_null() {
                break;
            }
            // SAFETY: the name lives as long as the map.
            let name = unsafe { text((self.bpf_map__name)(map)) };
            if name.ends_with(".rodata") {
                self.set_constants(map, wanted.constants)?;
            } else if let Some((_, fd)) = wanted.maps.iter().find(|(own, _)| *own == name) {
                // SAFETY: the map is open; the descriptor is duplicated.
                returned(unsafe { (self.bpf_map__reuse_fd)(map, fd.as_raw_fd()) })?;
            }
        }
        let mut program = ptr::null_mut();
        loop {
            // SAFETY: as above.
            program = unsafe { (self.bpf_object__next_program)(object, program) };
            if program.is_null() {
                return Ok(());
            }
            // SAFETY: as above.
            let is_wanted = unsafe { text((self.bpf_program__name)(program)) } == wanted.program;
            // SAFETY: the program is not loaded.
            returned(unsafe { (self.bpf_program__set_autoload)(program, is_wanted) })?;
        }
    }

    fn set_constants(&self, map: Pointer, bytes: &[u8]) -> io::Result<()> {
        let mut size = 0;
        // SAFETY: the map is open.
        let value = unsafe { (self.bpf_map__initial_value)(map, &raw mut size) };
        if value.is_null() || size < bytes.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: so many bytes are the map's, until it is loaded; ours are elsewhere.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast(), bytes.len()) };
        Ok(())
    }

    /// The programs that a dispatcher calls on an interface.
    pub(super) fn called(&self, interface: u32) -> Vec<Called> {
        let mut found = Vec::new();
        let told = self.each(interface, |program| {
            // SAFETY: the program is open; the name lives as long.
            let (id, name) =
                unsafe { ((self.xdp_program__id)(program), (self.xdp_program__name)(program)) };
            // SAFETY: as above.
            found.push(Called { id, name: unsafe { text(name) } });
            Ok(())
        });
        told.map_or_else(|_| Vec::new(), |()| found)
    }

    /// Detaches a program; the others continue.
    ///
    /// # Errors
    /// libxdp's.
    pub(super) fn detach(&self, interface: u32, id: u32) -> io::Result<()> {
        self.each(interface, |program| {
            // SAFETY: the program is open.
            if unsafe { (self.xdp_program__id)(program) } != id {
                return Ok(());
            }
            // SAFETY: as above.
            returned(unsafe {
                (self.xdp_program__detach)(program, interface as c_int, MODE_UNSPECIFIED, 0)
            })
        })
    }

    /// The ID of a program that is pinned at a path.
    pub(super) fn pinned(&self, path: &Path) -> Option<u32> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: the path ends with a zero.
        let program = unsafe { (self.xdp_program__from_pin)(path.as_ptr()) };
        let program = self.checked(program).ok()?;
        // SAFETY: it is open, until it is closed here.
        unsafe {
            let id = (self.xdp_program__id)(program);
            (self.xdp_program__close)(program);
            Some(id)
        }
    }

    /// Calls a function for each program that a dispatcher calls.
    fn each(
        &self,
        interface: u32,
        mut look: impl FnMut(Pointer) -> io::Result<()>,
    ) -> io::Result<()> {
        // SAFETY: it takes a number.
        let all = unsafe { (self.xdp_multiprog__get_from_ifindex)(interface as c_int) };
        let all = self.checked(all)?;
        let mut done = Ok(());
        // SAFETY: it is open.
        if !unsafe { (self.xdp_multiprog__is_legacy)(all) } {
            let mut program = ptr::null_mut();
            while done.is_ok() {
                // SAFETY: it is open, the program one of its own or none.
                program = unsafe { (self.xdp_multiprog__next_prog)(program, all) };
                if program.is_null() {
                    break;
                }
                done = look(program);
            }
        }
        // SAFETY: it was opened above; its programs go with it.
        unsafe { (self.xdp_multiprog__close)(all) };
        done
    }

    /// Checks a pointer that may be an error.
    fn checked(&self, pointer: Pointer) -> io::Result<Pointer> {
        // SAFETY: it only looks at the pointer's value.
        let code = unsafe { (self.libxdp_get_error)(pointer) };
        match returned(code as c_int) {
            Ok(()) if pointer.is_null() => Err(io::ErrorKind::NotFound.into()),
            told => told.map(|()| pointer),
        }
    }
}

fn returned(code: c_int) -> io::Result<()> {
    if code < 0 { Err(io::Error::from_raw_os_error(-code)) } else { Ok(()) }
}

/// A C string; empty for null.
///
/// # Safety
/// It is null, or NUL-terminated and unchanged during the call.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
