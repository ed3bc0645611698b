//! Turns the results of awaiting into what the test sees.

use restate_sdk::prelude::TerminalError;

use crate::awaits::Outcome;

impl From<Result<String, TerminalError>> for Outcome {
    fn from(result: Result<String, TerminalError>) -> Self {
        match result {
            Ok(value) => Self { value, ..Self::default() },
            Err(e) => Self { code: e.code(), message: e.message().to_owned(), ..Self::default() },
        }
    }
}

impl Outcome {
    /// Tells whether this is a terminal error.
    pub fn failed(&self) -> bool {
        self.code != 0
    }

    /// The outcome of one of several.
    pub fn one(index: usize, outcome: Self) -> Self {
        Self { index, of: vec![outcome], ..Self::default() }
    }
}
