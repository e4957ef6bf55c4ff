// SPDX-License-Identifier: BSD-3-Clause
//! net_af_xdp never releases some buffers and ports. They are counted and limited here, so that
//! clients can always open other locations.
//!
//! The driver keeps the buffers of each receive queue that it sets up. If the setup fails, it can
//! neither use the port nor remove it.

use std::time::{Duration, Instant};

/// Bytes of an mbuf's room for data beyond the frame without FCS: DPDK's headroom, the kernel's (XDP_PACKET_HEADROOM), and a
/// VLAN tag less the FCS.
pub(super) const BESIDE_FRAME: usize = 128 + 256;
/// Bytes of an mbuf in its pool, which lies in one page, beyond its room for data: the pool's header, the mbuf's, and what
/// DPDK may add so that mbufs use all memory channels alike.
const BESIDE_ROOM: usize = 64 + 128 + 64;

/// Most bytes of a frame, FCS included. The driver's own limit does not count the kernel's headroom: the kernel drops frames
/// that are longer than the rest.
pub(super) fn longest_frame() -> usize {
    host::page_size() - BESIDE_ROOM - BESIDE_FRAME
}

/// Most receive queues that may be set up during the life of the process. Each takes a pool.
const MOST_QUEUES: u16 = 32;
/// Most ports that could not be set up, and therefore stay, before AF_XDP is refused.
const MOST_STUCK: usize = 4;
/// How long the kernel may take to release a queue after its socket was closed: it does so later,
/// on a thread of its own, and until then refuses another socket. Some milliseconds are usual; a
/// busy machine may take longer. This is also the time to wait if the kernel does not report which
/// queues have sockets.
const RELEASE: Duration = Duration::from_secs(1);
/// How long a queue may have another socket before that counts as another program's.
const TAKEN: Duration = Duration::from_secs(5);
/// How often the kernel is asked while waiting.
const LOOK: Duration = Duration::from_millis(2);

/// What AF_XDP ports have taken so far.
#[derive(Debug, Default)]
pub(super) struct AfXdp {
    /// Arguments of the devices that could not be set up, and cannot be removed.
    stuck: Vec<String>,
    queues: u16,
    /// When a port was last closed for which the kernel does not report whether its queues are
    /// free.
    closed: Option<Instant>,
}

/// Why no AF_XDP port is opened.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AfXdpError {
    /// Too many ports could not be removed.
    #[error(
        "AF_XDP is not opened any more: {MOST_STUCK} interfaces or queues could not be set up, and DPDK's driver (net_af_xdp) can neither use nor remove their ports; restart the generator to free them, or use another kind of location such as af_packet:"
    )]
    Stuck,
    /// Too many queues were set up.
    #[error(
        "AF_XDP queues have been opened {0} times, of {MOST_QUEUES} in the life of a generator: DPDK's driver (net_af_xdp) never gives their buffers back; restart the generator to free them, or use another kind of location such as af_packet:"
    )]
    Queues(u16),
    /// A queue has a socket.
    #[error(
        "receive queue {0} already has an AF_XDP socket; end the program that has it, or use another kind of location such as af_packet:"
    )]
    Taken(u32),
}

impl AfXdp {
    /// Checks that another device may be made or tried again.
    ///
    /// # Errors
    /// [`AfXdpError::Stuck`].
    pub fn may_open(&self) -> Result<(), AfXdpError> {
        if self.stuck.len() < MOST_STUCK { Ok(()) } else { Err(AfXdpError::Stuck) }
    }

    /// Counts receive queues that are about to be set up; they count whether that succeeds or not.
    ///
    /// # Errors
    /// [`AfXdpError::Queues`].
    pub fn take(&mut self, queues: u16) -> Result<(), AfXdpError> {
        match self.queues.checked_add(queues).filter(|sum| *sum <= MOST_QUEUES) {
            Some(sum) => {
                self.queues = sum;
                Ok(())
            }
            None => Err(AfXdpError::Queues(self.queues)),
        }
    }

    /// Receive queues taken so far.
    pub fn queues(&self) -> u16 {
        self.queues
    }

    /// Notes that the device of these arguments could not be set up and stays.
    pub fn stays(&mut self, arguments: &str) {
        if !self.stuck.iter().any(|stuck| stuck == arguments) {
            self.stuck.push(arguments.to_owned());
        }
    }

    /// Notes that the device of these arguments has been set up, at once or later.
    pub fn works(&mut self, arguments: &str) {
        self.stuck.retain(|stuck| stuck != arguments);
    }

    /// Notes that a port was closed for which the kernel does not report whether its queues are
    /// free.
    pub fn closed(&mut self, now: Instant) {
        self.closed = Some(now);
    }

    /// Waits until the first receive queues of an interface have no socket any more. If one still
    /// has, DPDK's driver fails, and its port can never be removed.
    ///
    /// # Errors
    /// [`AfXdpError::Taken`].
    pub fn wait(&self, interface: Option<u32>, queues: u16) -> Result<(), AfXdpError> {
        std::thread::sleep(self.rest(Instant::now()));
        let deadline = Instant::now() + TAKEN;
        while let Some(queue) = taken(interface, queues) {
            if Instant::now() >= deadline {
                return Err(AfXdpError::Taken(queue));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// How long to wait if the kernel does not report which queues have sockets.
    fn rest(&self, now: Instant) -> Duration {
        let since = |closed| RELEASE.saturating_sub(now.saturating_duration_since(closed));
        self.closed.map_or(Duration::ZERO, since)
    }
}

/// The lowest of the first `queues` receive queues of an interface that has an AF_XDP socket;
/// `None` if none has, or if the kernel does not report it.
pub(super) fn taken(interface: Option<u32>, queues: u16) -> Option<u32> {
    let interface = interface?;
    (0..u32::from(queues)).find(|queue| host::queue_has_af_xdp(interface, *queue).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_devices_stay_and_no_more() {
        let mut af_xdp = AfXdp::default();
        for number in 0..4 {
            assert_eq!(af_xdp.may_open(), Ok(()));
            // The same device again is the same port.
            af_xdp.stays(&format!("net_af_xdp{number},iface=a"));
            af_xdp.stays(&format!("net_af_xdp{number},iface=a"));
        }
        assert_eq!(af_xdp.may_open(), Err(AfXdpError::Stuck));
        af_xdp.works("net_af_xdp2,iface=a");
        assert_eq!(af_xdp.may_open(), Ok(()));
    }

    #[test]
    fn queues_are_counted_for_ever() {
        let mut af_xdp = AfXdp::default();
        assert_eq!(af_xdp.take(16), Ok(()));
        assert_eq!(af_xdp.take(17), Err(AfXdpError::Queues(16)));
        assert_eq!((af_xdp.take(16), af_xdp.queues()), (Ok(()), 32));
        assert_eq!(af_xdp.take(1), Err(AfXdpError::Queues(32)));
    }

    #[test]
    fn the_kernel_has_time_to_give_a_queue_free() {
        let (mut af_xdp, begin) = (AfXdp::default(), Instant::now());
        assert_eq!(af_xdp.rest(begin), Duration::ZERO);
        af_xdp.closed(begin);
        for (elapsed, wait) in [(0, 1000), (150, 850), (1000, 0), (9999, 0)] {
            let now = begin + Duration::from_millis(elapsed);
            assert_eq!(af_xdp.rest(now), Duration::from_millis(wait), "{elapsed}");
        }
    }
}
