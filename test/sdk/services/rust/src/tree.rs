//! A tree of invocations whose leaves wait for ever.

use restate_sdk::context::RequestTarget;
use restate_sdk::prelude::*;

use crate::awaits;
use crate::recorder::note;

const NAME: &str = "RustTree";

pub struct Tree;

#[restate_sdk::object(name = "RustTree")]
impl Tree {
    /// Starts the children, waits, and records the error that ends the waiting.
    #[handler]
    async fn grow(&self, ctx: ObjectContext<'_>, Json(input): Json<awaits::Tree>) -> HandlerResult<()> {
        let Err(error) = grown(&ctx, &input).await else {
            return Ok(());
        };
        ctx.run(|| note(format!("{}-ended", input.id), ctx.key().to_owned())).name("ended").await?;
        Err(error.into())
    }

    /// Answers as soon as the key is free.
    #[handler]
    async fn ping(&self, _ctx: ObjectContext<'_>) -> HandlerResult<String> {
        Ok("pong".to_owned())
    }
}

/// Starts the children and waits for them, or for ever. The cancellation may come
/// as early as at the step.
async fn grown(ctx: &ObjectContext<'_>, input: &awaits::Tree) -> Result<(), TerminalError> {
    ctx.run(|| note(&input.id, ctx.key().to_owned())).name("grown").await?;
    let width = if input.depth == 0 { 0 } else { input.width };
    let children = (0..width).map(|i| {
        let target = RequestTarget::object(NAME, format!("{}.{i}", ctx.key()), "grow");
        let below = awaits::Tree { depth: input.depth - 1, ..input.clone() };
        ctx.request::<_, ()>(target, Json(below))
    });
    if input.depth > 0 && !input.send {
        let calls: Vec<_> = children.map(|c| c.call()).collect();
        for call in calls {
            call.await?;
        }
        return Ok(());
    }
    children.for_each(|c| drop(c.send()));
    ctx.awakeable::<String>().1.await.map(drop)
}
