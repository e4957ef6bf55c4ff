// SPDX-License-Identifier: BSD-3-Clause
//! Which lcore polls which queue, checked.

use super::options::{Options, Polled};
use crate::options::ports_of;

/// Queues that one lcore may poll, and that a port may have, as in the C example.
const MAX_PER_LCORE: usize = 16;
const MAX_PER_PORT: u16 = 128;

/// Why the options do not fit the existing ports and lcores.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No port was named.
    #[error("no port is enabled: name some by -p, a hexadecimal mask")]
    NoPorts,
    /// The mask names a port that does not exist.
    #[error("-p: port {0} is not present; add a device by --vdev or -a")]
    NoSuchPort(u16),
    /// No lcore but the main one.
    #[error("the main lcore does not forward: give EAL another one (-l, --lcores)")]
    NoWorkers,
    /// A queue has too high a number.
    #[error("--config: port {port} has queue {queue}: the highest is {}", MAX_PER_PORT - 1)]
    Queue {
        /// The port.
        port: u16,
        /// Its queue.
        queue: u16,
    },
    /// An lcore that EAL was not given.
    #[error("--config: lcore {0} is not enabled; see EAL's -l and --lcores")]
    NoSuchLcore(u32),
    /// The main lcore.
    #[error("--config: lcore {0} is the main lcore, which does not forward")]
    MainLcore(u32),
    /// A port that is not enabled.
    #[error("--config: port {0} is not enabled in -p")]
    NotEnabled(u16),
    /// A port's queues have gaps, or one is listed twice.
    #[error(
        "--config: the queues of port {port} must be listed as 0, 1, 2, ..., but queue {queue} comes too {when}"
    )]
    Order {
        /// The port.
        port: u16,
        /// The queue that is out of order.
        queue: u16,
        /// Too early or too late.
        when: &'static str,
    },
    /// An lcore with too many queues.
    #[error("--config: lcore {0} has more than {MAX_PER_LCORE} queues")]
    TooMany(u32),
}

/// The checked assignment of queues to lcores.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// Enabled ports, ascending.
    pub ports: Vec<u16>,
    /// Queues, in the order of the command line.
    pub queues: Vec<Polled>,
    /// Lcores that poll, in ascending order. An lcore's index is the number of its transmit queue
    /// on every port.
    pub lcores: Vec<u32>,
}

impl Plan {
    /// Checks the options with these ports and lcores.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn new(
        options: &Options,
        present: &[u16],
        main: u32,
        workers: &[u32],
    ) -> Result<Self, PlanError> {
        let ports: Vec<u16> = ports_of(options.port_mask).collect();
        if ports.is_empty() {
            return Err(PlanError::NoPorts);
        }
        if let Some(port) = ports.iter().find(|port| !present.contains(port)) {
            return Err(PlanError::NoSuchPort(*port));
        }
        if workers.is_empty() {
            return Err(PlanError::NoWorkers);
        }
        let dealt = || ports.iter().zip(workers.iter().cycle());
        let default = || dealt().map(|(&port, &lcore)| Polled { port, queue: 0, lcore }).collect();
        let queues: Vec<Polled> = options.queues.clone().unwrap_or_else(default);
        for (place, polled) in queues.iter().enumerate() {
            check(polled, &queues[..place], &ports, main, workers)?;
        }
        let mut lcores: Vec<u32> = queues.iter().map(|polled| polled.lcore).collect();
        lcores.sort_unstable();
        lcores.dedup();
        Ok(Self { ports, queues, lcores })
    }

    /// Receive queues of a port.
    pub fn queues_of(&self, port: u16) -> impl Iterator<Item = &Polled> {
        self.queues.iter().filter(move |polled| polled.port == port)
    }
}

fn check(
    polled: &Polled,
    before: &[Polled],
    ports: &[u16],
    main: u32,
    workers: &[u32],
) -> Result<(), PlanError> {
    let &Polled { port, queue, lcore } = polled;
    if queue >= MAX_PER_PORT {
        return Err(PlanError::Queue { port, queue });
    }
    if lcore == main {
        return Err(PlanError::MainLcore(lcore));
    }
    if !workers.contains(&lcore) {
        return Err(PlanError::NoSuchLcore(lcore));
    }
    if !ports.contains(&port) {
        return Err(PlanError::NotEnabled(port));
    }
    let expected = before.iter().filter(|other| other.port == port).count();
    if usize::from(queue) != expected {
        let when = if usize::from(queue) > expected { "early" } else { "late" };
        return Err(PlanError::Order { port, queue, when });
    }
    if before.iter().filter(|other| other.lcore == lcore).count() == MAX_PER_LCORE {
        return Err(PlanError::TooMany(lcore));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(mask: u32, queues: Option<&[(u16, u16, u32)]>) -> Result<Plan, PlanError> {
        let queues = queues.map(|all| {
            all.iter().map(|&(port, queue, lcore)| Polled { port, queue, lcore }).collect()
        });
        let options = Options { port_mask: mask, queues, ..Options::default() };
        Plan::new(&options, &[0, 1, 2], 0, &[1, 2])
    }

    #[test]
    fn ports_are_dealt_out_where_nothing_is_said() {
        let plan = plan(7, None).unwrap();
        let lcores: Vec<u32> = plan.queues.iter().map(|polled| polled.lcore).collect();
        assert_eq!(lcores, [1, 2, 1]);
        assert_eq!((plan.ports.as_slice(), plan.lcores.as_slice()), (&[0, 1, 2][..], &[1, 2][..]));
    }

    #[test]
    fn lcores_that_poll_are_counted_once() {
        let plan = plan(3, Some(&[(1, 0, 2), (0, 0, 2), (1, 1, 2)])).unwrap();
        assert_eq!(plan.lcores, [2]);
        assert_eq!(plan.queues_of(1).count(), 2);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let port = 0;
        for (mask, queues, expected) in [
            (0, None, PlanError::NoPorts),
            (8, None, PlanError::NoSuchPort(3)),
            (1, Some(&[(0, 0, 3)][..]), PlanError::NoSuchLcore(3)),
            (1, Some(&[(0, 0, 0)]), PlanError::MainLcore(0)),
            (1, Some(&[(1, 0, 1)]), PlanError::NotEnabled(1)),
            (1, Some(&[(0, 128, 1)]), PlanError::Queue { port, queue: 128 }),
            (1, Some(&[(0, 1, 1)]), PlanError::Order { port, queue: 1, when: "early" }),
            (1, Some(&[(0, 0, 1), (0, 0, 2)]), PlanError::Order { port, queue: 0, when: "late" }),
        ] {
            assert_eq!(plan(mask, queues), Err(expected));
        }
        let many: Vec<_> = (0..17).map(|queue| (0, queue, 1)).collect();
        assert_eq!(plan(1, Some(&many)), Err(PlanError::TooMany(1)));
    }
}
