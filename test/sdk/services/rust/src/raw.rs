//! JSON that is passed on as it came.

use std::convert::Infallible;

use hyper::body::Bytes;
use restate_sdk::serde::{Deserialize, PayloadMetadata, Serialize};
use serde_json::value::RawValue;

/// The bytes of some JSON; none at all is no value.
pub struct Raw(Bytes);

impl Raw {
    /// Returns the JSON as a part of a larger one.
    pub fn into_json(self) -> serde_json::Result<Box<RawValue>> {
        if self.0.is_empty() {
            return Ok(RawValue::NULL.to_owned());
        }
        serde_json::from_slice(&self.0)
    }
}

impl From<Option<Box<RawValue>>> for Raw {
    fn from(value: Option<Box<RawValue>>) -> Self {
        Self(value.map_or_else(Bytes::new, |v| String::from(Box::<str>::from(v)).into()))
    }
}

impl Serialize for Raw {
    type Error = Infallible;

    fn serialize(&self) -> Result<Bytes, Infallible> {
        Ok(self.0.clone())
    }
}

impl Deserialize for Raw {
    type Error = Infallible;

    fn deserialize(bytes: &mut Bytes) -> Result<Self, Infallible> {
        Ok(Self(bytes.clone()))
    }
}

/// The defaults announce JSON.
impl PayloadMetadata for Raw {}
