// SPDX-License-Identifier: BSD-3-Clause
//! The fields of a line, one after the other.

use std::ops::RangeInclusive;

use super::acl::TcpFlags;
use super::{Mistake, Remark, Strictness};
use crate::options::strtoul;

/// A number without a sign, decimal, hexadecimal or octal, and nothing else.
pub fn number(text: &str) -> Option<u64> {
    let unsigned = text.starts_with(|c: char| c.is_ascii_digit());
    match strtoul(text, 0) {
        // A number that does not fit is saturated, and so larger than any field allows.
        Some((number, "")) if unsigned => Some(number),
        _ => None,
    }
}

/// A port of UDP or TCP.
fn port(text: &str) -> Option<u16> {
    u16::try_from(number(text)?).ok()
}

/// What is left of a line.
pub struct Fields<'l>(std::str::SplitAsciiWhitespace<'l>);

impl<'l> Fields<'l> {
    /// The fields of a line behind its first character, and that character.
    pub fn of(line: &'l str) -> (char, Self) {
        let mut characters = line.chars();
        let lead = characters.next().unwrap_or('\n');
        (lead, Self(characters.as_str().split_ascii_whitespace()))
    }

    /// The next one, read by `read`.
    pub fn next<T>(
        &mut self,
        field: &'static str,
        takes: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Mistake> {
        let text = self.0.next().ok_or(Mistake::Missing(field))?;
        read(text).ok_or_else(|| Mistake::Field { field, takes, given: shown(text) })
    }

    /// Returns true if a network and a number are all that is left.
    pub fn are_a_route(&self) -> bool {
        let mut words = self.0.clone();
        let (network, port) = (words.next(), words.next());
        network.is_some_and(|network| network.contains('/'))
            && port.is_some_and(|port| number(port).is_some())
            && words.next().is_none()
    }

    /// Three: a port, a colon, a port that is not before it.
    pub fn ports(&mut self, field: &'static str) -> Result<RangeInclusive<u16>, Mistake> {
        const PORT: &str = "a port, 0 to 65535";
        if let Some((given, range)) = self.glued() {
            return Err(Mistake::Colon { field, given, range });
        }
        let low = self.next(field, PORT, port)?;
        self.next(field, "a colon with blanks around it", |text| (text == ":").then_some(()))?;
        let high = self.next(field, PORT, port)?;
        if high < low {
            return Err(Mistake::Range { field, low, high });
        }
        Ok(low..=high)
    }

    /// The range in a word that has the colon inside, and how to write it.
    fn glued(&self) -> Option<(String, String)> {
        let mut words = self.0.clone();
        let (first, second) = (words.next()?, words.next());
        let (given, low, high) = match (first.split_once(':'), second) {
            (Some((low, "")), Some(high)) => (first, low, high),
            (Some((low, high)), _) => (first, low, high),
            (None, Some(second)) => (second, first, second.strip_prefix(':')?),
            (None, None) => return None,
        };
        port(low).and(port(high))?;
        Some((shown(given), format!("{low} : {high}")))
    }

    /// One of the program's ports, which are in the mask.
    pub fn device(&mut self, enabled: u32) -> Result<u16, Mistake> {
        let takes = "a port of the program's, 0 to 31";
        let port = self.next("port", takes, |text| number(text).filter(|port| *port < 32))? as u16;
        if is_enabled(enabled, port) { Ok(port) } else { Err(Mistake::PortNotEnabled(port)) }
    }

    /// A port that the program may not have, as l3fwd's routes may name it.
    pub fn any_device(&mut self) -> Result<u16, Mistake> {
        let takes = "a port, 0 to 255";
        let port = self.next("port", takes, |text| number(text).filter(|port| *port < 256))?;
        Ok(port as u16)
    }

    /// TCP flags, if they come next.
    pub fn flags(&mut self) -> Option<TcpFlags> {
        let flags = TcpFlags::parse(self.0.clone().next()?)?;
        self.0.next();
        Some(flags)
    }

    /// Checks that nothing is left, or only words that are ignored.
    pub fn end(mut self, strictness: Strictness, remarks: &mut Vec<Remark>) -> Result<(), Mistake> {
        match (self.0.next().map(shown), strictness) {
            (None, _) => {}
            (Some(extra), Strictness::Strict) => return Err(Mistake::Extra(extra)),
            (Some(extra), Strictness::AsL3fwd) => remarks.push(Remark::Ignored(extra)),
        }
        Ok(())
    }
}

/// Returns true if a port is in the mask.
pub fn is_enabled(mask: u32, port: u16) -> bool {
    mask.checked_shr(port.into()).is_some_and(|rest| rest & 1 == 1)
}

/// A field, shortened for a message.
fn shown(text: &str) -> String {
    const ENOUGH: usize = 60;
    let mut shown: String = text.chars().take(ENOUGH).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
