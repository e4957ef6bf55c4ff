// SPDX-License-Identifier: BSD-3-Clause
//! Which lcore polls which port, and where its packets go. Needs no DPDK.

use std::sync::Arc;

use super::options::Options;
use crate::options::ports_of;
use crate::polling::QueueFigures;

/// One port to poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// The lcore that polls.
    pub lcore: u32,
    /// The port that it polls.
    pub rx_port: u16,
    /// The port that the packets are sent on.
    pub tx_port: u16,
}

/// The assignment of ports to lcores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// A path for each enabled port, in ascending order of ports.
    pub paths: Vec<Path>,
    /// True if a port without a partner forwards to itself.
    pub odd: bool,
}

/// Why options do not fit the existing ports and lcores.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// EAL found none.
    #[error("No Ethernet ports - bye (add one with --vdev or -a)")]
    NoPorts,
    /// A pair names a port that `-p` does not.
    #[error("Invalid port pair config: port {0} is not enabled in port mask")]
    NotEnabled(u16),
    /// A pair names a port that does not exist.
    #[error("Invalid port pair config: port {0} is not present on the board")]
    NotPresent(u16),
    /// Two pairs name a port.
    #[error("Invalid port pair config: port {0} is used in other port pairs")]
    UsedTwice(u16),
    /// `-p` names ports that do not exist.
    #[error("Invalid portmask; possible (0x{0:x})")]
    Mask(u32),
    /// No port is enabled.
    #[error("All available ports are disabled. Please set portmask (-p).")]
    AllDisabled,
    /// Too few lcores for the ports.
    #[error(
        "Not enough cores: {ports} ports at {per_lcore} per lcore (-q) need more than {lcores} lcores (-l)"
    )]
    Cores {
        /// Ports enabled.
        ports: usize,
        /// Ports for each lcore.
        per_lcore: usize,
        /// Lcores available.
        lcores: usize,
    },
}

impl Plan {
    /// Assigns ports to lcores. `ports` are the existing ports and `lcores` the lcores, both in
    /// ascending order.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn new(options: &Options, ports: &[u16], lcores: &[u32]) -> Result<Self, PlanError> {
        if ports.is_empty() {
            return Err(PlanError::NoPorts);
        }
        let mut mask = options.port_mask;
        if let Some(pairs) = &options.pairs {
            mask &= check_pairs(pairs, mask, ports)?;
        }
        let possible = u32::MAX >> (32 - ports.len().min(32));
        if mask & !possible != 0 {
            return Err(PlanError::Mask(possible));
        }
        let enabled: Vec<u16> = ports_of(mask).filter(|port| ports.contains(port)).collect();
        if enabled.is_empty() {
            return Err(PlanError::AllDisabled);
        }
        let destination = |port: u16, index: usize| match &options.pairs {
            Some(pairs) => pairs
                .iter()
                .find_map(|&[a, b]| match port {
                    _ if port == a => Some(b),
                    _ if port == b => Some(a),
                    _ => None,
                })
                .unwrap_or(port),
            // Adjacent ports: 0 with 1, 2 with 3; the last of an odd number with itself.
            None => enabled.get(index ^ 1).copied().unwrap_or(port),
        };
        let mut paths = Vec::with_capacity(enabled.len());
        for (index, &rx_port) in enabled.iter().enumerate() {
            let lcore = *lcores.get(index / options.ports_per_lcore).ok_or(PlanError::Cores {
                ports: enabled.len(),
                per_lcore: options.ports_per_lcore,
                lcores: lcores.len(),
            })?;
            paths.push(Path { lcore, rx_port, tx_port: destination(rx_port, index) });
        }
        let odd = options.pairs.is_none() && enabled.len() % 2 == 1;
        Ok(Self { paths, odd })
    }

    /// The paths of an lcore.
    pub fn of(&self, lcore: u32) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(move |path| path.lcore == lcore)
    }

    /// Statistics for the polls of each path, in their order.
    #[must_use]
    pub fn figures(&self) -> Vec<Arc<QueueFigures>> {
        self.paths
            .iter()
            .map(|path| Arc::new(QueueFigures::new(path.lcore, path.rx_port, 0)))
            .collect()
    }
}

