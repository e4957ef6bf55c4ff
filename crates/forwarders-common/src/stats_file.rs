// SPDX-License-Identifier: BSD-3-Clause
//! A file that is replaced as a whole, so that a reader never sees half a document.
//!
//! `host::files` describes how, and what a process that is killed meanwhile leaves behind.

use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use host::files::{self, Temporary};
use telemetry::Value;

/// Why a statistics file is not written.
#[derive(Debug, thiserror::Error)]
pub enum StatsFileError {
    /// The path has no file name, or is not a regular file and must not be replaced.
    #[error("{option} {}: not a regular file (links are not followed); name a file that may be replaced", .path.display())]
    NotAFile {
        /// The option that named it.
        option: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{option} {}: {source}; name a file in a directory that you may write to", .path.display())]
    Write {
        /// The option that named it.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// A file of statistics.
pub struct StatsFile {
    option: &'static str,
    path: PathBuf,
}

impl StatsFile {
    /// The file of `--json-stats`; checks that it can be written, and does not change it.
    ///
    /// # Errors
    /// See [`StatsFileError`].
    pub fn open(path: &Path) -> Result<Self, StatsFileError> {
        Self::open_for("--json-stats", path)
    }

    /// The same for another option.
    ///
    /// # Errors
    /// See [`StatsFileError`].
    pub fn open_for(option: &'static str, path: &Path) -> Result<Self, StatsFileError> {
        let not_a_file = || StatsFileError::NotAFile { option, path: path.to_owned() };
        let trailing = path.as_os_str().as_bytes().ends_with(b"/");
        if trailing || path.file_name().is_none() {
            return Err(not_a_file());
        }
        // A rename would replace a device or a symbolic link such as /dev/stdout.
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return Err(not_a_file());
        }
        let file = Self { option, path: path.to_owned() };
        files::check(path).map_err(|source| file.error(source))?;
        Ok(file)
    }

    /// Replaces the file by this document.
    ///
    /// # Errors
    /// [`StatsFileError::Write`]. The file is then unchanged.
    pub fn write(&self, document: &Value) -> Result<(), StatsFileError> {
        self.replace(document).map_err(|source| self.error(source))
    }

    fn replace(&self, document: &Value) -> io::Result<()> {
        let mut text = serde_json::to_string(document)?;
        text.push('\n');
        let mut temporary = Temporary::create(&self.path)?;
        temporary.file.write_all(text.as_bytes())?;
        temporary.rename().map(drop)
    }

    /// An error of the system that names the file.
    pub(crate) fn error(&self, source: io::Error) -> StatsFileError {
        StatsFileError::Write { option: self.option, path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A process ID that no process has: it is larger than the kernel's limit.
    const NOBODY: u32 = 1 << 23;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.json");
        let stale = dir.path().join(format!(".s.json.{NOBODY}.tmp"));
        let other = format!(".t.json.{NOBODY}.tmp");
        fs::write(&stale, "half").unwrap();
        fs::write(dir.path().join(&other), "another's").unwrap();
        let file = StatsFile::open(&path).unwrap();
        assert_eq!(names(dir.path()), [other.as_str()]);
        for n in [1, 2] {
            file.write(&Value::dict([("n", n.into())])).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{{\"n\":{n}}}\n"));
        }
        assert_eq!(names(dir.path()), [other.clone(), "s.json".to_owned()]);
    }

    #[test]
    fn a_path_that_cannot_be_written_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("no/such/s.json");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        let slash = dir.path().join("new/");
        for path in [&missing, dir.path(), &link, &slash, Path::new("/dev/null"), Path::new("/")] {
            let error = StatsFile::open(path).err().unwrap().to_string();
            assert!(error.contains(&format!("--json-stats {}", path.display())), "{error}");
        }
        assert_eq!(names(dir.path()), ["link"]);
    }
}
