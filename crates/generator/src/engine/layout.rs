// SPDX-License-Identifier: BSD-3-Clause
//! Which lcore polls and sends what.
//!
//! One lcore does everything. With more, some receive and the others send, so that neither waits
//! for the other. A port's flows are distributed over all lcores that send. Its frames are received
//! by one lcore, unless more receive queues are requested: the order of two frames on two queues is
//! unknown.

/// A queue of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Index of the port.
    pub port: usize,
    /// Number of the queue.
    pub queue: u16,
}

/// The work of one lcore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Queues that it polls.
    pub receives: Vec<Queue>,
    /// Queues on which it sends.
    pub sends: Vec<Queue>,
}

/// Most queues of a port, as its driver reports it.
#[derive(Clone, Copy, Debug)]
pub struct MostQueues {
    /// Receive queues.
    pub rx: u16,
    /// Transmit queues.
    pub tx: u16,
}

/// Distributes the queues of ports over `lcores` lcores. Every port has a transmit queue for each
/// lcore that sends, and `rx_queues` receive queues, both limited by its driver. The numbers depend
/// on nothing else, so that a port can be kept when others are added or removed.
pub fn shares(lcores: usize, ports: &[MostQueues], rx_queues: u16) -> Vec<Share> {
    let lcores = lcores.max(1);
    let mut shares = vec![Share::default(); lcores];
    // Receiving is more work: it looks at every frame that arrives.
    let senders = lcores / 2;
    let (sending, receiving) = match senders {
        0 => (0..1, 0..1),
        _ => (0..senders, senders..lcores),
    };
    for (port, most) in ports.iter().enumerate() {
        for queue in 0..rx_count(most, rx_queues, receiving.len()) {
            let lcore = receiving.start + (port + usize::from(queue)) % receiving.len();
            if let Some(share) = shares.get_mut(lcore) {
                share.receives.push(Queue { port, queue });
            }
        }
        for queue in 0..tx_count(most, sending.len()) {
            let lcore = sending.start + (port + usize::from(queue)) % sending.len();
            if let Some(share) = shares.get_mut(lcore) {
                share.sends.push(Queue { port, queue });
            }
        }
    }
    shares
}

/// Receive and transmit queues of a port with `lcores` lcores.
pub fn queues(lcores: usize, most: &MostQueues, rx_queues: u16) -> (u16, u16) {
    let lcores = lcores.max(1);
    let senders = (lcores / 2).max(1);
    let receivers = (lcores - lcores / 2).max(1);
    (rx_count(most, rx_queues, receivers), tx_count(most, senders))
}

fn rx_count(most: &MostQueues, wanted: u16, receivers: usize) -> u16 {
    wanted.min(most.rx).min(u16::try_from(receivers).unwrap_or(u16::MAX)).max(1)
}

fn tx_count(most: &MostQueues, senders: usize) -> u16 {
    most.tx.min(u16::try_from(senders).unwrap_or(u16::MAX)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ports(n: usize, most: u16) -> Vec<MostQueues> {
        vec![MostQueues { rx: most, tx: most }; n]
    }

    fn queue(port: usize, queue: u16) -> Queue {
        Queue { port, queue }
    }

    #[test]
    fn one_lcore_does_everything() {
        let all = vec![queue(0, 0), queue(1, 0)];
        assert_eq!(shares(1, &ports(2, 4), 1), [Share { receives: all.clone(), sends: all }]);
    }

    #[test]
    fn two_split_sending_from_receiving() {
        let all = vec![queue(0, 0), queue(1, 0)];
        let sends = Share { receives: vec![], sends: all.clone() };
        assert_eq!(shares(2, &ports(2, 4), 1), [sends, Share { receives: all, sends: vec![] }]);
    }

    #[test]
    fn more_get_queues_of_their_own() {
        let shares = shares(5, &ports(1, 2), 3);
        let receives: Vec<_> = shares.iter().map(|share| share.receives.clone()).collect();
        let sends: Vec<_> = shares.iter().map(|share| share.sends.clone()).collect();
        assert_eq!(sends, [vec![queue(0, 0)], vec![queue(0, 1)], vec![], vec![], vec![]]);
        // The driver has two queues for three receiving lcores.
        assert_eq!(receives, [vec![], vec![], vec![queue(0, 0)], vec![queue(0, 1)], vec![]]);
    }

    proptest! {
        #[test]
        fn every_queue_has_one_lcore_and_numbers_have_no_holes(
            lcores in 1usize..20, most in prop::collection::vec((1u16..5, 1u16..5), 0..9), rx_queues in 1u16..6,
        ) {
            let ports: Vec<_> = most.iter().map(|(rx, tx)| MostQueues { rx: *rx, tx: *tx }).collect();
            let shares = shares(lcores, &ports, rx_queues);
            prop_assert_eq!(shares.len(), lcores);
            for (port, most) in ports.iter().enumerate() {
                let numbers = |of: fn(&Share) -> &Vec<Queue>| {
                    let mut all: Vec<u16> = shares.iter().flat_map(of).filter(|queue| queue.port == port).map(|queue| queue.queue).collect();
                    all.sort_unstable();
                    all
                };
                let (rx, tx) = queues(lcores, most, rx_queues);
                prop_assert!(rx <= most.rx && tx <= most.tx && rx > 0 && tx > 0);
                prop_assert_eq!(numbers(|share| &share.receives), (0..rx).collect::<Vec<_>>());
                prop_assert_eq!(numbers(|share| &share.sends), (0..tx).collect::<Vec<_>>());
            }
        }
    }
}
