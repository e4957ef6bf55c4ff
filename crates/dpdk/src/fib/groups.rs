// SPDX-License-Identifier: BSD-3-Clause
//! Counts the groups of entries that the routes of a table need.
//!
//! DPDK counts them too, but wrongly if a route's next hop equals that of the surrounding route, or
//! if the surrounding route is removed first. If a table runs out of groups in the middle of a
//! change, it is left half changed, which DPDK does not always report. So changes that could run
//! out are not started.

use std::collections::HashMap;

/// The groups that may be in use. Each is identified by the first bits that its addresses share,
/// and their number.
#[derive(Default)]
pub(super) struct Groups {
    users: HashMap<(u128, u8), u32>,
}

/// The groups that a route with this prefix (in the upper bits) needs: one for each further 8 bits
/// after the first 24, without the last ones, in which the prefix ends.
fn of(prefix: u128, len: u8) -> impl Iterator<Item = (u128, u8)> {
    (24..len).step_by(8).map(move |bits| (prefix >> (128 - bits), bits))
}

impl Groups {
    /// Returns true if at most `most` groups are in use with one more route.
    pub(super) fn fits(&self, prefix: u128, len: u8, most: u32) -> bool {
        let new = of(prefix, len).filter(|group| !self.users.contains_key(group)).count();
        self.users.len() + new <= most as usize
    }

    pub(super) fn add(&mut self, prefix: u128, len: u8) {
        for group in of(prefix, len) {
            *self.users.entry(group).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, prefix: u128, len: u8) {
        for group in of(prefix, len) {
            if let Some(users) = self.users.get_mut(&group) {
                *users -= 1;
                if *users == 0 {
                    self.users.remove(&group);
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test may.
mod tests {
    use super::*;

    fn address(text: &str) -> u128 {
        text.parse::<std::net::Ipv6Addr>().unwrap().into()
    }

    #[test]
    fn routes_share_the_groups_of_the_bits_that_they_share() {
        let mut groups = Groups::default();
        let (first, second) = (address("2001:db8:1::"), address("2001:db8:2::"));
        assert!(groups.fits(first, 24, 0), "24 bits need none");
        assert!(groups.fits(first, 48, 3) && !groups.fits(first, 48, 2), "24, 32 and 40 bits");
        groups.add(first, 48);
        assert!(groups.fits(second, 48, 3), "the same three");
        assert!(!groups.fits(address("2001:db9::"), 32 + 1, 3));
        groups.add(second, 48);
        groups.remove(first, 48);
        assert!(!groups.fits(address("::"), 25, 3));
        groups.remove(second, 48);
        assert!(groups.users.is_empty());
    }
}
