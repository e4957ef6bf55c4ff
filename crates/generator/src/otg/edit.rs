// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `ConfigAppend` and `ConfigDelete`: more flows, or fewer.
//!
//! The stored configuration is changed and set as a whole, so that what comes of it is what a configuration could say.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::ApiError;
use super::walk::{Faults, Node, Object};
use crate::plan::MAX_FLOWS;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// `ConfigAppend`.
    Append,
    /// `ConfigDelete`.
    Delete,
}

impl Edit {
    /// The list of a request.
    fn list(self) -> &'static str {
        match self {
            Edit::Append => "config_append_list",
            Edit::Delete => "config_delete_list",
        }
    }
}

/// A configuration after an edit.
#[derive(Clone, Debug)]
pub struct Edited {
    /// How it reads now.
    pub config: Value,
    /// Where the appended flows are.
    pub places: Places,
}

/// The place of each appended flow in the configuration and in the request.
#[derive(Clone, Debug, Default)]
pub struct Places(Vec<(usize, String)>);

impl Places {
    /// Names the faults of the whole configuration by their places in the request.
    pub fn renamed(&self, error: ApiError) -> ApiError {
        let rename = |error: String| {
            let found = self.0.iter().find_map(|(flow, place)| {
                let rest = error.strip_prefix(&format!("flows[{flow}]"))?;
                Some(format!("{place}{rest}"))
            });
            found.unwrap_or(error)
        };
        ApiError { errors: error.errors.into_iter().map(rename).collect(), ..error }
    }
}

/// Reads an edit of the configuration `config`. Flows that are appended are read with the whole configuration, later.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn edited(edit: Edit, request: &Value, mut config: Value) -> Result<Edited, ApiError> {
    let faults = Faults::default();
    let root = Node::root(request, &faults);
    let parts = resources(edit, &root);
    let mut places = Vec::new();
    let done = parts.and_then(|parts| {
        let map = config.as_object_mut()?;
        let flows = map.entry("flows").or_insert_with(|| Value::Array(Vec::new()));
        if flows.is_null() {
            *flows = Value::Array(Vec::new());
        }
        let flows = flows.as_array_mut()?;
        let mut good = true;
        let name = |(at, flow): (usize, &Value)| Some((flow.get("name")?.as_str()?.to_owned(), at));
        let mut known: HashMap<String, usize> = match edit {
            Edit::Append => HashMap::new(),
            Edit::Delete => flows.iter().enumerate().filter_map(name).collect(),
        };
        let mut gone = HashSet::new();
        for (part, object) in parts.iter().enumerate() {
            let list = object.required("flows").and_then(|node| node.list_of(MAX_FLOWS));
            let Some(list) = list else {
                good = false;
                continue;
            };
            for (at, node) in list.iter().enumerate() {
                match edit {
                    Edit::Append => {
                        places.push((flows.len(), format!("{}[{part}].flows[{at}]", edit.list())));
                        flows.push(node.value().clone());
                    }
                    Edit::Delete => match delete(&mut known, node) {
                        Some(index) => drop(gone.insert(index)),
                        None => good = false,
                    },
                }
            }
        }
        let mut at = 0..;
        flows.retain(|_| at.next().is_some_and(|at| !gone.contains(&at)));
        good.then_some(())
    });
    faults.finish(done)?;
    Ok(Edited { config, places: Places(places) })
}

fn resources<'a>(edit: Edit, root: &Node<'a>) -> Option<Vec<Object<'a>>> {
    let list = root.object(&[edit.list()])?.required(edit.list())?.list_of(MAX_FLOWS)?;
    let parts = list.iter().map(|node| {
        let object = node.object(&["choice", "flows"])?;
        object.choice(&["flows"], Some("flows"))?;
        Some(object)
    });
    // All of them are read, for their faults.
    parts.collect::<Vec<_>>().into_iter().collect()
}

/// Takes a name away; returns the index of its flow.
fn delete(known: &mut HashMap<String, usize>, node: &Node<'_>) -> Option<usize> {
    let name = node.text()?;
    known.remove(name).or_else(|| {
        let shown: String = name.chars().take(60).collect();
        node.fault(format!("there is no flow named {shown:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config() -> Value {
        json!({"ports": [{"name": "p"}], "flows": [{"name": "f"}, {"name": "g"}]})
    }

    fn fault(edit: Edit, request: Value) -> String {
        edited(edit, &request, config()).unwrap_err().errors.join("; ")
    }

    #[test]
    fn flows_come_and_go() {
        let request = json!({"config_append_list": [
            {"choice": "flows", "flows": [{"name": "h"}]}, {"flows": [{"name": "i"}, {"name": "j"}]},
        ]});
        let appended = edited(Edit::Append, &request, config()).unwrap();
        let names = |config: &Value| -> Vec<String> {
            let flows = config["flows"].as_array().unwrap();
            flows.iter().map(|flow| flow["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&appended.config), ["f", "g", "h", "i", "j"]);
        let error = appended.places.renamed(ApiError::invalid(vec![
            "flows[4].size: bad".to_owned(),
            "flows[0].size: bad".to_owned(),
        ]));
        assert_eq!(
            error.errors,
            ["config_append_list[1].flows[1].size: bad", "flows[0].size: bad"]
        );
        let request = json!({"config_delete_list": [{"flows": ["j", "f"]}]});
        let left = edited(Edit::Delete, &request, appended.config).unwrap();
        assert_eq!(names(&left.config), ["g", "h", "i"]);
        let request = json!({"config_append_list": [{"flows": [{"name": "f"}]}]});
        for without in [json!({}), json!({"flows": null})] {
            assert_eq!(names(&edited(Edit::Append, &request, without).unwrap().config), ["f"]);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (edit, request, wanted) in [
            (Edit::Append, json!({}), "config_append_list: is missing"),
            (Edit::Append, json!({"config_delete_list": []}), "config_delete_list: not supported"),
            (Edit::Append, json!({"config_append_list": [{}]}), "[0].flows: is missing"),
            (Edit::Append, json!({"config_append_list": [{"flows": 1}]}), "[0].flows: must be a"),
            (
                Edit::Delete,
                json!({"config_delete_list": [{"flows": ["x", 7]}]}),
                "no flow named \"x\"",
            ),
            (
                Edit::Delete,
                json!({"config_delete_list": [{"flows": ["f", "f"]}]}),
                "flows[1]: there",
            ),
            (
                Edit::Delete,
                json!({"config_delete_list": [{"choice": "ports", "flows": []}]}),
                "config_delete_list[0].choice: ",
            ),
        ] {
            let error = fault(edit, request);
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }
}