/// Checks the pairs; returns the mask of all ports in them.
fn check_pairs(pairs: &[[u16; 2]], mask: u32, ports: &[u16]) -> Result<u32, PlanError> {
    let mut paired = 0u32;
    for pair in pairs {
        let mut both = 0;
        for &port in pair {
            if mask & (1 << port) == 0 {
                return Err(PlanError::NotEnabled(port));
            }
            if !ports.contains(&port) {
                return Err(PlanError::NotPresent(port));
            }
            both |= 1 << port;
        }
        if paired & both != 0 {
            return Err(PlanError::UsedTwice(pair[1]));
        }
        paired |= both;
    }
    Ok(paired)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(port_mask: u32, ports_per_lcore: usize, pairs: Option<Vec<[u16; 2]>>) -> Options {
        Options { port_mask, ports_per_lcore, pairs, ..Options::default() }
    }

    fn hops(plan: &Plan) -> Vec<(u32, u16, u16)> {
        plan.paths.iter().map(|path| (path.lcore, path.rx_port, path.tx_port)).collect()
    }

    #[test]
    fn neighbours_are_paired_and_an_odd_port_with_itself() {
        let plan = Plan::new(&options(0b11101, 1, None), &[0, 1, 2, 3, 4], &[3, 4, 5, 6]).unwrap();
        assert_eq!(hops(&plan), [(3, 0, 2), (4, 2, 0), (5, 3, 4), (6, 4, 3)]);
        assert!(!plan.odd);
        let plan = Plan::new(&options(1, 1, None), &[0], &[0]).unwrap();
        assert_eq!(hops(&plan), [(0, 0, 0)]);
        assert!(plan.odd);
    }

    #[test]
    fn several_ports_share_an_lcore() {
        let plan = Plan::new(&options(0xf, 3, None), &[0, 1, 2, 3], &[1, 7]).unwrap();
        assert_eq!(hops(&plan), [(1, 0, 1), (1, 1, 0), (1, 2, 3), (7, 3, 2)]);
    }

    #[test]
    fn a_port_map_decides_and_drops_the_ports_it_does_not_name() {
        let pairs = Some(vec![[0, 3], [1, 1]]);
        let plan = Plan::new(&options(0xf, 4, pairs), &[0, 1, 2, 3], &[0]).unwrap();
        assert_eq!(hops(&plan), [(0, 0, 3), (0, 1, 1), (0, 3, 0)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refuse = |options: Options, ports: &[u16], lcores: &[u32]| {
            Plan::new(&options, ports, lcores).unwrap_err()
        };
        assert_eq!(refuse(options(1, 1, None), &[], &[0]), PlanError::NoPorts);
        assert_eq!(refuse(options(4, 1, None), &[0, 1], &[0]), PlanError::Mask(3));
        assert_eq!(refuse(options(0, 1, None), &[0, 1], &[0]), PlanError::AllDisabled);
        assert_eq!(refuse(options(1, 1, Some(vec![])), &[0], &[0]), PlanError::AllDisabled);
        let pairs = |pairs: &[[u16; 2]]| Some(pairs.to_vec());
        assert_eq!(
            refuse(options(1, 1, pairs(&[[0, 1]])), &[0, 1], &[0]),
            PlanError::NotEnabled(1)
        );
        assert_eq!(
            refuse(options(7, 1, pairs(&[[0, 2]])), &[0, 1], &[0]),
            PlanError::NotPresent(2)
        );
        assert_eq!(
            refuse(options(7, 1, pairs(&[[0, 1], [1, 2]])), &[0, 1, 2], &[0]),
            PlanError::UsedTwice(2)
        );
        assert!(matches!(refuse(options(3, 1, None), &[0, 1], &[0]), PlanError::Cores { .. }));
    }
}
