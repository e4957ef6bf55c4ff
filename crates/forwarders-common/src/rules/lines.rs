// SPDX-License-Identifier: BSD-3-Clause
//! The lines of a file that are neither blank nor comments.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::hash::Hash;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::{Contents, MAX_RULES, Mistake, Remark, RuleFileError, Strictness, Warning};

/// The most bytes of a line with its end: about ten times the longest rule.
const MAX_LINE: usize = 4096;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A kind of lines in a file.
pub struct Kind {
    /// What they are called.
    pub name: &'static str,
    /// The error for a line that repeats the line with this number.
    pub again: fn(usize) -> Mistake,
    /// The remark for the same, if it is allowed.
    pub repeated: fn(usize) -> Remark,
    /// Which of the two is used.
    pub counts: Counts,
}

/// Which of two equal lines is used.
#[derive(PartialEq, Eq)]
pub enum Counts {
    /// The first; the second is kept as well.
    First,
    /// Only the last.
    Last,
}

/// Opens a file of rules or routes.
pub fn open(path: &Path) -> Result<BufReader<File>, RuleFileError> {
    // A pipe would let a program wait for its rules for ever, in the midst of its work.
    host::files::open_to_read(path)
        .map(BufReader::new)
        .map_err(|reason| RuleFileError::Read { file: path.to_owned(), reason })
}

/// Reads the file `path` and calls `parse` for every line that is neither blank nor a comment; it
/// returns an entry or nothing, with remarks. If several lines have the same `key`, one is used, or
/// the second is an error.
pub fn read<T, K: Hash + Eq>(
    mut file: impl BufRead,
    path: &Path,
    (kind, strictness): (&Kind, Strictness),
    mut parse: impl FnMut(&str, usize, &mut Vec<Remark>) -> Result<Option<T>, Mistake>,
    key: impl Fn(&T) -> K,
) -> Result<Contents<T>, RuleFileError> {
    let failed = |reason| RuleFileError::Read { file: path.to_owned(), reason };
    // The entries, `None` if a later line replaces one; and by key, the index and line of the entry
    // in use.
    let (mut all, mut seen) = (Vec::new(), HashMap::new());
    let (mut lines, mut warnings, mut remarks) = (0, Vec::new(), Vec::new());
    let mut bytes = Vec::with_capacity(MAX_LINE);
    for line in 1.. {
        let wrong = |mistake| RuleFileError::Line { file: path.to_owned(), line, mistake };
        bytes.clear();
        let limit = MAX_LINE as u64 + 1;
        if file.by_ref().take(limit).read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            break;
        }
        if line == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
            return Err(wrong(Mistake::ByteOrderMark));
        }
        if bytes.len() > MAX_LINE {
            return Err(wrong(Mistake::TooLong(MAX_LINE)));
        }
        // Comments may be in any encoding.
        if bytes[0] == b'#' || bytes.trim_ascii().is_empty() {
            continue;
        }
        if lines == MAX_RULES {
            return Err(wrong(Mistake::TooMany(kind.name)));
        }
        lines += 1;
        // Words that are ignored may be in any encoding, too.
        let text = match strictness {
            Strictness::AsL3fwd => String::from_utf8_lossy(&bytes),
            Strictness::Strict => {
                std::str::from_utf8(&bytes).map_err(|_| wrong(Mistake::NotText))?.into()
            }
        };
        if let Some(made) = parse(&text, line, &mut remarks).map_err(wrong)? {
            match seen.entry(key(&made)) {
                Entry::Vacant(free) => {
                    free.insert((all.len(), line));
                }
                Entry::Occupied(taken) if strictness == Strictness::Strict => {
                    return Err(wrong((kind.again)(taken.get().1)));
                }
                Entry::Occupied(mut taken) => {
                    remarks.push((kind.repeated)(taken.get().1));
                    if kind.counts == Counts::Last {
                        let (earlier, _) = taken.insert((all.len(), line));
                        all[earlier] = None;
                    }
                }
            }
            all.push(Some(made));
        }
        let named = |remark| Warning { file: path.to_owned(), line: Some(line), remark };
        warnings.extend(remarks.drain(..).map(named));
    }
    Ok(Contents { entries: all.into_iter().flatten().collect(), warnings })
}
