// SPDX-License-Identifier: BSD-3-Clause
//! Frames described: a stack of headers whose fields follow patterns, sizes, a payload, and the
//! signature. [`crate::writer::FrameWriter`] writes them.

mod error;

pub use error::FrameError;

use crate::FCS_LEN;
use crate::classifier::Rule;
use crate::field::Pattern;
use crate::headers::{self, FieldKind, HeaderKind};
use crate::payload::Payload;
use crate::signature::{self, short};
use crate::size::{MIN_LEN_WITH_FCS, Sizes};

/// What a checksum field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The right checksum.
    Good,
    /// A wrong one: the right one with its lowest bit inverted; where that would make a UDP
    /// checksum 0, which means "none", it is 0xffff.
    Bad,
    /// This value.
    Custom(u16),
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// What the field's rule gives ([`Auto`](headers::Auto)).
    Auto,
    /// Values over successive frames, cut to the field's width; so lengths and checksums can be
    /// wrong on purpose. Where a length is wrong, checksums are still made over what is sent.
    Pattern(Pattern),
    /// For a checksum.
    Checksum(Checksum),
}

impl From<Pattern> for FieldValue {
    fn from(pattern: Pattern) -> Self {
        FieldValue::Pattern(pattern)
    }
}

impl From<Checksum> for FieldValue {
    fn from(checksum: Checksum) -> Self {
        FieldValue::Checksum(checksum)
    }
}

impl From<u128> for FieldValue {
    fn from(value: u128) -> Self {
        FieldValue::Pattern(Pattern::Value(value))
    }
}

/// One header of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub(crate) kind: &'static HeaderKind,
    pub(crate) fields: Vec<(&'static FieldKind, FieldValue)>,
    pub(crate) options: Vec<u8>,
    /// Low bits of the destination in the frame, and what the last hop receives in their place.
    pub(crate) received: Option<(u128, u128)>,
}

impl Header {
    /// A header with every field left to its rule.
    pub fn new(kind: &'static HeaderKind) -> Self {
        Header { kind, fields: Vec::new(), options: Vec::new(), received: None }
    }

    /// Bytes of no known protocol.
    pub fn custom(bytes: Vec<u8>) -> Self {
        Header { options: bytes, ..Header::new(&headers::CUSTOM) }
    }

    /// Sets a field. Of two values for one field the later counts, and so for bits that two fields
    /// share (`priority.raw` and `priority.dscp.phb`).
    ///
    /// # Errors
    /// [`FrameError::NoField`] when the header has no such field, [`FrameError::NotAChecksum`]
    /// when a [`Checksum`] is given to another field.
    ///
    /// ```
    /// use packet::{field::Pattern, frame::{Checksum, Header}, headers};
    /// let mut header = Header::new(&headers::UDP);
    /// header.set("src_port", Pattern::Increment { start: 1024, step: 1, count: 100 })?;
    /// header.set("checksum", Checksum::Bad)?;
    /// let error = header.set("port", 7).unwrap_err().to_string();
    /// assert_eq!(error, "udp has no field \"port\"; its fields are src_port, dst_port, length, checksum");
    /// # Ok::<(), packet::frame::FrameError>(())
    /// ```
    pub fn set(&mut self, field: &str, value: impl Into<FieldValue>) -> Result<(), FrameError> {
        let Some(kind) = self.kind.field(field) else {
            return Err(FrameError::NoField { header: self.kind, field: field.to_owned() });
        };
        let value = value.into();
        if matches!(value, FieldValue::Checksum(_)) && !kind.is_checksum() {
            return Err(FrameError::NotAChecksum { header: self.kind.name, field: kind.name });
        }
        self.fields.push((kind, value));
        Ok(())
    }

    /// The same as [`Header::set`], for building in one expression.
    ///
    /// # Errors
    /// As [`Header::set`].
    pub fn with(mut self, field: &str, value: impl Into<FieldValue>) -> Result<Self, FrameError> {
        self.set(field, value)?;
        Ok(self)
    }

    /// Leaves a field to its rule again, and returns what it was set to.
    pub fn take(&mut self, field: &str) -> Option<FieldValue> {
        let value = self.get(field).cloned();
        self.fields.retain(|(kind, _)| kind.name != field);
        value
    }

    /// What a field was set to last; `None` when it is left to its rule.
    ///
    /// ```
    /// use packet::{frame::{FieldValue, Header}, headers};
    /// let header = Header::new(&headers::UDP).with("src_port", 7)?;
    /// assert_eq!(header.get("src_port"), Some(&FieldValue::from(7)));
    /// assert_eq!(header.get("dst_port"), None);
    /// # Ok::<(), packet::frame::FrameError>(())
    /// ```
    pub fn get(&self, field: &str) -> Option<&FieldValue> {
        self.kind.field(field).and_then(|kind| self.value(kind))
    }

