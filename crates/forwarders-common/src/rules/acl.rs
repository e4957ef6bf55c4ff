// SPDX-License-Identifier: BSD-3-Clause
//! Rules about five-tuples.

use std::io::BufRead;
use std::ops::RangeInclusive;
use std::path::Path;

use super::fields::{Fields, number};
use super::lines::{Counts, Kind};
use super::{Address, Contents, Mistake, Prefix, Remark, RuleFileError, Strictness, lines};

/// The conditions of a rule on a packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FiveTuple<A> {
    /// Its source address.
    pub source: Prefix<A>,
    /// Its destination address.
    pub destination: Prefix<A>,
    /// Its source port.
    pub source_ports: RangeInclusive<u16>,
    /// Its destination port.
    pub destination_ports: RangeInclusive<u16>,
    /// Its protocol, in the bits of `protocol_mask`; 0 in the others.
    pub protocol: u8,
    /// The bits of the protocol that are compared.
    pub protocol_mask: u8,
    /// The flags in its TCP header: if any are compared, only TCP matches.
    pub flags: TcpFlags,
}

/// Flags of TCP.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, Hash)]
pub struct TcpFlags {
    /// The header's byte 13, in the bits of `mask`; 0 in the others.
    pub value: u8,
    /// The flags that are compared; 0: none.
    pub mask: u8,
}

impl TcpFlags {
    /// ClassBench's column, and no other text that may be there: two 16-bit numbers with flags in
    /// the upper eight bits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let flags = |text: &str| {
            let number = u16::try_from(number(text)?).ok()?;
            (number & 0xff == 0).then_some((number >> 8) as u8)
        };
        let (value, mask) = text.split_once('/')?;
        let mask = flags(mask)?;
        Some(Self { value: flags(value)? & mask, mask })
    }
}

/// TCP's protocol number.
const TCP: u8 = 6;

/// What is done with a packet that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is dropped.
    Deny,
    /// It is forwarded; l3fwd sends it on this port.
    Forward(u16),
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclRule<A> {
    /// The packets that match.
    pub matches: FiveTuple<A>,
    /// What is done with them.
    pub action: Action,
    /// Its line in the file, counted from 1.
    pub line: usize,
}

const RULES: Kind = Kind {
    name: "rules",
    again: Mistake::Duplicate,
    repeated: Remark::Hidden,
    counts: Counts::First,
};

/// Reads a file of rules. The first rule that matches a packet applies. `ports` is the mask of the
/// program's ports.
///
/// # Errors
/// See [`RuleFileError`].
pub fn read_acl<A: Address>(
    path: &Path,
    ports: u32,
    strictness: Strictness,
) -> Result<Contents<AclRule<A>>, RuleFileError> {
    acl_of(lines::open(path)?, path, ports, strictness)
}

/// As [`read_acl`], for a text; errors name the file `path`, whether or not the text is from there.
///
/// # Errors
/// See [`RuleFileError`].
pub fn acl_of<A: Address>(
    text: impl BufRead,
    path: &Path,
    ports: u32,
    strictness: Strictness,
) -> Result<Contents<AclRule<A>>, RuleFileError> {
    let key = |rule: &AclRule<A>| rule.matches.clone();
    let parse = |text: &str, line: usize, remarks: &mut Vec<Remark>| {
        rule(text, line, (ports, strictness), remarks).map(Some)
    };
    let rules = lines::read(text, path, (&RULES, strictness), parse, key)?;
    if rules.entries.iter().all(|rule: &AclRule<A>| rule.action == Action::Deny) {
        return Err(RuleFileError::NothingPasses(path.to_owned()));
    }
    Ok(rules)
}

fn rule<A: Address>(
    text: &str,
    line: usize,
    (ports, strictness): (u32, Strictness),
    remarks: &mut Vec<Remark>,
) -> Result<AclRule<A>, Mistake> {
    let (found, mut fields) = Fields::of(text);
    if !matches!(found, '@' | 'R') {
        return Err(Mistake::Lead { found, expected: "@ (deny), R (forward) or #" });
    }
    if found == 'R' && fields.are_a_route() {
        return Err(Mistake::Route);
    }
    let mut matches = five_tuple(&mut fields)?;
    let action = if found == '@' { Action::Deny } else { Action::Forward(fields.device(ports)?) };
    if strictness == Strictness::AsL3fwd {
        matches.flags = flags(&mut fields, &matches, remarks);
    }
    fields.end(strictness, remarks)?;
    Ok(AclRule { matches, action, line })
}

/// The flags of a rule, if any.
fn flags<A>(
    fields: &mut Fields<'_>,
    matches: &FiveTuple<A>,
    remarks: &mut Vec<Remark>,
) -> TcpFlags {
    let flags = fields.flags().unwrap_or_default();
    if flags.mask == 0 {
        return TcpFlags::default();
    }
    if TCP & matches.protocol_mask != matches.protocol {
        remarks.push(Remark::FlagsWithoutTcp(matches.protocol));
        return TcpFlags::default();
    }
    remarks.push(Remark::Flags);
    flags
}

fn five_tuple<A: Address>(fields: &mut Fields<'_>) -> Result<FiveTuple<A>, Mistake> {
    let prefix = |text: &str| Prefix::parse(text, A::of_rule);
    let source = fields.next("source", A::RULE, prefix)?;
    let destination = fields.next("destination", A::RULE, prefix)?;
    let source_ports = fields.ports("source ports")?;
    let destination_ports = fields.ports("destination ports")?;
    let takes = "a protocol and its mask such as 6/0xff, both 0 to 255";
    let (protocol, protocol_mask) = fields.next("protocol", takes, |text| {
        let (value, mask) = text.split_once('/')?;
        let mask = u8::try_from(number(mask)?).ok()?;
        Some((u8::try_from(number(value)?).ok()? & mask, mask))
    })?;
    let flags = TcpFlags::default();
    Ok(FiveTuple {
        source,
        destination,
        source_ports,
        destination_ports,
        protocol,
        protocol_mask,
        flags,
    })
}
