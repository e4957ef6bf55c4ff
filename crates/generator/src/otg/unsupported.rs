// SPDX-License-Identifier: BSD-3-Clause
//! Requests about protocols that the generator does not have: each is refused by the name of what it asks.

use serde_json::Value;

use super::ApiError;
use super::state::NO_PROTOCOLS;

fn is_word(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    word.len() <= 60 && word.chars().all(plain)
}

/// The path of choices of a request, as far as they are words of the model's kind.
fn choices(request: &Value) -> Vec<&str> {
    let mut path = Vec::new();
    let mut at = Some(request);
    while let Some(choice) = at.and_then(|value| value.get("choice")).and_then(Value::as_str) {
        if !is_word(choice) || path.len() == 4 {
            break;
        }
        path.push(choice);
        at = at.and_then(|value| value.get(choice));
    }
    path
}

fn refusal(request: &Value, default: &str, why: &str) -> ApiError {
    let path = choices(request);
    let path = if path.is_empty() { default.to_owned() } else { path.join(".") };
    ApiError::invalid(vec![format!("{path}: {why}")])
}

/// Whether a request chooses a word of the model's kind that is none of `known`.
pub fn asks_for_other_than(request: &Value, known: &[&str]) -> bool {
    let choice = request.get("choice").and_then(Value::as_str);
    choice.is_some_and(|choice| is_word(choice) && !known.contains(&choice))
}

/// Why OTG's `ControlAction` cannot be done.
pub fn action(request: &Value) -> ApiError {
    match request.get("choice").and_then(Value::as_str) {
        Some("port") => refusal(request, "port", "not supported; the generator resets no ports"),
        _ => refusal(request, "choice", NO_PROTOCOLS),
    }
}

/// Why the states of OTG's `StatesRequest` cannot be told.
pub fn states(request: &Value) -> ApiError {
    refusal(request, "choice", NO_PROTOCOLS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_asked_is_named() {
        let ping = json!({"choice": "protocol", "protocol": {"choice": "ipv4", "ipv4": {"choice": "ping", "ping": {"requests": []}}}});
        for (error, wanted) in [
            (action(&ping), "protocol.ipv4.ping: not supported; devices resolve addresses"),
            (
                action(&json!({"choice": "port", "port": {"choice": "reboot"}})),
                "port.reboot: not supported; the generator resets no ports",
            ),
            (action(&json!({})), "choice: not supported; devices resolve addresses"),
            (states(&json!({})), "choice: not supported; devices resolve addresses"),
            (states(&json!({"choice": "bgp_prefixes"})), "bgp_prefixes: not supported"),
            (states(&json!({"choice": "<script>"})), "choice: not supported"),
            (states(&json!({"choice": "a".repeat(1000)})), "choice: not supported"),
        ] {
            assert_eq!(error.status, 400);
            assert!(error.errors[0].starts_with(wanted), "{wanted}: {error}");
        }
    }

    #[test]
    fn other_words_of_the_model_are_known_as_such() {
        let other = |value: Value| asks_for_other_than(&value, &["ipv4_neighbors"]);
        assert!(other(json!({"choice": "bgp_prefixes"})));
        for value in [json!({"choice": "ipv4_neighbors"}), json!({}), json!({"choice": "<script>"})]
        {
            assert!(!other(value));
        }
    }
}