    /// Gives the header options, as bytes; zeros are added up to a whole word of 4 bytes. Of a
    /// custom header these are its bytes, and none are added.
    pub fn set_options(&mut self, bytes: &[u8]) {
        let padded = match self.kind.len {
            0 => bytes.len(),
            _ => bytes.len().next_multiple_of(4),
        };
        self.options = bytes.to_vec();
        self.options.resize(padded, 0);
    }

    /// Says that the address in this header, the destination of an IPv6 header or a segment, is not the one that the
    /// last hop receives: routers replace its bits `sent` by `received` on the way (RFC 9800, section 4). The checksums of
    /// the layers above are those of the address that is received (RFC 9800, section 6.5).
    ///
    /// ```
    /// use packet::{frame::Header, headers};
    /// // fc00:0:1:2:: steers to CSID 1, then to CSID 2, which receives fc00:0:2::.
    /// let address = 0xfc00_0000_0001_0002_u128 << 64;
    /// let mut segment = Header::new(&headers::SEGMENT).with("segment", address)?;
    /// segment.set_received(0x0001_0002 << 64, 0x0002_0000 << 64);
    /// # Ok::<(), packet::frame::FrameError>(())
    /// ```
    pub fn set_received(&mut self, sent: u128, received: u128) {
        self.received = Some((sent, received));
    }

    /// Its kind.
    pub fn kind(&self) -> &'static HeaderKind {
        self.kind
    }

    /// Length in bytes, with optional bytes and options.
    #[expect(clippy::len_without_is_empty, reason = "only a custom header can be empty")]
    pub fn len(&self) -> usize {
        self.fixed_len() + self.options.len()
    }

    /// Length in bytes, with optional bytes but without options.
    pub(crate) fn fixed_len(&self) -> usize {
        let set = |name: &&str| self.first(name) != 0;
        match &self.kind.optional {
            Some(optional) if optional.flags.iter().any(set) => self.kind.len + optional.len,
            _ => self.kind.len,
        }
    }

    /// What a field was set to last.
    pub(crate) fn value(&self, kind: &FieldKind) -> Option<&FieldValue> {
        self.fields.iter().rev().find(|(field, _)| field.name == kind.name).map(|(_, value)| value)
    }

    /// The value of a field in the first frame, as far as it does not follow from others.
    fn first(&self, name: &str) -> u128 {
        let Some(kind) = self.kind.field(name) else { return 0 };
        match self.value(kind) {
            Some(FieldValue::Pattern(pattern)) => pattern.first() & kind.max(),
            _ => kind.default,
        }
    }
}

/// By which frames are known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureSpec {
    /// A signature ([`signature::Signature`]).
    Full {
        /// Whether it carries the moment of sending.
        stamped: bool,
        /// Whether frames carry a checksum of their payload (4 bytes more).
        integrity: bool,
    },
    /// A short one, for frames without room for the other ([`short::ShortSignature`]).
    Short,
}

impl Default for SignatureSpec {
    /// A full one without stamp and checksum of the payload.
    fn default() -> Self {
        SignatureSpec::Full { stamped: false, integrity: false }
    }
}

impl SignatureSpec {
    /// Bytes that it takes of a frame.
    pub const fn len(&self) -> usize {
        match self {
            SignatureSpec::Full { integrity: true, .. } => {
                signature::LEN + signature::EXTENSION_LEN
            }
            SignatureSpec::Full { integrity: false, .. } => signature::LEN,
            SignatureSpec::Short => short::LEN,
        }
    }

    /// Never.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Whether it carries the moment of sending.
    pub const fn is_stamped(&self) -> bool {
        matches!(self, SignatureSpec::Full { stamped: true, .. })
    }

    /// Whether frames carry a checksum of their payload.
    pub const fn has_integrity(&self) -> bool {
        matches!(self, SignatureSpec::Full { integrity: true, .. })
    }

    /// The flows that it can tell apart have numbers below this.
    pub const fn max_flows(&self) -> u16 {
        match self {
            SignatureSpec::Full { .. } => signature::MAX_FLOWS,
            SignatureSpec::Short => short::MAX_FLOWS,
        }
    }

    /// Where it starts in a frame of `frame_len` bytes, its extension left aside; `None` when the frame is too short.
    #[inline]
    pub const fn offset(&self, frame_len: usize) -> Option<usize> {
        match self {
            SignatureSpec::Full { .. } => signature::offset(frame_len),
            SignatureSpec::Short => short::offset(frame_len),
        }
    }
}

