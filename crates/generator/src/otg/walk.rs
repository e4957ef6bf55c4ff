// SPDX-License-Identifier: BSD-3-Clause
//! Walks a JSON tree, collecting every fault and every warning with the path of its field.

use std::cell::{Cell, RefCell};
use std::str::FromStr;

use serde_json::{Map, Value};

use super::ApiError;

/// Most faults of one request that are reported.
const MAX_FAULTS: usize = 50;

/// Most warnings of one request that are spelled out; the others are counted.
const MAX_WARNINGS: usize = 50;

/// The faults and the warnings found so far.
#[derive(Debug, Default)]
pub struct Faults {
    faults: RefCell<Vec<String>>,
    warnings: RefCell<Vec<String>>,
    /// Warnings that are not spelled out.
    more: Cell<usize>,
}

fn at(path: &str, what: &str) -> String {
    if path.is_empty() { what.to_owned() } else { format!("{path}: {what}") }
}

impl Faults {
    /// Notes a fault.
    pub fn add(&self, path: &str, what: impl AsRef<str>) {
        let mut faults = self.faults.borrow_mut();
        if faults.len() < MAX_FAULTS {
            faults.push(at(path, what.as_ref()));
        }
    }

    /// Notes a warning.
    pub fn warn(&self, path: &str, what: impl AsRef<str>) {
        let mut warnings = self.warnings.borrow_mut();
        match warnings.len() < MAX_WARNINGS {
            true => warnings.push(at(path, what.as_ref())),
            false => self.more.set(self.more.get() + 1),
        }
    }

    /// `value` if there was no fault.
    ///
    /// # Errors
    /// A 400 with all faults.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, ApiError> {
        self.finish_with_warnings(value).map(|(value, _)| value)
    }

    /// `value` and the warnings, if there was no fault.
    ///
    /// # Errors
    /// A 400 with all faults.
    pub fn finish_with_warnings<T>(self, value: Option<T>) -> Result<(T, Vec<String>), ApiError> {
        let (faults, mut warnings) = (self.faults.into_inner(), self.warnings.into_inner());
        match value {
            Some(value) if faults.is_empty() => {
                let more = self.more.get();
                warnings.extend((more > 0).then(|| format!("and {more} more warnings")));
                Ok((value, warnings))
            }
            _ => Err(ApiError::invalid(faults)),
        }
    }
}

/// A value and the way to it.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    value: &'a Value,
    path: String,
    faults: &'a Faults,
}

/// An object and the way to it.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    map: &'a Map<String, Value>,
    path: String,
    faults: &'a Faults,
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl<'a> Node<'a> {
    /// The root of a tree.
    pub fn root(value: &'a Value, faults: &'a Faults) -> Self {
        Node { value, path: String::new(), faults }
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What it is, as it stands.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// Notes a fault here.
    pub fn fault<T>(&self, what: impl AsRef<str>) -> Option<T> {
        self.faults.add(&self.path, what);
        None
    }

    /// Notes a warning here.
    pub fn warn(&self, what: impl AsRef<str>) {
        self.faults.warn(&self.path, what);
    }

    /// An object with these fields and no others.
    pub fn object(&self, fields: &[&str]) -> Option<Object<'a>> {
        let Value::Object(map) = self.value else {
            return self.fault("must be an object");
        };
        let object = Object { map, path: self.path.clone(), faults: self.faults };
        for (key, value) in map {
            if !value.is_null() && !fields.contains(&key.as_str()) {
                let shown: String = key.chars().take(60).collect();
                self.faults.add(&object.join(&shown), "not supported");
            }
        }
        Some(object)
    }

    /// A list; its items in order.
    pub fn list(&self) -> Option<Vec<Node<'a>>> {
        let Value::Array(items) = self.value else {
            return self.fault("must be a list");
        };
        let item =
            |(i, value)| Node { value, path: format!("{}[{i}]", self.path), faults: self.faults };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// A list of at most `max` items.
    pub fn list_of(&self, max: usize) -> Option<Vec<Node<'a>>> {
        match self.value {
            Value::Array(items) if items.len() > max => {
                self.fault(format!("{} entries; at most {max} are supported", items.len()))
            }
            _ => self.list(),
        }
    }

    /// A text.
    pub fn text(&self) -> Option<&'a str> {
        match self.value {
            Value::String(text) => Some(text),
            _ => self.fault("must be a string"),
        }
    }

    /// A text that reads as a `T`.
    pub fn parse<T: FromStr>(&self) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        let text = self.text()?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => self.fault(format!("{error}")),
        }
    }

    /// True or false.
    pub fn boolean(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(*value),
            _ => self.fault("must be true or false"),
        }
    }

    /// A whole number in a range; also as a string of decimal digits, as OTG writes 64-bit ones.
    pub fn integer(&self, min: u64, max: u64) -> Option<u64> {
        let number = match self.value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
                text.parse().ok()
            }
            _ => None,
        };
        match number {
            Some(number) if (min..=max).contains(&number) => Some(number),
            _ => self.fault(format!("must be a whole number from {min} to {max}")),
        }
    }

    /// A number in a range.
    pub fn number(&self, min: f64, max: f64) -> Option<f64> {
        match self.value.as_f64() {
            Some(number) if (min..=max).contains(&number) => Some(number),
            _ => self.fault(format!("must be a number from {min} to {max}")),
        }
    }

    /// One of these words.
    pub fn word<'w>(&self, words: &[&'w str]) -> Option<&'w str> {
        let text = self.text()?;
        match words.iter().find(|word| **word == text) {
            Some(word) => Some(word),
            None => {
                let shown: String = text.chars().take(60).collect();
                self.fault(format!("{shown:?} is not supported; choose {}", words.join(", ")))
            }
        }
    }

    /// A field of an object, if this is one and it is there and not null.
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Node { value, path: join(&self.path, key), faults: self.faults })
    }

    /// A field of an object as it stands, without a look at anything else.
    pub fn raw_field(&self, key: &str) -> Option<&'a Value> {
        self.value.get(key)
    }

    /// The object as it stands, if it is one.
    pub fn raw_object(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// Notes a fault at a field of this object, there or not.
    pub fn child_fault<T>(&self, key: &str, what: &str) -> Option<T> {
        self.faults.add(&join(&self.path, key), what);
        None
    }

    /// Whether it is a list without items or an object without fields.
    pub fn is_empty(&self) -> bool {
        match self.value {
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        }
    }
}

