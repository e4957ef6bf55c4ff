// SPDX-License-Identifier: BSD-3-Clause
//! IPv4 and IPv6 addresses, and their prefixes.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::fields::number;

/// [`Ipv4Addr`] or [`Ipv6Addr`].
pub trait Address: Copy + Debug + Display + Eq + Hash + sealed::Family {
    /// Its length.
    const BITS: u8;

    /// The first `len` bits, the others 0.
    #[must_use]
    fn network(self, len: u8) -> Self;
}

pub(super) mod sealed {
    /// How files write addresses of a family.
    pub trait Family: Sized {
        /// What is valid as a prefix of a rule.
        const RULE: &'static str;
        /// What is valid as a prefix of a route.
        const ROUTE: &'static str;
        /// Two prefixes that cover all addresses together.
        const HALVES: &'static str;

        /// An address as l3fwd's rules write it.
        fn of_rule(text: &str) -> Option<Self>;
        /// An address as l3fwd's routes write it.
        fn of_route(text: &str) -> Option<Self>;
    }
}

impl Address for Ipv4Addr {
    const BITS: u8 = 32;

    fn network(self, len: u8) -> Self {
        let ones = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
        Self::from_bits(self.to_bits() & ones)
    }
}

impl sealed::Family for Ipv4Addr {
    const RULE: &'static str = "an IPv4 prefix such as 10.0.0.0/8, with a length of 0 to 32";
    const ROUTE: &'static str = "an IPv4 prefix such as 10.0.0.0/8, with a length of 1 to 32";
    const HALVES: &'static str = "0.0.0.0/1 and 128.0.0.0/1";

    /// Its four numbers may be hexadecimal or octal.
    fn of_rule(text: &str) -> Option<Self> {
        let mut octets = text.split('.').map(|octet| u8::try_from(number(octet)?).ok());
        let mut next = || octets.next().flatten();
        let address = [next()?, next()?, next()?, next()?].into();
        octets.next().is_none().then_some(address)
    }

    fn of_route(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Address for Ipv6Addr {
    const BITS: u8 = 128;

    fn network(self, len: u8) -> Self {
        let ones = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
        Self::from_bits(self.to_bits() & ones)
    }
}

impl sealed::Family for Ipv6Addr {
    const RULE: &'static str = "an IPv6 prefix such as 2001:db8::/32, with a length of 0 to 128";
    const ROUTE: &'static str = "an IPv6 prefix such as 2001:db8::/32, with a length of 1 to 128";
    const HALVES: &'static str = "::/1 and 8000::/1";

    fn of_rule(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn of_route(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// A network: the addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix<A> {
    /// Those bits, the others 0.
    pub network: A,
    /// Their number.
    pub len: u8,
}

impl<A: Address> Prefix<A> {
    /// Parses a prefix, with `address` for its address.
    pub(super) fn parse(text: &str, address: impl Fn(&str) -> Option<A>) -> Option<Self> {
        let (before, behind) = text.split_once('/')?;
        let len = u8::try_from(number(behind)?).ok()?;
        let network = address(before)?.network(len.min(A::BITS));
        (len <= A::BITS).then_some(Self { network, len })
    }
}
