//! The order of exclusive handlers, and shared ones beside them.

use std::time::Duration;

use restate_sdk::prelude::*;

use crate::contract::Step;
use crate::steps::step;

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
