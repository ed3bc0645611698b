//! The payloads of the test services, as in the Go package `contract`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
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

/// An invocation that `Caller` makes on behalf of the test.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub service: String,
    #[serde(default)]
    pub key: String,
    pub handler: String,
    #[serde(default)]
    pub input: Option<Box<RawValue>>,
    #[serde(default)]
    pub delay_millis: u64,
    #[serde(default)]
    pub idempotency_key: String,
}

/// Asks for the first of several sleeps, in milliseconds.
#[derive(Deserialize)]
pub struct Race {
    pub millis: Vec<u64>,
}

/// Asks for a call that is given up after some time.
#[derive(Deserialize)]
pub struct Timeout {
    pub call: Call,
    pub millis: u64,
}

/// One state operation of `Store/script`.
#[derive(Deserialize)]
pub struct Op {
    pub op: String,
    #[serde(default)]
    pub key: String,
    #[serde(default)]
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
