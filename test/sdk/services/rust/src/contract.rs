//! The payloads of the test services, as in the Go package `contract`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// What `Echo/json` returns unchanged.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Message {
    pub text: String,
    pub number: i64,
    pub tags: Option<BTreeMap<String, String>>,
}

/// The input of the handlers of `Steps`; each reads what it needs.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Name of the record of side effects.
    pub id: String,
    /// How many steps.
    pub n: u64,
    /// How many attempts fail before one succeeds.
    pub fail: u64,
    /// Code of a terminal error.
    pub code: u16,
    /// Message of a terminal error.
    pub message: String,
    /// How long to sleep.
    pub millis: u64,
    /// What to wait for inside a step; empty is nothing.
    pub gate: String,
}

/// A terminal error that a handler caught; code 0 means there was none.
#[derive(Default, Serialize)]
pub struct Failure {
    pub code: u16,
    pub message: String,
}

/// What one attempt drew from the deterministic source.
#[derive(Serialize)]
pub struct Random {
    pub number: f64,
    pub uuid: String,
}

/// An invocation to make on behalf of the test.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Call {
    pub service: String,
    /// Empty: a service; else an object or a workflow.
    pub key: String,
    pub handler: String,
    pub input: Option<Box<RawValue>>,
    pub delay_millis: u64,
    pub idempotency_key: String,
    #[serde(deserialize_with = "nullable")]
    pub headers: BTreeMap<String, String>,
}

/// Asks for several sleeps, in milliseconds.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Race {
    #[serde(deserialize_with = "nullable")]
    pub millis: Vec<u64>,
}

/// Asks for a call that is given up after some time.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Timeout {
    pub call: Call,
    pub millis: u64,
}

/// One state operation of `Store/script`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Op {
    pub op: String,
    pub key: String,
    pub value: String,
}

/// The answer to a reading operation: `present` and `value`, or the sorted `keys`.
#[derive(Default, Serialize)]
pub struct OpResult {
    pub present: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
}

/// Accepts null for what is empty.
pub fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}
