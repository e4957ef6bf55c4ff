// SPDX-License-Identifier: BSD-3-Clause
//! The commands that a program answers, and their answers in DPDK's form.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::clients::{Answers, split};
use crate::json::Told;
use crate::room::LONGEST_ANSWER;
use crate::value::Value;

type Handler = Box<dyn Fn(&str) -> Option<Value> + Send + Sync>;

struct Command {
    help: String,
    handler: Handler,
}

/// Commands with their handlers. `/`, `/info` and `/help` are built in.
pub struct Commands {
    version: String,
    all: BTreeMap<String, Command>,
}

impl Commands {
    /// Returns a set without commands; `version` is the program's name and version, which replaces
    /// DPDK's (`DPDK 22.11.11`).
    #[must_use]
    pub fn new(version: &str) -> Self {
        Self { version: version.to_owned(), all: BTreeMap::new() }
    }

    /// Answers `command` (such as `/linerate/clock`) by `handler`, which gets the text after the
    /// command's comma, or an empty text. `None`, for bad parameters, is answered as `null`.
    #[must_use]
    pub fn with<F>(mut self, command: &str, help: &str, handler: F) -> Self
    where
        F: Fn(&str) -> Option<Value> + Send + Sync + 'static,
    {
        let entry = Command { help: help.to_owned(), handler: Box::new(handler) };
        self.all.insert(command.to_owned(), entry);
        self
    }

    fn info(&self) -> Json {
        json!({
            "version": self.version,
            "pid": std::process::id(),
            "max_output_len": LONGEST_ANSWER,
        })
    }

    fn ask(&self, command: &str, parameters: &str) -> Option<String> {
        let value = (self.all.get(command)?.handler)(parameters)?;
        serde_json::to_string(&Told(&value)).ok()
    }

    fn list(&self) -> Json {
        let own = ["/", "/help", "/info"];
        let mut all: Vec<&str> =
            own.into_iter().chain(self.all.keys().map(String::as_str)).collect();
        all.sort_unstable();
        all.dedup();
        json!(all)
    }

    fn help(&self, command: &str) -> Option<Json> {
        let text = match command {
            "/" => "Returns list of available commands, Takes no parameters",
            "/info" => "Returns information about the program. Takes no parameters",
            "/help" => "Returns help text for a command. Parameters: string command",
            _ => &self.all.get(command)?.help,
        };
        Some(json!({ command: text }))
    }
}

impl Answers for Commands {
    fn greeting(&self) -> Vec<u8> {
        self.info().to_string().into_bytes()
    }

    /// Returns the answer to a request, such as `/ethdev/stats,0`. Unknown commands, and answers
    /// that do not fit, are answered as `null`.
    fn answer(&self, request: &[u8]) -> Vec<u8> {
        let (command, parameters) = split(request);
        let found = match &*command {
            "/" => Some(self.list().to_string()),
            "/info" => Some(self.info().to_string()),
            "/help" => self.help(&parameters).map(|help| help.to_string()),
            _ => self.ask(&command, &parameters),
        };
        let whole = found.map(|text| named(&command, &text));
        whole.filter(|whole| whole.len() <= LONGEST_ANSWER).unwrap_or_else(|| self.refuse(request))
    }

    fn refuse(&self, request: &[u8]) -> Vec<u8> {
        named(&split(request).0, "null")
    }
}

/// An answer with this text of JSON.
fn named(command: &str, text: &str) -> Vec<u8> {
    format!("{{{}:{text}}}", json!(command)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Commands {
        Commands::new("test 1.0")
            .with("/twice", "Twice a number. Parameters: int number", |text| {
                Some(Value::Numbers(vec![text.parse::<u64>().ok()? * 2]))
            })
            .with("/long", "A long text", |length| {
                Some(Value::dict([("text", Value::Text("x".repeat(length.parse().ok()?)))]))
            })
    }

    fn ask(request: &str) -> Json {
        serde_json::from_slice(&commands().answer(request.as_bytes())).unwrap()
    }

    #[test]
    fn answers_are_named_by_their_command() {
        assert_eq!(ask("/twice,21"), json!({"/twice": [42]}));
        assert_eq!(ask("/twice,21\n"), json!({"/twice": [42]}));
        assert_eq!(ask("/"), json!({"/": ["/", "/help", "/info", "/long", "/twice"]}));
        let help = json!({"/help": {"/twice": "Twice a number. Parameters: int number"}});
        assert_eq!(ask("/help,/twice"), help);
        assert_eq!(ask("/info")["/info"]["version"], "test 1.0");
        assert_eq!(ask("/info")["/info"]["pid"], std::process::id());
    }

    #[test]
    fn what_is_not_known_is_null() {
        for request in
            ["/twice", "/twice,x", "/twice,1,2", "/none", "", ",", "/help", "/help,/none"]
        {
            let answer = ask(request);
            let (_, value) = answer.as_object().unwrap().iter().next().unwrap();
            assert!(value.is_null(), "{request}: {answer}");
        }
        let junk = commands().answer(&[0xff, 0xfe, b'"', 0]);
        assert!(serde_json::from_slice::<Json>(&junk).is_ok());
    }

    #[test]
    fn long_texts_are_lists_and_answers_have_a_limit() {
        assert_eq!(ask("/long,130")["/long"]["text"], json!(["x".repeat(127), "xxx"]));
        let most = ask("/long,15900");
        assert!(most["/long"]["text"].is_array());
        assert_eq!(ask("/long,20000"), json!({"/long": null}));
    }
}
