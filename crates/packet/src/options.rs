// SPDX-License-Identifier: BSD-3-Clause
//! Options of IPv4 and TCP headers, which have one form (RFC 791, RFC 9293): a kind; but for the two kinds of one
//! byte a length; and data.

use crate::view::{Layer, Malformed};

/// Kind that ends the list; what follows it is padding.
pub const END: u8 = 0;
/// Kind of a single byte between options.
pub const NO_OPERATION: u8 = 1;

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opt<'a> {
    /// What it is.
    pub kind: u8,
    /// What follows kind and length.
    pub data: &'a [u8],
}

/// The options of a header, one by one, without [`END`] and [`NO_OPERATION`]. The first that does not fit is an
/// error and the last.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
    layer: Layer,
}

impl<'a> Options<'a> {
    pub(crate) fn new(bytes: &'a [u8], layer: Layer) -> Self {
        Options { rest: bytes, layer }
    }

    /// All bytes that are left.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.rest
    }

    /// The data of the first option of a kind; `None` when there is none before the end, or before one that does
    /// not fit.
    pub fn find(mut self, kind: u8) -> Option<&'a [u8]> {
        self.find_map(|option| option.ok().filter(|o| o.kind == kind).map(|o| o.data))
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Opt<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match *self.rest {
                [] | [END, ..] => {
                    self.rest = &[];
                    return None;
                }
                [NO_OPERATION, ref rest @ ..] => self.rest = rest,
                [kind, ref behind @ ..] => {
                    let len = behind.first().and_then(|len| usize::from(*len).checked_sub(1));
                    let Some((option, rest)) =
                        len.filter(|len| *len > 0).and_then(|len| behind.split_at_checked(len))
                    else {
                        self.rest = &[];
                        return Some(Err(Malformed::Option(self.layer)));
                    };
                    self.rest = rest;
                    return Some(Ok(Opt { kind, data: &option[1..] }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8]) -> Vec<Result<(u8, Vec<u8>), Malformed>> {
        Options::new(bytes, Layer::Tcp).map(|o| o.map(|o| (o.kind, o.data.to_vec()))).collect()
    }

    #[test]
    fn the_options_of_a_syn() {
        // MSS 1460, SACK permitted, timestamps 1 and 0, no operation, window scale 7.
        let bytes = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        let wanted =
            [(2, vec![5, 0xb4]), (4, vec![]), (8, vec![0, 0, 0, 1, 0, 0, 0, 0]), (3, vec![7])];
        assert_eq!(all(&bytes), wanted.map(Ok));
        assert_eq!(Options::new(&bytes, Layer::Tcp).find(3), Some(&[7][..]));
        assert_eq!(Options::new(&bytes, Layer::Tcp).find(5), None);
    }

    #[test]
    fn what_does_not_fit_ends_the_list() {
        let wrong = Err(Malformed::Option(Layer::Tcp));
        assert_eq!(all(&[1, 1, 0, 2, 4]), []);
        for bytes in [&[2][..], &[2, 0, 0, 0], &[2, 1, 0, 0], &[2, 5, 0, 0]] {
            assert_eq!(all(bytes), std::slice::from_ref(&wrong), "{bytes:?}");
        }
        assert_eq!(all(&[3, 3, 7, 2, 9]), [Ok((3, vec![7])), wrong]);
        assert_eq!(Options::new(&[2, 9, 3, 3, 7], Layer::Tcp).find(3), None);
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes in prop::collection::vec(0u8..12, 0..=40)) {
            let found = all(&bytes);
            prop_assert!(found.len() <= bytes.len());
            prop_assert!(found.iter().rev().skip(1).all(|option| option.is_ok()));
            let kept: usize = found.iter().flatten().map(|(_, data)| data.len() + 2).sum();
            prop_assert!(kept <= bytes.len());
        }
    }
}
