// SPDX-License-Identifier: BSD-3-Clause
//! net_af_xdp takes buffers and ports that it never gives back. They are counted and limited here, so that
//! clients can always open other locations.
//!
//! The driver keeps buffers of each receive queue that it sets up. Where it cannot set one up, it can
//! neither use nor remove the port any more.

use std::time::{Duration, Instant};

/// Receive queues that may be set up in the life of the process. Each takes a pool.
const MOST_QUEUES: u16 = 32;
/// Ports that could not be set up, and that stay, before no more are made.
const MOST_STUCK: usize = 4;
/// How long the kernel may take to give a queue free after its socket has been closed: it does so later, on
/// a thread of its own, and until then refuses another socket. Some milliseconds are usual, a busy machine may take longer.
/// Waited for where the kernel does not say which queues have sockets.
const RELEASE: Duration = Duration::from_secs(1);
/// How long another socket may have a queue before it counts as another program's.
const TAKEN: Duration = Duration::from_secs(5);
/// How often the kernel is asked meanwhile.
const LOOK: Duration = Duration::from_millis(2);

/// What has been taken so far.
#[derive(Debug, Default)]
pub(super) struct AfXdp {
    /// Arguments of the devices that could not be set up, and cannot be removed.
    stuck: Vec<String>,
    queues: u16,
    /// When a port was closed last of whose queues the kernel does not say whether they are free.
    closed: Option<Instant>,
}

/// Why no port is opened.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AfXdpError {
    /// Too many ports stay.
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
    /// Whether another device may be made or tried again.
    ///
    /// # Errors
    /// [`AfXdpError::Stuck`].
    pub fn may_open(&self) -> Result<(), AfXdpError> {
        if self.stuck.len() < MOST_STUCK { Ok(()) } else { Err(AfXdpError::Stuck) }
    }

    /// Takes receive queues, which are set up now whether that succeeds or not.
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

    /// Receive queues so far.
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

    /// Notes that a port was closed of whose queues the kernel does not say whether they are free.
    pub fn closed(&mut self, now: Instant) {
        self.closed = Some(now);
    }

    /// Waits until the first receive queues of an interface have no socket any more. With one, DPDK's driver fails, and its
    /// port stays for ever.
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

    /// How long to wait where the kernel does not say which queues have sockets.
    fn rest(&self, now: Instant) -> Duration {
        let since = |closed| RELEASE.saturating_sub(now.saturating_duration_since(closed));
        self.closed.map_or(Duration::ZERO, since)
    }
}

/// The lowest of the first `queues` receive queues of an interface that has an AF_XDP socket; `None` if none has, or if the
/// kernel does not say.
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
