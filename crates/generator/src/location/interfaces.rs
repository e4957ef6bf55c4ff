// SPDX-License-Identifier: BSD-3-Clause
//! Which network interfaces a source's locations may name. A port there can send and receive, and a
//! capture can show, all its traffic.

use std::str::FromStr;
use std::sync::Arc;

/// Most bytes of a pattern.
const MAX_PATTERN: usize = 64;

/// A pattern of interfaces' names: `*` stands for any characters, `?` for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

/// A text that cannot match any interface's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "give the name of an interface, or a pattern such as 'veth*': 1 to {MAX_PATTERN} bytes without / , : or spaces"
)]
pub struct PatternError;

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let bad = |c: char| "/,:".contains(c) || c.is_whitespace() || c.is_control();
        match (1..=MAX_PATTERN).contains(&text.len()) && !text.contains(bad) {
            true => Ok(Pattern(text.to_owned())),
            false => Err(PatternError),
        }
    }
}

impl Pattern {
    /// Returns true if the whole name matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name): (Vec<char>, Vec<char>) =
            (self.0.chars().collect(), name.chars().collect());
        // By length of the name's prefix: true if the pattern so far matches it.
        let mut matched = vec![false; name.len() + 1];
        if let Some(first) = matched.first_mut() {
            *first = true;
        }
        for wanted in pattern {
            let mut next = vec![false; matched.len()];
            for (length, slot) in next.iter_mut().enumerate() {
                *slot = match wanted {
                    '*' => matched.iter().take(length + 1).any(|good| *good),
                    _ => length.checked_sub(1).is_some_and(|before| {
                        let same = name.get(before).is_some_and(|c| wanted == '?' || *c == wanted);
                        same && matched.get(before) == Some(&true)
                    }),
                };
            }
            matched = next;
        }
        matched.last() == Some(&true)
    }
}

/// The interfaces that may be named.
#[derive(Clone, Debug)]
pub enum Interfaces {
    /// All that the kernel lets this process use.
    Any,
    /// Those that match one of these.
    Matching(Arc<[Pattern]>),
}

impl Interfaces {
    /// Returns true if a location may use the interface of this name.
    #[must_use]
    pub fn allow(&self, name: &str) -> bool {
        match self {
            Interfaces::Any => true,
            Interfaces::Matching(patterns) => patterns.iter().any(|pattern| pattern.matches(name)),
        }
    }
}

/// The option that allows an interface. A name with a special meaning in a shell or a pattern is
/// not repeated.
pub(super) fn option_for(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    match name.chars().all(plain) {
        true => format!("--allow-port {name}"),
        false => "--allow-port PATTERN".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::{Location, LocationError, Policy, Vdevs};

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, good, bad) in [
            ("veth0", &["veth0"][..], &["veth", "veth01", "Veth0", ""][..]),
            ("veth*", &["veth", "veth0", "veth-a"], &["vet", "aveth0"]),
            ("*", &["", "a", "lo"], &[]),
            ("*0", &["0", "veth0", "00"], &["veth01", ""]),
            ("v?th*", &["veth", "vath9"], &["vth", "veeth"]),
            ("a*b*c", &["abc", "axxbxxc", "abcbc"], &["ab", "acb", "abcd"]),
            ("?", &["a", "\u{fc}"], &["", "ab"]),
            ("**", &["", "x"], &[]),
        ] {
            let pattern: Pattern = pattern.parse().unwrap();
            for name in good {
                assert!(pattern.matches(name), "{pattern:?} {name}");
            }
            for name in bad {
                assert!(!pattern.matches(name), "{pattern:?} {name}");
            }
        }
        for bad in ["", "a/b", "a b", "a,b", "a:b", &"a".repeat(65)] {
            assert_eq!(bad.parse::<Pattern>(), Err(PatternError), "{bad}");
        }
        // Of stars alone it takes no longer.
        let stars: Pattern = "*a".repeat(32).parse().unwrap();
        assert!(!stars.matches(&"a".repeat(31)) && stars.matches(&"a".repeat(32)));
    }

    #[test]
    fn every_location_with_an_interface_is_judged() {
        let only = |vdevs| Policy {
            vdevs,
            interfaces: Interfaces::Matching(["va".parse().unwrap()].into()),
            ..Policy::COMMAND_LINE
        };
        for (text, vdevs) in [
            ("IF", Vdevs::Pathless),
            ("af_packet:IF,queues=2", Vdevs::Pathless),
            ("af_xdp:IF", Vdevs::Pathless),
            ("tap:IF", Vdevs::Pathless),
            ("vdev:net_af_packet0,iface=IF", Vdevs::Pathless),
            ("vdev:net_af_xdp0,start_queue=1,iface=IF", Vdevs::Pathless),
            ("vdev:net_tap0,iface=IF", Vdevs::Pathless),
            ("vdev:net_tap0,iface=va,remote=IF", Vdevs::Any),
            ("vdev:net_pcap0,rx_iface=va,tx_iface=IF", Vdevs::Any),
            ("vdev:vdev:net_af_packet0,iface=IF", Vdevs::Any),
        ] {
            let read = |name| Location::read(&text.replace("IF", name), &only(vdevs));
            assert!(read("va").is_ok(), "{text}");
            let error = read("vb").unwrap_err();
            assert_eq!(error, LocationError::NotAllowed("vb".to_owned()), "{text}");
            assert!(error.to_string().contains("--allow-port vb"), "{error}");
        }
        for none in ["ring:a", "null", "memif:/s", "vdev:net_null0", "pci:01:00.0"] {
            assert!(Location::read(none, &only(Vdevs::Known)).is_ok(), "{none}");
        }
        // Pasted into a shell, the name itself would allow everything.
        assert_eq!(option_for("*"), "--allow-port PATTERN");
        assert_eq!(option_for("a;b"), "--allow-port PATTERN");
    }
}
