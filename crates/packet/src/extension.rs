// SPDX-License-Identifier: BSD-3-Clause
//! Extension headers of IPv6 (RFC 8200, section 4; RFC 7045): hop-by-hop options, routing, fragment, destination
//! options, authentication (RFC 4302), and those of mobility, HIP and Shim6.
//!
//! They form a chain, each with the number of the next. It ends with a protocol, with ESP, which hides what follows,
//! with "no next header", or with a fragment that is not the first, behind which is the middle of something.

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::view::{Layer, Malformed, fixed, fixed_mut, with_options, with_options_mut};

/// Number of hop-by-hop options, which stand first or nowhere.
pub const HOP_BY_HOP: u8 = 0;
/// Number of a routing header.
pub const ROUTING: u8 = 43;
/// Number of a fragment header.
pub const FRAGMENT: u8 = 44;
/// Number of ESP (RFC 4303): what follows is encrypted, so that no chain goes on here.
pub const ESP: u8 = 50;
/// Number of an authentication header.
pub const AUTHENTICATION: u8 = 51;
/// Number that says that nothing follows.
pub const NO_NEXT: u8 = 59;
/// Number of destination options.
pub const DESTINATION_OPTIONS: u8 = 60;
/// Number of a mobility header (RFC 6275).
pub const MOBILITY: u8 = 135;
/// Number of a HIP header (RFC 7401).
pub const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// Whether a number is that of an extension header, behind which the chain goes on.
#[inline]
pub const fn is_extension(number: u8) -> bool {
    matches!(
        number,
        HOP_BY_HOP
            | ROUTING
            | FRAGMENT
            | AUTHENTICATION
            | DESTINATION_OPTIONS
            | MOBILITY
            | HIP
            | SHIM6
    )
}

/// A view of an extension header of any kind.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Extension {
    next_header: u8,
    len: u8,
    body: [u8],
}

/// How many bytes follow the first two of the header with this number at the start of bytes.
#[inline(always)]
fn body_len(number: u8, bytes: &[u8]) -> Result<usize, Malformed> {
    let len = usize::from(*bytes.get(1).ok_or(Malformed::Short(Layer::Extension))?);
    match number {
        FRAGMENT => Ok(6),
        // In words of 4 bytes, less two.
        AUTHENTICATION => Ok(len * 4 + 6),
        _ if is_extension(number) => Ok(len * 8 + 6),
        _ => Err(Malformed::Kind(Layer::Extension)),
    }
}

impl Extension {
    /// Splits bytes into the extension header with this number, read-only, and all that follows it.
    ///
    /// # Errors
    /// [`Malformed::Short`]; [`Malformed::Kind`] when the number is no extension header's.
    #[inline]
    pub fn split(number: u8, bytes: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        with_options(bytes, body_len(number, bytes)?, Layer::Extension)
    }

    /// Splits bytes into the extension header with this number, to be written, and all that follows it.
    ///
    /// # Errors
    /// As [`Extension::split`].
    #[inline]
    pub fn split_mut(number: u8, bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), Malformed> {
        let body = body_len(number, bytes)?;
        with_options_mut(bytes, body, Layer::Extension)
    }

    /// Number of what follows.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.next_header
    }

    /// Length of the header in bytes, its first two included.
    #[inline]
    pub fn header_len(&self) -> usize {
        2 + self.body.len()
    }

    /// What follows the first two bytes.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// As [`Extension::body`], to be written.
    #[inline]
    pub fn body_mut(&mut self) -> &mut [u8] {
        &mut self.body
    }

    /// Sets the number of what follows.
    #[inline]
    pub fn set_next_header(&mut self, number: u8) {
        self.next_header = number;
    }
}

/// A view of a fragment header (`rte_ipv6_fragment_ext`): 8 bytes.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct FragmentHeader {
    next_header: u8,
    reserved: u8,
    offset_and_more: U16,
    identification: U32,
}

impl FragmentHeader {
    /// Splits bytes into a fragment header, read-only, and all that follows it.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    #[inline]
    pub fn split(bytes: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        fixed(bytes, Layer::Extension)
    }

