// SPDX-License-Identifier: BSD-3-Clause
//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A 48-bit Ethernet address, in the order of the wire (`rte_ether_addr`).
///
/// ```
/// let mac: packet::MacAddr = "02:00:00:00:00:07".parse()?;
/// assert_eq!(mac.to_u64(), 0x0200_0000_0007);
/// assert_eq!(mac.to_string(), "02:00:00:00:00:07");
/// # Ok::<(), packet::mac::ParseMacError>(())
/// ```
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Debug,
    Default,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

/// The text is not six pairs of hexadecimal digits between colons.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an Ethernet address such as 02:00:00:00:00:01")]
pub struct ParseMacError(String);

impl MacAddr {
    /// The address whose 48 bits are the low bits of `value`; higher bits are ignored.
    pub const fn from_u64(value: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
        MacAddr([a, b, c, d, e, f])
    }

    /// The 48 bits as a number, for counting.
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
}

impl From<MacAddr> for [u8; 6] {
    fn from(mac: MacAddr) -> Self {
        mac.0
    }
}

impl FromStr for MacAddr {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseMacError(text.chars().take(40).collect());
        let mut bytes = [0u8; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().ok_or_else(error)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(error());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        match parts.next() {
            None => Ok(MacAddr(bytes)),
            Some(_) => Err(error()),
        }
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_is_not_six_pairs() {
        for bad in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "2:0:0:0:0:0",
            "02:00:00:00:00:+1",
            "02-00-00-00-00-01",
        ] {
            assert!(bad.parse::<MacAddr>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn text_and_number_round_trip(bytes: [u8; 6]) {
            let mac = MacAddr(bytes);
            prop_assert_eq!(mac.to_string().parse::<MacAddr>(), Ok(mac));
            prop_assert_eq!(MacAddr::from_u64(mac.to_u64()), mac);
            prop_assert_eq!((MacAddr::from(bytes), <[u8; 6]>::from(mac)), (mac, bytes));
        }
    }
}
