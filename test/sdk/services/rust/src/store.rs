//! State.

use std::time::Duration;

use restate_sdk::prelude::*;

use crate::contract::{Op, OpResult, Step};
use crate::steps::attempt;

pub struct Store;

#[restate_sdk::object(name = "RustStore", invocation_retry_policy(initial_interval = "10ms"))]
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
                "retry" => {
                    let fail = op.value.parse()?;
                    attempt(&Step { id: op.key.clone(), fail, ..Step::default() }, "attempt").await?;
                }
                "fail" => return Err(TerminalError::new_with_code(422, op.value.clone()).into()),
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

pub fn found(value: Option<String>) -> OpResult {
    OpResult { present: value.is_some(), value, keys: None }
}