    /// Splits bytes into a fragment header, to be written, and all that follows it.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    #[inline]
    pub fn split_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), Malformed> {
        fixed_mut(bytes, Layer::Extension)
    }

    /// Number of what the whole packet has behind this header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.next_header
    }

    /// Where the payload stands in that of the whole packet, in bytes.
    #[inline]
    pub fn offset(&self) -> usize {
        usize::from(self.offset_and_more.get() & !7)
    }

    /// Whether further fragments follow this one.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.offset_and_more.get() & 1 != 0
    }

    /// The same in all fragments of a packet.
    #[inline]
    pub fn identification(&self) -> u32 {
        self.identification.get()
    }

    /// Sets the number of what the whole packet has behind this header.
    #[inline]
    pub fn set_next_header(&mut self, number: u8) {
        self.next_header = number;
    }

    /// Sets where the payload stands in that of the whole packet; false, and nothing done, when that is no multiple
    /// of 8 or above 65,528.
    #[inline]
    #[must_use = "nothing is done where it returns false"]
    pub fn set_fragment(&mut self, offset: usize, more_follow: bool) -> bool {
        match u16::try_from(offset) {
            Ok(offset) if offset % 8 == 0 => {
                self.offset_and_more.set(offset | u16::from(more_follow));
                true
            }
            _ => false,
        }
    }

    /// Sets the identification.
    #[inline]
    pub fn set_identification(&mut self, identification: u32) {
        self.identification.set(identification);
    }
}

/// The extension headers behind an IPv6 header, with their numbers. The first that does not fit is an error and
/// the last. Each takes 8 bytes or more, so that the bytes bound how many there are.
///
/// ```
/// use packet::extension::Extensions;
/// // Destination options, then UDP.
/// let bytes = [17, 0, 1, 4, 0, 0, 0, 0, /* UDP */ 0, 1, 0, 2, 0, 8, 0, 0];
/// let mut chain = Extensions::new(60, &bytes);
/// for extension in chain.by_ref() {
///     let (number, header) = extension?;
///     assert_eq!((number, header.header_len()), (60, 8));
/// }
/// assert_eq!((chain.next_header(), chain.rest().len()), (17, 8));
/// # Ok::<(), packet::Malformed>(())
/// ```
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    next: u8,
    rest: &'a [u8],
    /// Nothing has been read yet; hop-by-hop options may come.
    first: bool,
    /// An error, or a fragment that is not the first, was the last.
    over: bool,
    fragment: Option<&'a FragmentHeader>,
}

impl<'a> Extensions<'a> {
    /// Those of the bytes behind an IPv6 header with this next header.
    #[inline]
    pub fn new(next_header: u8, bytes: &'a [u8]) -> Self {
        Extensions { next: next_header, rest: bytes, first: true, over: false, fragment: None }
    }

