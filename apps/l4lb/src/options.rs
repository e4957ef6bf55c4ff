// SPDX-License-Identifier: BSD-3-Clause
//! The command line after EAL's options.

use std::ffi::OsString;
use std::path::PathBuf;

use flow::table;

/// How packets are processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    #[default]
    Loop,
    /// The graph, compiled into one function.
    Fused,
    /// The graph, by librte_graph.
    Librte,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub config: PathBuf,
    /// Of each IP version, on each lcore.
    pub connections: usize,
    pub engine: Engine,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    #[error("unknown option {0} (known: --config FILE, --connections N, --graph fused|librte)")]
    Unknown(String),
    #[error("{0} needs a value")]
    NoValue(String),
    #[error("--connections {0}: not a number from 1 to {most}", most = table::MOST)]
    Connections(String),
    #[error("--graph {0}: neither fused nor librte")]
    Graph(String),
}

impl Options {
    pub fn parse(arguments: Vec<OsString>) -> Result<Self, OptionError> {
        let mut options =
            Self { config: PathBuf::from("l4lb.conf"), connections: 1 << 16, engine: Engine::Loop };
        let mut words = arguments.into_iter();
        while let Some(option) = words.next() {
            let name = option.to_string_lossy().into_owned();
            let mut value = || words.next().ok_or_else(|| OptionError::NoValue(name.clone()));
            match &*name {
                "--config" => options.config = value()?.into(),
                "--connections" => {
                    let given = value()?.to_string_lossy().into_owned();
                    let number = given.parse().ok().filter(|n| (1..=table::MOST).contains(n));
                    options.connections = number.ok_or(OptionError::Connections(given))?;
                }
                "--graph" => {
                    options.engine = match &*value()?.to_string_lossy() {
                        "fused" => Engine::Fused,
                        "librte" => Engine::Librte,
                        other => return Err(OptionError::Graph(other.to_owned())),
                    }
                }
                _ => return Err(OptionError::Unknown(name)),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Options, OptionError> {
        Options::parse(text.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn options_are_read() {
        let options = parsed("--connections 7 --config /a/b --graph fused").unwrap();
        let wanted = Options { config: "/a/b".into(), connections: 7, engine: Engine::Fused };
        assert_eq!(options, wanted);
        assert_eq!(parsed("").unwrap().engine, Engine::Loop);
    }

    #[test]
    fn wrong_options_are_named() {
        for (text, wanted) in [
            ("--conf a", "unknown option --conf (known: "),
            ("--config", "--config needs a value"),
            ("--connections 0", "--connections 0: not a number from 1 to 268435456"),
            ("--graph fast", "--graph fast: neither"),
        ] {
            let error = parsed(text).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
