//! A workflow, its durable promises and its state.

use restate_sdk::prelude::*;

use crate::awaits::{self, Completion, Outcome};
use crate::contract::{Failure, OpResult};
use crate::recorder::note;
use crate::store::found;

pub struct Flow;

#[restate_sdk::workflow(name = "RustFlow")]
impl Flow {
    /// Waits for the named promises, in order, and returns their values.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, Json(input): Json<awaits::Flow>) -> HandlerResult<Json<Vec<String>>> {
        ctx.run(|| note(&input.id, "run")).name("run").await?;
        ctx.set("text", input.text);
        let mut values = Vec::new();
        for name in &input.promises {
            values.push(ctx.promise::<String>(name).await?);
            ctx.set("got", values.len() as u64);
        }
        Ok(Json(values))
    }

    /// Waits for a promise and returns its value.
    #[handler(name = "await")]
    async fn wait(&self, ctx: SharedWorkflowContext<'_>, name: String) -> HandlerResult<String> {
        Ok(ctx.promise::<String>(&name).await?)
    }

    /// Looks at a promise without waiting for it.
    #[handler]
    async fn peek(&self, ctx: SharedWorkflowContext<'_>, name: String) -> HandlerResult<Json<Outcome>> {
        let Some(result) = ctx.peek_promise::<String>(&name).await.transpose() else {
            return Ok(Json(Outcome::default()));
        };
        Ok(Json(Outcome { index: 1, ..Outcome::from(result) }))
    }

    /// Resolves or rejects a promise. This SDK does not tell whether it was
    /// completed already.
    #[handler]
    async fn complete(
        &self,
        ctx: SharedWorkflowContext<'_>,
        Json(input): Json<Completion>,
    ) -> HandlerResult<Json<Failure>> {
        if input.reject.is_empty() {
            ctx.resolve_promise(&input.promise, input.value);
        } else {
            ctx.reject_promise(&input.promise, TerminalError::new(input.reject));
        }
        Ok(Json(Failure::default()))
    }

    /// Reads the state that the run wrote.
    #[handler]
    async fn text(&self, ctx: SharedWorkflowContext<'_>) -> HandlerResult<Json<OpResult>> {
        Ok(Json(found(ctx.get::<String>("text").await?)))
    }
}
