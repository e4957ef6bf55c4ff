// SPDX-License-Identifier: BSD-3-Clause
//! What can be wrong with a description of frames.

use super::SignatureSpec;
use crate::headers::HeaderKind;
use crate::size::SizeError;

/// Why frames cannot be described or written so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Unusable sizes.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// Some frames are too short.
    #[error("a frame of {size} bytes has no room for {headers} headers ({headers_len} bytes){}",
        NoRoomAdvice(*signature, *least))]
    NoRoom {
        /// The smallest size, in bytes with FCS.
        size: usize,
        /// The headers' names.
        headers: String,
        /// Their length in bytes.
        headers_len: usize,
        /// The signature, if they are to have one.
        signature: Option<SignatureSpec>,
        /// The smallest size that would do, in bytes with FCS.
        least: usize,
    },
    /// Signatures have 15 bits for the flow, and short ones 14.
    #[error("flow number {flow}: choose one below {below}")]
    Flow {
        /// The number.
        flow: u16,
        /// The first that is too large.
        below: u16,
    },
    /// The header has no such field.
    #[error("{} has no field {field:?}{}", header.name, FieldNames(header))]
    NoField {
        /// The header's kind.
        header: &'static HeaderKind,
        /// The name that was given.
        field: String,
    },
    /// Good and bad are words for checksums.
    #[error("{header}.{field} is no checksum; give it a value or a pattern")]
    NotAChecksum {
        /// The header's name.
        header: &'static str,
        /// The field's name.
        field: &'static str,
    },
    /// Two fields that change share bits.
    #[error("{header}.{first} and {header}.{second} share bits; let only one of them change")]
    Overlap {
        /// The header's name.
        header: &'static str,
        /// A field.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// The header's length would change.
    #[error("{header}.{field} decides how long the header is; give it one value, not a pattern")]
    Flag {
        /// The header's name.
        header: &'static str,
        /// The flag's name.
        field: &'static str,
    },
    /// Some frames only are at their last hop, so that the destination in a pseudo-header would change.
    #[error(
        "ipv6_extension_header.segments_left is 0 in some frames and not in others, and {header}.checksum depends \
         on it: give it values of one kind, or the checksum a number"
    )]
    SegmentsLeft {
        /// Name of the header with the checksum.
        header: &'static str,
    },
    /// Too many options, or no whole words of them.
    #[error("{len} bytes of options in {header}: choose at most {most}, a multiple of 4")]
    Options {
        /// The header's name.
        header: &'static str,
        /// Bytes of options.
        len: usize,
        /// The most that it can have.
        most: usize,
    },
}

struct NoRoomAdvice(Option<SignatureSpec>, usize);

impl std::fmt::Display for NoRoomAdvice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let NoRoomAdvice(signature, least) = self;
        if let Some(signature) = signature {
            write!(f, " and the {}-byte signature", signature.len())?;
        }
        write!(f, ": {least} bytes or more")?;
        match signature {
            Some(SignatureSpec::Full { .. }) => write!(
                f,
                "; a short signature, without stamp and checksum of the payload, takes {} bytes",
                SignatureSpec::Short.len()
            ),
            _ => Ok(()),
        }
    }
}

struct FieldNames<'a>(&'a HeaderKind);

impl std::fmt::Display for FieldNames<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, field) in self.0.fields.iter().enumerate() {
            let before = if i == 0 { "; its fields are " } else { ", " };
            write!(f, "{before}{}", field.name)?;
        }
        Ok(())
    }
}
