// SPDX-License-Identifier: BSD-3-Clause
//! A lane: the path of frames from one queue of a port to the port that they are sent on, and the
//! lcore that runs it.

use std::os::fd::BorrowedFd;

use forwarders_common::l2fwd::Plan;
use forwarders_common::polling::BURST;

use crate::interface::Port;

/// The most frames of one receive call, and so of one burst.
pub const MOST: usize = BURST;

/// Why a lane cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The interface was deleted, or moved to another namespace.
    #[error("{device}: network interface {iface} is gone")]
    Gone {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
    },
    /// The kernel refused for a permanent reason.
    #[error("{device}: {iface}: {call}: {source}")]
    System {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// The failed call.
        call: &'static str,
        /// The reason.
        source: std::io::Error,
    },
}

impl LaneError {
    /// The error for the first of these ports that is gone.
    pub(crate) fn gone<'p>(ports: impl IntoIterator<Item = &'p Port>) -> Result<(), Self> {
        ports.into_iter().find(|port| port.is_gone()).map_or(Ok(()), |port| Err(Self::left(port)))
    }

    /// The error for a port whose interface is gone, or was for a while.
    pub(crate) fn left(port: &Port) -> Self {
        let (device, iface) = (port.device.clone(), port.iface.clone());
        Self::Gone { device, iface }
    }

    /// A call of the kernel for a port failed.
    pub(crate) fn of(port: &Port, call: &'static str, source: std::io::Error) -> Self {
        if port.is_gone() {
            return Self::left(port);
        }
        let (device, iface) = (port.device.clone(), port.iface.clone());
        Self::System { device, iface, call, source }
    }
}

/// The work of one thread on one queue of a port.
pub trait Lane: Send {
    /// Receives up to [`MOST`] frames without waiting; returns their number.
    ///
    /// # Errors
    /// See [`LaneError`].
    fn receive(&mut self) -> Result<usize, LaneError>;

    /// Rewrites and sends the frames of the last [`receive`](Self::receive). Frames that cannot be
    /// sent are dropped and counted.
    ///
    /// # Errors
    /// See [`LaneError`].
    fn forward(&mut self) -> Result<(), LaneError>;

    /// Continues to send frames that were passed to the kernel and not sent yet. Called from time
    /// to time; returns true if none is left.
    ///
    /// # Errors
    /// See [`LaneError`].
    fn flush(&mut self) -> Result<bool, LaneError> {
        Ok(true)
    }

    /// Gives up frames that were passed to the kernel and not sent yet, and counts them as dropped.
    fn abandon(&mut self) {}

    /// Checks that both interfaces still exist: if one was down when it was deleted, nothing else
    /// shows it. Called about once a second.
    ///
    /// # Errors
    /// [`LaneError::Gone`].
    fn check(&self) -> Result<(), LaneError>;

    /// Clears an error that would end every sleep at once, such as that of an interface that went
    /// down. Errors that the next [`receive`](Self::receive) clears need not be.
    fn take_error(&mut self) {}

    /// Readable if there is something to receive.
    fn fd(&self) -> BorrowedFd<'_>;
}

/// The assignment of a queue to an lcore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The lcore that polls.
    pub lcore: u32,
    /// The port that it polls.
    pub rx_port: u16,
    /// The queue's number.
    pub queue: u16,
    /// The port that the frames are sent on.
    pub tx_port: u16,
}

/// Assigns the queues of a plan's ports to lcores: the first queues as in the plan, then the
/// others, `per_lcore` for each lcore in turn. If there are too few lcores, assignment starts again
/// with the first.
#[must_use]
pub fn deal(plan: &Plan, queues: u16, lcores: &[u32], per_lcore: usize) -> Vec<Place> {
    let paths = plan.paths.len();
    let all = (0..queues).flat_map(|queue| plan.paths.iter().map(move |path| (queue, path)));
    all.enumerate()
        .map(|(number, (queue, path))| Place {
            lcore: match number < paths {
                true => path.lcore,
                false => lcores[number / per_lcore % lcores.len()],
            },
            rx_port: path.rx_port,
            queue,
            tx_port: path.tx_port,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use forwarders_common::l2fwd::Options;

    #[test]
    fn queues_are_dealt_in_turn() {
        let options = Options { port_mask: 3, ..Options::default() };
        let plan = Plan::new(&options, &[0, 1], &[4, 5, 6]).unwrap();
        let short = |places: Vec<Place>| {
            places.iter().map(|p| (p.lcore, p.rx_port, p.queue, p.tx_port)).collect::<Vec<_>>()
        };
        assert_eq!(short(deal(&plan, 1, &[4, 5, 6], 1)), [(4, 0, 0, 1), (5, 1, 0, 0)]);
        assert_eq!(
            short(deal(&plan, 2, &[4, 5, 6], 1)),
            [(4, 0, 0, 1), (5, 1, 0, 0), (6, 0, 1, 1), (4, 1, 1, 0)]
        );
    }
}
