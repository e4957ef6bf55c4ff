// SPDX-License-Identifier: BSD-3-Clause
//! A lane: the way of frames from one queue of a port to the port that they leave by, and who works on
//! it.

use std::os::fd::BorrowedFd;

use forwarders_common::l2fwd::Plan;
use forwarders_common::polling::BURST;

use crate::interface::Port;

/// Most frames of one receive call, and so of one burst.
pub const MOST: usize = BURST;

/// Why a lane cannot go on.
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
    /// The kernel refused for a reason that does not pass.
    #[error("{device}: {iface}: {call}: {source}")]
    System {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// What was called.
        call: &'static str,
        /// Why.
        source: std::io::Error,
    },
}

impl LaneError {
    /// Of the first of these ports that is gone.
    pub(crate) fn gone<'p>(ports: impl IntoIterator<Item = &'p Port>) -> Result<(), Self> {
        ports.into_iter().find(|port| port.is_gone()).map_or(Ok(()), |port| Err(Self::left(port)))
    }

    /// This port's interface is gone, or was for a while.
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

/// What one thread does with one queue of a port.
pub trait Lane: Send {
    /// Receives what is there, at most [`MOST`] frames, without waiting; how many they were.
    ///
    /// # Errors
    /// See [`LaneError`].
    fn receive(&mut self) -> Result<usize, LaneError>;

    /// Rewrites and sends what the last call of [`receive`](Self::receive) brought. What cannot be sent
    /// is dropped and counted.
    ///
    /// # Errors
    /// See [`LaneError`].
    fn forward(&mut self) -> Result<(), LaneError>;

    /// Sees to what was handed to the kernel and not sent yet. Called now and then; whether nothing is
    /// under way any more.
    ///
    /// # Errors
    /// See [`LaneError`].
    fn flush(&mut self) -> Result<bool, LaneError> {
        Ok(true)
    }

    /// Gives up what was handed to the kernel and not sent yet, and counts it as dropped.
    fn abandon(&mut self) {}

    /// Sees whether both interfaces are still there: one that was down when it was deleted gives no other
    /// sign. Called about once a second.
    ///
    /// # Errors
    /// [`LaneError::Gone`].
    fn check(&self) -> Result<(), LaneError>;

    /// Takes the error away that ends every sleep at once, such as of an interface that went down. Those
    /// that the next call of [`receive`](Self::receive) takes need not be.
    fn take_error(&mut self) {}

    /// Readable when there is something to receive.
    fn fd(&self) -> BorrowedFd<'_>;
}

/// Which lcore works on which queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The lcore that polls.
    pub lcore: u32,
    /// The port that it polls.
    pub rx_port: u16,
    /// Its queue.
    pub queue: u16,
    /// The port that the frames leave by.
    pub tx_port: u16,
}

/// Deals the queues of a plan's ports to lcores: the first queues as the plan says, then the others, each
/// lcore `per_lcore` in its turn. Without lcores enough the last ones are dealt from the first lcore on
/// again.
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
