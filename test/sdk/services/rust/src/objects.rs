//! State, the order of exclusive handlers, and shared ones beside them.

use std::time::Duration;

use restate_sdk::prelude::*;

use crate::contract::{Op, OpResult, Step};
use crate::steps::step;

/// State.
pub struct Store;

#[restate_sdk::object(name = "RustStore")]
impl Store {
    /// Carries out state operations and returns the results of the reads.
    #[handler]
    async fn script(&self, ctx: ObjectContext<'_>, Json(ops): Json<Vec<Op>>) -> HandlerResult<Json<Vec<OpResult>>> {
        let mut results = Vec::new();
        for op in &ops {
            match op.op.as_str() {
                "set" => ctx.set(&op.key, op.value.clone()),
                "setBytes" => ctx.set(&op.key, op.value.clone().into_bytes()),
                "clear" => ctx.clear(&op.key),
                "clearAll" => ctx.clear_all(),
                "sleep" => ctx.sleep(Duration::from_millis(1)).await?,
                "get" => results.push(found(ctx.get::<String>(&op.key).await?)),
                "getBytes" => {
                    let value = ctx.get::<Vec<u8>>(&op.key).await?;
                    results.push(found(value.map(String::from_utf8).transpose()?));
                }
                "keys" => {
                    let mut keys = ctx.get_keys().await?;
                    keys.sort();
                    results.push(OpResult { keys: Some(keys), ..OpResult::default() });
                }
                unknown => return Err(TerminalError::new(format!("unknown operation {unknown:?}")).into()),
            }
        }
        Ok(Json(results))
    }

    /// Reads one key without waiting for the exclusive handler.
    #[handler]
    async fn peek(&self, ctx: SharedObjectContext<'_>, key: String) -> HandlerResult<Json<OpResult>> {
        Ok(Json(found(ctx.get::<String>(&key).await?)))
    }
}

fn found(value: Option<String>) -> OpResult {
    OpResult { present: value.is_some(), value, keys: None }
}

/// The order of exclusive handlers, and shared ones beside them.
pub struct Queue;

#[restate_sdk::object(name = "RustQueue")]
impl Queue {
    /// Occupies the key until the gate opens.
    #[handler]
    async fn hold(&self, ctx: ObjectContext<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        Ok(ctx.run(|| step(&input)).name("once").await?)
    }

    /// Adds a value to the list, with a pause between reading and writing.
    #[handler]
    async fn append(&self, ctx: ObjectContext<'_>, value: String) -> HandlerResult<u64> {
        let mut values = ctx.get::<Json<Vec<String>>>("values").await?.unwrap_or_default().into_inner();
        ctx.sleep(Duration::from_millis(1)).await?;
        values.push(value);
        let n = values.len();
        ctx.set("values", Json(values));
        Ok(n as u64)
    }

    /// Returns the values appended so far.
    #[handler]
    async fn list(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<Json<Option<Vec<String>>>> {
        let values = ctx.get::<Json<Vec<String>>>("values").await?;
        Ok(Json(values.map(Json::into_inner)))
    }
}
