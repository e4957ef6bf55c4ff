// SPDX-License-Identifier: BSD-3-Clause
//! The lines of a file that are neither blank nor comments.

use std::collections::HashMap;
use std::fs::File;
use std::hash::Hash;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::{MAX_RULES, Mistake, RuleFileError};

/// Bytes of a line, its end included: some ten times what the longest rule takes.
const MAX_LINE: usize = 4096;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the lines of a file are.
pub struct Kind {
    /// How they are called.
    pub name: &'static str,
    /// What is wrong with one that says what the line of this number says.
    pub again: fn(usize) -> Mistake,
}

/// Opens a file of these.
pub fn open(path: &Path) -> Result<BufReader<File>, RuleFileError> {
    let failed = |reason| RuleFileError::Read { file: path.to_owned(), reason };
    // A pipe would let a program wait for its rules for ever, in the midst of its work.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(RuleFileError::Irregular(path.to_owned()));
    }
    File::open(path).map(BufReader::new).map_err(failed)
}

/// Reads what is in the file `path`, has `parse` make something of every line that is neither blank nor a comment, and refuses
/// a line whose `key` an earlier one has.
pub fn read<T, K: Hash + Eq>(
    mut file: impl BufRead,
    path: &Path,
    kind: &Kind,
    mut parse: impl FnMut(&str, usize) -> Result<T, Mistake>,
    key: impl Fn(&T) -> K,
) -> Result<Vec<T>, RuleFileError> {
    let failed = |reason| RuleFileError::Read { file: path.to_owned(), reason };
    let (mut all, mut seen) = (Vec::new(), HashMap::new());
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
        if all.len() == MAX_RULES {
            return Err(wrong(Mistake::TooMany(kind.name)));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong(Mistake::NotText))?;
        let made = parse(text, line).map_err(wrong)?;
        if let Some(earlier) = seen.insert(key(&made), line) {
            return Err(wrong((kind.again)(earlier)));
        }
        all.push(made);
    }
    Ok(all)
}