    /// What follows those that were read.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.next
    }

    /// The bytes behind those that were read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The fragment header, if one was read.
    #[inline]
    pub fn fragment(&self) -> Option<&'a FragmentHeader> {
        self.fragment
    }

    fn read(&mut self) -> Result<(u8, &'a Extension), Malformed> {
        let (number, bytes) = (self.next, self.rest);
        // RFC 8200, section 4.1: elsewhere it is an unknown number.
        if number == HOP_BY_HOP && !self.first {
            return Err(Malformed::Kind(Layer::Extension));
        }
        let (header, rest) = Extension::split(number, bytes)?;
        if number == FRAGMENT {
            let (fragment, _) = FragmentHeader::split(bytes)?;
            self.over = fragment.offset() > 0;
            self.fragment = Some(fragment);
        }
        (self.next, self.rest, self.first) = (header.next_header, rest, false);
        Ok((number, header))
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<(u8, &'a Extension), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.over || !is_extension(self.next) {
            return None;
        }
        let read = self.read();
        self.over |= read.is_err();
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A header's number and length.
    type Found = Result<(u8, usize), Malformed>;

    /// What is found, the number that follows, and how many bytes are left.
    fn numbers(next: u8, bytes: &[u8]) -> (Vec<Found>, u8, usize) {
        let mut chain = Extensions::new(next, bytes);
        let found = chain.by_ref().map(|e| e.map(|(n, h)| (n, h.header_len()))).collect();
        (found, chain.next_header(), chain.rest().len())
    }

    /// A header of this length with the next one's number.
    fn header(next: u8, len: u8, bytes: usize) -> Vec<u8> {
        let mut header = vec![0; bytes];
        (header[0], header[1]) = (next, len);
        header
    }

    #[test]
    fn each_kind_has_its_own_length() {
        let bytes = [
            header(ROUTING, 0, 8),
            header(DESTINATION_OPTIONS, 2, 24),
            header(AUTHENTICATION, 1, 16),
            header(FRAGMENT, 4, 24),
            header(MOBILITY, 0xff, 8), // a fragment header has no length
            header(ESP, 0, 8),
            vec![7; 5],
        ]
        .concat();
        let wanted = [(0, 8), (43, 24), (60, 16), (51, 24), (44, 8), (135, 8)].map(Ok);
        assert_eq!(numbers(HOP_BY_HOP, &bytes), (wanted.to_vec(), ESP, 5));
        assert_eq!(numbers(17, &bytes), (vec![], 17, bytes.len()));
        assert_eq!(numbers(NO_NEXT, &bytes), (vec![], NO_NEXT, bytes.len()));
    }

    #[test]
    fn what_does_not_fit_ends_the_chain() {
        let short = Err(Malformed::Short(Layer::Extension));
        assert_eq!(numbers(ROUTING, &[]), (vec![short], ROUTING, 0));
        assert_eq!(numbers(ROUTING, &[17]), (vec![short], ROUTING, 1));
        let bytes = [header(AUTHENTICATION, 1, 16), header(17, 255, 1027)].concat();
        assert_eq!(numbers(HOP_BY_HOP, &bytes), (vec![Ok((0, 16)), short], AUTHENTICATION, 1027));
        let twice = [header(HOP_BY_HOP, 0, 8), header(17, 0, 8)].concat();
        let unknown = Err(Malformed::Kind(Layer::Extension));
        assert_eq!(numbers(HOP_BY_HOP, &twice), (vec![Ok((0, 8)), unknown], HOP_BY_HOP, 8));
        assert_eq!(Extension::split(17, &twice).unwrap_err(), Malformed::Kind(Layer::Extension));
    }

    #[test]
    fn behind_a_later_fragment_nothing_is_read() {
        let mut bytes = [header(ROUTING, 0, 8), header(17, 0, 8)].concat();
        let (fragment, _) = FragmentHeader::split_mut(&mut bytes).unwrap();
        fragment.set_identification(0x0102_0304);
        assert!(fragment.set_fragment(65_528, true));
        assert!(!fragment.set_fragment(4, true) && !fragment.set_fragment(65_536, true));
        assert_eq!(numbers(FRAGMENT, &bytes), (vec![Ok((44, 8))], ROUTING, 8));
        let mut chain = Extensions::new(FRAGMENT, &bytes);
        assert!(chain.by_ref().all(|extension| extension.is_ok()));
        let fragment = chain.fragment().unwrap();
        assert_eq!((fragment.offset(), fragment.more_fragments()), (65_528, true));
        assert_eq!((fragment.next_header(), fragment.identification()), (ROUTING, 0x0102_0304));
        assert_eq!(bytes[..8], [43, 0, 0xff, 0xf9, 1, 2, 3, 4]);
        let (fragment, _) = FragmentHeader::split_mut(&mut bytes).unwrap();
        assert!(fragment.set_fragment(0, true));
        fragment.set_next_header(DESTINATION_OPTIONS);
        assert_eq!(numbers(FRAGMENT, &bytes), (vec![Ok((44, 8)), Ok((60, 8))], 17, 0));
    }

    #[test]
    fn headers_can_be_written() {
        let mut bytes = header(17, 1, 16);
        let (extension, rest) = Extension::split_mut(DESTINATION_OPTIONS, &mut bytes).unwrap();
        assert!(rest.is_empty());
        extension.set_next_header(6);
        extension.body_mut().fill(1);
        assert_eq!(extension.body(), [1; 14]);
        assert_eq!(bytes[..3], [6, 1, 1]);
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(next: u8, bytes in prop::collection::vec(prop_oneof![0u8..4, Just(43), Just(44), Just(51), Just(60), any::<u8>()], 0..200)) {
            let (found, last, rest) = numbers(next, &bytes);
            let taken: usize = found.iter().flatten().map(|(_, len)| len).sum();
            prop_assert_eq!(taken + rest, bytes.len());
            prop_assert!(found.iter().rev().skip(1).all(|extension| extension.is_ok()));
            prop_assert!(found.iter().flatten().all(|(number, len)| is_extension(*number) && *len >= 8));
            prop_assert!(!is_extension(last) || found.last().is_some());
        }
    }
}