impl<'a> Object<'a> {
    fn join(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Notes a fault at a field, there or not.
    pub fn child_fault<T>(&self, key: &str, what: impl AsRef<str>) -> Option<T> {
        self.faults.add(&self.join(key), what);
        None
    }

    /// Notes a fault here.
    pub fn fault<T>(&self, what: impl AsRef<str>) -> Option<T> {
        self.faults.add(&self.path, what);
        None
    }

    /// Notes a warning at a field, there or not.
    pub fn child_warning(&self, key: &str, what: impl AsRef<str>) {
        self.faults.warn(&self.join(key), what);
    }

    /// An object that may be missing, which is an empty one then.
    pub fn inner(&self, key: &str, fields: &[&str]) -> Option<Object<'a>> {
        match self.get(key) {
            Some(node) => node.object(fields),
            None => self.empty(key),
        }
    }

    /// A flag that may be missing.
    pub fn flag(&self, key: &str, default: bool) -> Option<bool> {
        self.get(key).map_or(Some(default), |node| node.boolean())
    }

    /// A field, if it is there and not null.
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.map.get(key).filter(|value| !value.is_null())?;
        Some(Node { value, path: self.join(key), faults: self.faults })
    }

    /// A field that must be there.
    pub fn required(&self, key: &str) -> Option<Node<'a>> {
        let node = self.get(key);
        if node.is_none() {
            self.faults.add(&self.join(key), "is missing");
        }
        node
    }

    /// A field that is not there, as an object without fields.
    pub fn empty(&self, key: &str) -> Option<Object<'a>> {
        static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        Some(Object { map: &EMPTY, path: self.join(key), faults: self.faults })
    }

    /// The items of a list that may be missing.
    pub fn items(&self, key: &str) -> Vec<Node<'a>> {
        self.get(key).and_then(|node| node.list()).unwrap_or_default()
    }

    /// Notes a fault when a field has any content.
    pub fn refuse(&self, keys: &[&str]) {
        for node in keys.iter().filter_map(|key| self.get(key)) {
            if !node.is_empty() {
                node.fault::<()>("not supported");
            }
        }
    }

    /// A flag that may be missing or false, and must not be true.
    pub fn refuse_true(&self, keys: &[&str]) {
        for node in keys.iter().filter_map(|key| self.get(key)) {
            if node.boolean() == Some(true) {
                node.fault::<()>("not supported");
            }
        }
    }

    /// Which alternative is chosen: the word in `choice`, else the only alternative that is given,
    /// else `default`. Another alternative beside the chosen one is a fault.
    pub fn choice<'w>(
        &self,
        alternatives: &[&'w str],
        default: Option<&'w str>,
    ) -> Option<&'w str> {
        let given: Vec<&'w str> =
            alternatives.iter().copied().filter(|word| self.get(word).is_some()).collect();
        let chosen = match (self.get("choice"), given.as_slice(), default) {
            (Some(node), ..) => node.word(alternatives)?,
            (None, [one], _) => one,
            (None, [], Some(default)) => default,
            (None, [], None) => {
                return self.fault(format!("choose one of {}", alternatives.join(", ")));
            }
            (None, ..) => return self.fault(format!("choose only one of {}", given.join(", "))),
        };
        for other in given.into_iter().filter(|word| *word != chosen) {
            self.faults.add(&self.join(other), format!("given, but the choice is {chosen}"));
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests;