/// The shortest frame that has room for these headers and the signature, in bytes with FCS; at least 64.
///
/// ```
/// use packet::frame::{Header, SignatureSpec, min_len_with_fcs};
/// use packet::headers::{ETHERNET, IPV6, UDP};
/// let stack = [Header::new(&ETHERNET), Header::new(&IPV6), Header::new(&UDP)];
/// assert_eq!(min_len_with_fcs(&stack, None), 66);
/// assert_eq!(min_len_with_fcs(&stack, Some(SignatureSpec::Short)), 74);
/// assert_eq!(min_len_with_fcs(&stack, Some(SignatureSpec::default())), 84);
/// ```
pub fn min_len_with_fcs(headers: &[Header], signature: Option<SignatureSpec>) -> usize {
    let headers: usize = headers.iter().map(Header::len).sum();
    let len = match signature {
        None => headers,
        // The signature starts at an even offset.
        Some(signature) => headers.next_multiple_of(2) + signature.len(),
    };
    (len + FCS_LEN).max(MIN_LEN_WITH_FCS)
}

/// The frames of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameSpec {
    /// The headers, outermost first.
    pub headers: Vec<Header>,
    /// The sizes of successive frames.
    pub sizes: Sizes,
    /// What stands behind the headers.
    pub payload: Payload,
    /// The signature, if the frames are to have one.
    pub signature: Option<SignatureSpec>,
}

impl FrameSpec {
    /// Length of all headers in bytes.
    pub fn headers_len(&self) -> usize {
        self.headers.iter().map(Header::len).sum()
    }

    /// The shortest frame that has room for headers and signature, in bytes with FCS; at least 64.
    pub fn min_len_with_fcs(&self) -> usize {
        min_len_with_fcs(&self.headers, self.signature)
    }

    /// How many values and sizes a writer keeps at hand, at most 16 bytes each: lists, short sequences of
    /// random numbers (up to 65,536) and a round of a mix of sizes. A few words of text can ask for many.
    ///
    /// ```
    /// use packet::{field::Pattern, frame::{FrameSpec, Header}, headers, payload::Payload, size::Sizes};
    /// let draws = Pattern::Random { min: 0, max: 65_535, seed: 1, count: 1000 };
    /// let spec = FrameSpec {
    ///     headers: vec![Header::new(&headers::UDP).with("src_port", draws)?],
    ///     sizes: Sizes::Weighted(vec![(64, 7.0), (594, 4.0), (1518, 1.0)]),
    ///     payload: Payload::default(),
    ///     signature: None,
    /// };
    /// assert_eq!(spec.kept_values(), 1012);
    /// # Ok::<(), packet::frame::FrameError>(())
    /// ```
    pub fn kept_values(&self) -> usize {
        let kept = |(_, value): &(_, FieldValue)| match value {
            FieldValue::Pattern(pattern) => pattern.kept(),
            FieldValue::Auto | FieldValue::Checksum(_) => 0,
        };
        let fields = self.headers.iter().flat_map(|header| &header.fields);
        fields.map(kept).sum::<usize>() + self.sizes.kept()
    }

    /// The values and ranges of header fields by which this flow's frames are known; see
    /// [`crate::classifier`]. With `rewritten` fields count that switches and routers may rewrite
    /// ([`Transit::Rewritten`](headers::Transit)). Every frame of the flow fits the rule.
    ///
    /// ```
    /// use packet::field::Pattern;
    /// use packet::{frame::{FrameSpec, Header}, headers, payload::Payload, size::Sizes};
    /// let ports = Pattern::Increment { start: 0, step: 1, count: 65_536 };
    /// let spec = |port: u128| -> Result<FrameSpec, packet::frame::FrameError> {
    ///     Ok(FrameSpec {
    ///         headers: vec![
    ///             Header::new(&headers::ETHERNET),
    ///             Header::new(&headers::IPV4),
    ///             Header::new(&headers::TCP).with("src_port", ports.clone())?.with("dst_port", port)?,
    ///         ],
    ///         sizes: Sizes::Fixed(64),
    ///         payload: Payload::default(),
    ///         signature: None,
    ///     })
    /// };
    /// assert!(!spec(80)?.rule(false).overlaps(&spec(81)?.rule(false)));
    /// assert!(spec(80)?.rule(false).overlaps(&spec(80)?.rule(false)));
    /// # Ok::<(), packet::frame::FrameError>(())
    /// ```
    pub fn rule(&self, rewritten: bool) -> Rule {
        crate::writer::rule(self, rewritten)
    }

