// SPDX-License-Identifier: BSD-3-Clause
//! Parses options as C's `getopt_long` does, so that the C examples and these programs read the
//! same command lines in the same way: `-p3`, `-p 3`, `-Pq2`, `--portmap=X`, `--portmap X`,
//! abbreviated long options, and words that are not options, which are skipped.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// An option that a program has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opt {
    /// One character for `-x`, more for `--long`; without the dashes.
    pub name: &'static str,
    /// Whether a value follows.
    pub takes_value: bool,
}

/// `-x` or `--long` by itself.
#[must_use]
pub const fn flag(name: &'static str) -> Opt {
    Opt { name, takes_value: false }
}

/// `-x VALUE` or `--long=VALUE`.
#[must_use]
pub const fn valued(name: &'static str) -> Opt {
    Opt { name, takes_value: true }
}

/// Errors in a command line, with the C library's messages.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum GetoptError {
    /// No such option.
    #[error("unrecognized option '{0}'")]
    Unknown(String),
    /// An abbreviation of more than one long option.
    #[error("option '{0}' is ambiguous; possibilities: {1}")]
    Ambiguous(String, String),
    /// The value is missing.
    #[error("option '{0}' requires an argument")]
    NeedsValue(String),
    /// A value for an option that takes none.
    #[error("option '{0}' doesn't allow an argument")]
    TakesNone(String),
}

/// Parses a command line. See [`Getopt::next`].
pub struct Getopt {
    options: &'static [Opt],
    words: VecDeque<OsString>,
    /// The rest of a word such as `-Pq2`, without its dash.
    cluster: Vec<u8>,
}

impl Getopt {
    /// Takes the program's `options` and the words to parse, without the program's name.
    #[must_use]
    pub fn new<I>(options: &'static [Opt], words: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        Self { options, words: words.into_iter().map(Into::into).collect(), cluster: Vec::new() }
    }

    /// Returns the next option's name and its value, which is empty for an option without one.
    ///
    /// # Errors
    /// See [`GetoptError`].
    #[allow(clippy::should_implement_trait)] // An iterator would go on after an error.
    pub fn next(&mut self) -> Result<Option<(&'static str, OsString)>, GetoptError> {
        if !self.cluster.is_empty() {
            return self.short().map(Some);
        }
        while let Some(word) = self.words.pop_front() {
            match word.as_bytes() {
                b"--" => return Ok(None),
                [b'-', b'-', long @ ..] => return self.long(long).map(Some),
                [b'-', cluster @ ..] if !cluster.is_empty() => {
                    self.cluster = cluster.to_vec();
                    return self.short().map(Some);
                }
                _ => {} // no option
            }
        }
        Ok(None)
    }

    /// The words that have not been parsed: those after a `--`, once [`next`](Self::next) returned
    /// none.
    #[must_use]
    pub fn rest(self) -> Vec<OsString> {
        self.words.into()
    }

    fn short(&mut self) -> Result<(&'static str, OsString), GetoptError> {
        let letter = self.cluster.remove(0);
        let shown = || format!("-{}", OsStr::from_bytes(&[letter]).to_string_lossy());
        let known = self.options.iter().find(|option| option.name.as_bytes() == [letter]);
        let option = known.ok_or_else(|| GetoptError::Unknown(shown()))?;
        if !option.takes_value {
            return Ok((option.name, OsString::new()));
        }
        let value = match std::mem::take(&mut self.cluster) {
            rest if rest.is_empty() => {
                self.words.pop_front().ok_or_else(|| GetoptError::NeedsValue(shown()))?
            }
            rest => OsString::from_vec(rest),
        };
        Ok((option.name, value))
    }

    fn long(&mut self, word: &[u8]) -> Result<(&'static str, OsString), GetoptError> {
        let (name, value) = match word.iter().position(|byte| *byte == b'=') {
            Some(at) => (&word[..at], Some(OsStr::from_bytes(&word[at + 1..]).to_owned())),
            None => (word, None),
        };
        let shown = format!("--{}", OsStr::from_bytes(name).to_string_lossy());
        let option = self.complete(name, &shown)?;
        let shown = format!("--{}", option.name);
        let value = match (option.takes_value, value) {
            (false, None) => OsString::new(),
            (false, Some(_)) => return Err(GetoptError::TakesNone(shown)),
            (true, Some(value)) => value,
            (true, None) => self.words.pop_front().ok_or(GetoptError::NeedsValue(shown))?,
        };
        Ok((option.name, value))
    }

    /// The long option of that name, or the only one that begins with it.
    fn complete(&self, name: &[u8], shown: &str) -> Result<Opt, GetoptError> {
        let long = || self.options.iter().filter(|option| option.name.len() > 1);
        if let Some(exact) = long().find(|option| option.name.as_bytes() == name) {
            return Ok(*exact);
        }
        let fits: Vec<&Opt> =
            long().filter(|option| option.name.as_bytes().starts_with(name)).collect();
        match fits[..] {
            [only] => Ok(*only),
            [] => Err(GetoptError::Unknown(shown.to_owned())),
            _ => {
                let names: Vec<String> =
                    fits.iter().map(|fit| format!("'--{}'", fit.name)).collect();
                Err(GetoptError::Ambiguous(shown.to_owned(), names.join(" ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[Opt] =
        &[flag("P"), valued("p"), flag("no-mac"), valued("portmap"), flag("post")];

    fn read(line: &str) -> Result<Vec<(&'static str, String)>, GetoptError> {
        let mut getopt = Getopt::new(OPTIONS, line.split_whitespace());
        let mut all = Vec::new();
        while let Some((name, value)) = getopt.next()? {
            all.push((name, value.into_string().unwrap()));
        }
        Ok(all)
    }

    fn expect(line: &str, expected: &[(&'static str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        assert_eq!(read(line), Ok(expected), "{line}");
    }

    #[test]
    fn words_are_taken_apart_as_getopt_long_does() {
        expect("", &[]);
        expect("-p3 -p 4 -Pp5 -p=6", &[("p", "3"), ("p", "4"), ("P", ""), ("p", "5"), ("p", "=6")]);
        expect("-p -P", &[("p", "-P")]);
        expect(
            "--portmap=(0,1) --portm --no-mac",
            &[("portmap", "(0,1)"), ("portmap", "--no-mac")],
        );
        expect("--portmap=", &[("portmap", "")]);
        expect("a -P - b --no", &[("P", ""), ("no-mac", "")]);
        expect("-P -- -p 3", &[("P", "")]);
        let mut getopt = Getopt::new(OPTIONS, ["a", "-P", "--", "-p", "3"]);
        while getopt.next().unwrap().is_some() {}
        assert_eq!(getopt.rest(), ["-p", "3"]);
    }

    #[test]
    fn what_is_no_option_is_refused() {
        let unknown = |text: &str| Err(GetoptError::Unknown(text.to_owned()));
        assert_eq!(read("-Pz"), unknown("-z"));
        assert_eq!(
            read("--p"),
            Err(GetoptError::Ambiguous("--p".to_owned(), "'--portmap' '--post'".to_owned()))
        );
        assert_eq!(read("--help"), unknown("--help"));
        assert_eq!(read("--=3").unwrap_err(), read("--=").unwrap_err());
        assert_eq!(read("-P -p"), Err(GetoptError::NeedsValue("-p".to_owned())));
        assert_eq!(read("--portmap"), Err(GetoptError::NeedsValue("--portmap".to_owned())));
        assert_eq!(read("--no-mac=1"), Err(GetoptError::TakesNone("--no-mac".to_owned())));
    }
}
