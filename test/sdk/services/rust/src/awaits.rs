//! The payloads of what is awaited, cancelled and interpreted.

use serde::{Deserialize, Serialize};

use crate::contract::{Call, nullable};

/// What something that was awaited came to: a value, or the terminal error in
/// `code` and `message`. Combinators fill `index` and `of`.
#[derive(Clone, Default, Serialize)]
pub struct Outcome {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    pub code: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub index: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<Outcome>,
}

/// Asks `Awakeables/await` for n awakeables.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Await {
    pub id: String,
    pub n: usize,
}

/// Resolves an awakeable or a promise, or rejects it if `reject` is not empty.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Completion {
    pub awakeable: String,
    pub promise: String,
    pub value: String,
    pub reject: String,
}

/// Asks `Awakeables/delegate` to hand an awakeable to a holder.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Delegate {
    pub holder: String,
    pub key: String,
}

/// The input of `Flow/run`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Flow {
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    pub promises: Vec<String>,
    pub text: String,
}

/// Asks `Signals/await` for signals, one after the other.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Wait {
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    pub names: Vec<String>,
}

/// A signal to send; rejects it if `reject` is not empty.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Signal {
    pub invocation: String,
    pub name: String,
    pub value: String,
    pub reject: String,
}

/// Asks `Cancel/block` to wait until it is cancelled.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Block {
    pub id: String,
    #[serde(rename = "in")]
    pub place: String,
    pub child: String,
    pub catch: bool,
}

/// Asks `Tree/grow` for a tree of invocations whose leaves wait for ever.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Tree {
    pub id: String,
    pub depth: u64,
    pub width: u64,
    pub send: bool,
}

/// Asks `Drift/run` to do something else on some of its attempts.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Drift {
    pub id: String,
    pub first: String,
    pub second: String,
    pub heal: u64,
}

/// What `Utils/say` does before it answers.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Say {
    pub value: String,
    pub id: String,
    pub gate: String,
    pub millis: u64,
    pub code: u16,
    pub message: String,
}

/// What `Versioned/work` saw of the environment variable `VERSION`.
#[derive(Serialize)]
pub struct Versions {
    pub before: String,
    pub after: String,
}

/// What `Interpreter/run` carries out, command by command.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Program {
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    pub commands: Vec<Command>,
}

/// One command of a program; `what` says which.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Command {
    #[serde(rename = "do")]
    pub what: String,
    pub name: String,
    pub value: String,
    pub millis: u64,
    pub code: u16,
    pub message: String,
    pub call: Option<Call>,
    #[serde(deserialize_with = "nullable")]
    pub of: Vec<Command>,
}
