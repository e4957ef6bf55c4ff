// SPDX-License-Identifier: BSD-3-Clause
//! Consistent hashing: which backend a new flow goes to.
//!
//! Each backend gets nearly the same share of all flows, and few flows change their backend when another backend comes or goes
//! (Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016, section 3.4). Instances with the same
//! backends choose alike, in whatever order they have them, because nothing here is random.

/// A lookup table from hashes to backends.
///
/// ```
/// use flow::maglev::{Maglev, hash};
///
/// let names = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"];
/// let table = Maglev::new(names, 1021);
/// let chosen = table.choose(hash(b"192.0.2.1:4711"));
/// assert!(chosen.is_some_and(|backend| backend < names.len()));
/// assert_eq!(Maglev::new([""; 0], 1021).choose(0), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maglev {
    /// The numbers of backends; empty if there is none.
    places: Box<[u16]>,
}

/// The most places, before they are rounded up.
const MOST: usize = 1 << 24;

/// A place without a backend, while a table is filled.
const EMPTY: u16 = u16::MAX;

impl Maglev {
    /// A table of at least `places` places for the backends with these names, which are the same on every instance: an address and a
    /// port, say. The number of places is rounded up to a prime; take a hundred times as many as backends or more, so that their
    /// shares differ by 1 % at most. A table has 2^24 places at most; backends beyond 65,535 get no flows.
    #[must_use]
    pub fn new<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>, places: usize) -> Self {
        let names: Vec<_> = names.into_iter().take(usize::from(EMPTY)).collect();
        if names.is_empty() {
            return Self { places: Box::default() };
        }
        let len = prime_from(places.clamp(names.len().max(2), MOST));
        // Each backend has a permutation of the places of its own: `offset`, and then every `skip`th.
        let mut turns: Vec<_> = names
            .iter()
            .map(|name| {
                let hash = hash(name.as_ref());
                let (offset, skip) =
                    ((hash >> 32) as usize % len, hash as u32 as usize % (len - 1));
                (offset, skip + 1)
            })
            .collect();
        let mut table = vec![EMPTY; len];
        // By name, so that the order of the list does not matter.
        let mut order: Vec<_> = (0..names.len()).collect();
        order.sort_by_key(|backend| names[*backend].as_ref());
        // In turn, each takes the next place of its permutation that nobody has.
        for number in 0..len {
            let backend = order[number % order.len()];
            let (next, skip) = &mut turns[backend];
            while table[*next] != EMPTY {
                *next = (*next + *skip) % len;
            }
            table[*next] = backend as u16;
        }
        Self { places: table.into() }
    }

    /// The number of the backend for a hash, by the order of the names; `None` if there are no backends. The hash's
    /// upper 32 bits decide: [`hash`] computes one of any bytes.
    #[inline]
    #[must_use]
    pub fn choose(&self, hash: u64) -> Option<usize> {
        // A product instead of a remainder: the hash's upper half as a fraction of the table.
        let place = ((hash >> 32) * self.places.len() as u64) >> 32;
        self.places.get(place as usize).map(|backend| usize::from(*backend))
    }

    /// The number of places.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there are no backends.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// The hash of some bytes, the same everywhere: 64-bit FNV-1a, and the finaliser of MurmurHash3, without which the last bytes would
/// hardly change the upper bits.
#[inline]
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

/// The first prime from `least` on.
fn prime_from(least: usize) -> usize {
    let is_prime = |n: usize| (2..).take_while(|d| d * d <= n).all(|d| n % d != 0);
    (least..).find(|n| is_prime(*n)).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
        numbers.into_iter().map(|number| format!("10.0.0.{number}:80")).collect()
    }

    #[test]
    fn shares_are_nearly_equal() {
        let table = Maglev::new(names(1..=10), 10_000);
        assert_eq!(table.len(), 10_007);
        let mut shares = [0; 10];
        for backend in &table.places {
            shares[usize::from(*backend)] += 1;
        }
        assert!(shares.iter().all(|share| (1000..=1001).contains(share)), "{shares:?}");
        // Of flows, too: their hashes are spread over the places.
        let mut flows = [0; 10];
        for number in 0u32..100_000 {
            flows[table.choose(hash(&number.to_be_bytes())).unwrap()] += 1;
        }
        assert!(flows.iter().all(|share| (9_600..=10_400).contains(share)), "{flows:?}");
    }

    #[test]
    fn few_flows_change_their_backend() {
        let all = Maglev::new(names(1..=10), 10_000);
        let fewer = Maglev::new(names((1..=10).filter(|number| *number != 4)), 10_000);
        let mut moved = 0;
        for number in 0u32..10_000 {
            let hash = hash(&number.to_be_bytes());
            let (before, after) = (all.choose(hash).unwrap(), fewer.choose(hash).unwrap());
            // Backend 4 is number 3 in one table; those behind it have one number less in the other.
            let after = after + usize::from(after >= 3);
            moved += usize::from(before != 3 && before != after);
        }
        // The paper's figure 12 has some 2 % and less for tables a hundred times as large as the number of backends.
        assert!(moved < 500, "{moved} of 10,000 flows of other backends");
    }

    #[test]
    fn the_order_of_the_list_does_not_matter() {
        let (one, other) = (names(1..=7), names((1..=7).rev()));
        let tables = [&one, &other].map(|names| Maglev::new(names, 1000));
        for number in 0u32..1000 {
            let hash = hash(&number.to_be_bytes());
            let chosen = tables.each_ref().map(|table| table.choose(hash).unwrap());
            assert_eq!(one[chosen[0]], other[chosen[1]]);
        }
    }

    #[test]
    fn few_places_and_no_backends() {
        assert!(Maglev::new([""; 0], 7).is_empty());
        let one = Maglev::new(["a"], 0);
        assert_eq!((one.len(), one.choose(0), one.choose(u64::MAX)), (2, Some(0), Some(0)));
        let three = Maglev::new(["a", "b", "c"], 1);
        assert_eq!(three.len(), 3);
        let mut places = three.places.to_vec();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2]);
    }
}
