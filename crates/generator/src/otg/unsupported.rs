// SPDX-License-Identifier: BSD-3-Clause
//! Requests about devices and protocols, which the generator does not have: each is refused by the
//! name of what it asks.

use serde_json::Value;

use super::ApiError;

/// The path of choices of a request, as far as they are words of the model's kind.
fn choices(request: &Value) -> Vec<&str> {
    let mut path = Vec::new();
    let mut at = Some(request);
    while let Some(choice) = at.and_then(|value| value.get("choice")).and_then(Value::as_str) {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if choice.len() > 60 || !choice.chars().all(word) || path.len() == 4 {
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
    ApiError::invalid(vec![format!("{path}: not supported; {why}")])
}

/// Why OTG's `ControlAction` cannot be done.
pub fn action(request: &Value) -> ApiError {
    match request.get("choice").and_then(Value::as_str) {
        Some("port") => refusal(request, "port", "the generator resets no ports"),
        _ => refusal(request, "choice", "there are no devices, and so no protocols"),
    }
}

/// Why the states of OTG's `StatesRequest` cannot be told.
pub fn states(request: &Value) -> ApiError {
    refusal(request, "ipv4_neighbors", "there are no devices that could have states")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_asked_is_named() {
        let ping = json!({"choice": "protocol", "protocol": {"choice": "ipv4", "ipv4": {"choice": "ping", "ping": {"requests": []}}}});
        for (error, wanted) in [
            (action(&ping), "protocol.ipv4.ping: not supported; there are no devices"),
            (
                action(&json!({"choice": "port", "port": {"choice": "reboot"}})),
                "port.reboot: not supported; the generator resets no ports",
            ),
            (action(&json!({})), "choice: not supported; there are no devices"),
            (states(&json!({})), "ipv4_neighbors: not supported; there are no devices"),
            (states(&json!({"choice": "bgp_prefixes"})), "bgp_prefixes: not supported"),
            (states(&json!({"choice": "<script>"})), "ipv4_neighbors: not supported"),
            (states(&json!({"choice": "a".repeat(1000)})), "ipv4_neighbors: not supported"),
        ] {
            assert_eq!(error.status, 400);
            assert!(error.errors[0].starts_with(wanted), "{wanted}: {error}");
        }
    }
}
