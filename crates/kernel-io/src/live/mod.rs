// SPDX-License-Identifier: BSD-3-Clause
//! Live frames: a sender that hands frames to an interface's driver without a socket and without an skb.
//!
//! The kernel runs an XDP program on frames of its own making (`BPF_PROG_TEST_RUN` with
//! `BPF_F_TEST_XDP_LIVE_FRAMES`, kernel 5.18 and later) and does with them what it says. Ours
//! (`bpf/live.bpf.c`) fills each with a frame that stands in memory shared with it, and returns `XDP_TX`.
//! So frames are whatever the caller writes.
//!
//! A call costs as much as sending some hundred frames, because the kernel makes and drops a pool of
//! pages for it; 32 frames share it. Nothing stays: program, map and tracing go with their
//! descriptors, and with the process.

mod call;
mod home;

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use libbpf_rs::Link;

use self::call::Call;
pub use self::call::MAX_FRAME;
use self::home::Home;
use crate::xdp::{LoadError, bpf, map, opened, program, refused};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/live.bpf.o"));

// linux/bpf.h.
const BPF_PROG_TEST_RUN: libc::c_int = 10;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
/// Frames between two hand-overs to the driver, as many as the kernel hands over at once
/// (`DEV_MAP_BULK_SIZE`): what is refused is known before the next frame is looked at.
const BATCH: u32 = 16;

/// Why an interface cannot be sent to by live frames.
#[derive(Debug, thiserror::Error)]
#[error("live frames on {iface}: {why}")]
pub struct LiveError {
    iface: String,
    why: String,
}

/// What an XDP program is told of a frame (`struct xdp_md`).
#[repr(C)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}

/// The part of `union bpf_attr` that runs programs.
#[repr(C)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

/// Sends frames by an interface; one for each thread that does.
pub struct LiveSender {
    call: Call,
    program: OwnedFd,
    interface: u32,
    _home: Home,
    _tracing: Vec<Link>,
}

impl LiveSender {
    /// A sender for an interface of this network namespace, given by name and number.
    ///
    /// # Errors
    /// The kernel is older than 5.18 or has no BTF, or the process lacks CAP_BPF, CAP_NET_ADMIN,
    /// CAP_PERFMON or CAP_SYS_ADMIN.
    pub fn new(iface: &str, interface: u32) -> Result<Self, LiveError> {
        let error = |why: String| LiveError { iface: iface.to_owned(), why };
        Self::load(interface).map_err(|why| error(why.to_string()))
    }

    fn load(interface: u32) -> Result<Self, LoadError> {
        let object = opened(OBJECT, None)?.load().map_err(refused("the program of live frames"))?;
        let system =
            |what| move |error: io::Error| LoadError::Refused { what, why: error.to_string() };
        let call = map(&object, "calls")?;
        let call =
            Call::new(call.as_fd(), interface).map_err(system("the memory of live frames"))?;
        let tracing: Result<Vec<Link>, _> = object
            .progs_mut()
            .filter(|program| program.name() != "send")
            .map(|program| program.attach_trace())
            .collect();
        let tracing = tracing.map_err(refused("tracing of what the driver takes"))?;
        let program = program(&object, "send")?;
        let home = Home::of(program.as_fd()).map_err(system("a network namespace of its own"))?;
        Ok(Self { call, program, interface, _home: home, _tracing: tracing })
    }

    /// Sends up to 32 frames, without FCS, in their order, until one is refused. Returns how
    /// many the driver took; of those behind the first refused one none is sent. A frame shorter than
    /// 14 bytes or longer than [`MAX_FRAME`] is refused.
    pub fn send<'f>(&mut self, frames: impl Iterator<Item = &'f [u8]>) -> usize {
        let (count, longest) = self.call.write(frames);
        if count == 0 {
            return 0;
        }
        // What the kernel first fills its pages with; frames are cut to their lengths.
        static BLANK: [u8; MAX_FRAME] = [0; MAX_FRAME];
        let context = Context {
            data: 0,
            data_end: longest,
            data_meta: 0,
            ingress_ifindex: self.interface,
            rx_queue_index: 0,
            egress_ifindex: 0,
        };
        let request = TestRun {
            prog_fd: self.program.as_raw_fd() as u32,
            retval: 0,
            data_size_in: longest,
            data_size_out: 0,
            data_in: BLANK.as_ptr() as u64,
            data_out: 0,
            repeat: count,
            duration: 0,
            ctx_size_in: size_of::<Context>() as u32,
            ctx_size_out: 0,
            ctx_in: &raw const context as u64,
            ctx_out: 0,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            cpu: 0,
            batch_size: BATCH.min(count),
            padding: 0,
        };
        // A signal or an interface that has gone ends it early: the call says how far it came.
        let _ = bpf(BPF_PROG_TEST_RUN, &request);
        self.call.sent()
    }
}