    /// Whether frames of these sizes can be written.
    pub(crate) fn check(&self) -> Result<(), FrameError> {
        for header in &self.headers {
            check_header(header)?;
        }
        self.sizes.check()?;
        let (size, least) = (self.sizes.min_with_fcs(), self.min_len_with_fcs());
        if size < least {
            let whole = self.headers.iter().filter(|header| !header.kind.is_part());
            let names: Vec<&str> = whole.map(|header| header.kind.name).collect();
            return Err(FrameError::NoRoom {
                size,
                headers: names.join("/"),
                headers_len: self.headers_len(),
                signature: self.signature,
                least,
            });
        }
        Ok(())
    }
}

fn check_header(header: &Header) -> Result<(), FrameError> {
    let (kind, options) = (header.kind, header.options.len());
    if options > kind.max_options || (kind.len > 0 && options % 4 != 0) {
        return Err(FrameError::Options {
            header: kind.name,
            len: options,
            most: kind.max_options,
        });
    }
    for flag in kind.optional.iter().flat_map(|optional| optional.flags) {
        let value = kind.field(flag).and_then(|field| header.value(field));
        if let Some(FieldValue::Pattern(pattern)) = value {
            if !pattern.is_constant() {
                return Err(FrameError::Flag { header: kind.name, field: flag });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(names: &[&str], size: usize, signature: Option<SignatureSpec>) -> FrameSpec {
        let header = |name: &&str| Header::new(headers::kind(name).unwrap());
        FrameSpec {
            headers: names.iter().map(header).collect(),
            sizes: Sizes::Fixed(size),
            payload: Payload::default(),
            signature,
        }
    }

    #[test]
    fn short_frames_say_what_would_do() {
        let signature = Some(SignatureSpec::default());
        let error = spec(&["ethernet", "ipv6", "udp"], 64, signature).check().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a frame of 64 bytes has no room for ethernet/ipv6/udp headers (62 bytes) and the \
             18-byte signature: 84 bytes or more; a short signature, without stamp and checksum of \
             the payload, takes 8 bytes"
        );
        let error = spec(&["ethernet", "ipv6", "udp"], 64, Some(SignatureSpec::Short)).check();
        assert_eq!(
            error.unwrap_err().to_string(),
            "a frame of 64 bytes has no room for ethernet/ipv6/udp headers (62 bytes) and the \
             8-byte signature: 74 bytes or more"
        );
        let error = spec(&["ethernet", "ipv6", "udp"], 64, None).check().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a frame of 64 bytes has no room for ethernet/ipv6/udp headers (62 bytes): 66 bytes \
             or more"
        );
        assert_eq!(spec(&["ethernet", "ipv4", "udp"], 64, signature).check(), Ok(()));
        let integrity = Some(SignatureSpec::Full { stamped: false, integrity: true });
        assert_eq!(spec(&["ethernet", "ipv4", "udp"], 68, integrity).min_len_with_fcs(), 68);
    }

    #[test]
    fn flags_decide_on_lengths() {
        let gre = Header::new(&headers::GRE);
        assert_eq!(gre.len(), 4);
        assert_eq!(gre.clone().with("checksum_present", 1).unwrap().len(), 8);
        let flickering = gre.with("checksum_present", Pattern::Values(vec![0, 1])).unwrap();
        let mut spec = spec(&["ethernet"], 64, None);
        spec.headers.push(flickering);
        let wanted = FrameError::Flag { header: "gre", field: "checksum_present" };
        assert_eq!(spec.check(), Err(wanted));
    }

    #[test]
    fn options_are_whole_words() {
        let mut spec = spec(&["ethernet", "ipv4"], 128, None);
        spec.headers[1].set_options(&[0x94, 4, 0, 0, 0]);
        assert_eq!(spec.headers_len(), 14 + 28);
        assert_eq!(spec.check(), Ok(()));
        spec.headers[1].set_options(&[0; 41]);
        assert!(matches!(spec.check(), Err(FrameError::Options { most: 40, .. })));
        spec.headers[0].set_options(&[0]);
        assert!(matches!(spec.check(), Err(FrameError::Options { most: 0, .. })));
    }

    #[test]
    fn only_checksums_are_good_or_bad() {
        let mut header = Header::new(&headers::IPV4);
        assert_eq!(header.set("header_checksum", Checksum::Bad), Ok(()));
        let error = header.set("src", Checksum::Good).unwrap_err();
        assert_eq!(error.to_string(), "ipv4.src is no checksum; give it a value or a pattern");
    }
}
