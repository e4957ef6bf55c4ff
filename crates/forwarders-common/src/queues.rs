// SPDX-License-Identifier: BSD-3-Clause
//! The queues that a telemetry command asks for.

/// All, those of a port, or one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    port: Option<u16>,
    queue: Option<u16>,
}

impl Queues {
    /// Parses a command's parameters: none, `PORT`, or `PORT,QUEUE`. `None` for anything else.
    #[must_use]
    pub fn named(parameters: &str) -> Option<Self> {
        let parameters = parameters.trim();
        if parameters.is_empty() {
            return Some(Self { port: None, queue: None });
        }
        let numbers: Result<Vec<u16>, _> =
            parameters.split(',').map(|word| word.trim().parse()).collect();
        match numbers.ok()?[..] {
            [port] => Some(Self { port: Some(port), queue: None }),
            [port, queue] => Some(Self { port: Some(port), queue: Some(queue) }),
            _ => None,
        }
    }

    /// Returns true if this queue of this port is one of them.
    #[must_use]
    pub fn have(self, port: u16, queue: u16) -> bool {
        self.port.is_none_or(|only| only == port) && self.queue.is_none_or(|only| only == queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_all_a_ports_or_one() {
        let which = |port, queue| Some(Queues { port, queue });
        assert_eq!(Queues::named(" "), which(None, None));
        assert_eq!(Queues::named("3"), which(Some(3), None));
        assert_eq!(Queues::named("3, 7"), which(Some(3), Some(7)));
        for wrong in ["x", "1,", ",1", "1,2,3", "65536", "-1"] {
            assert_eq!(Queues::named(wrong), None, "{wrong:?}");
        }
        let one = Queues { port: Some(1), queue: Some(2) };
        assert!(one.have(1, 2) && !one.have(1, 0) && !one.have(0, 2));
    }
}
