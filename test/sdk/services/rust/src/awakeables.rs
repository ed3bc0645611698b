//! Awakeables, and an object that keeps the id of one.

use restate_sdk::context::RequestTarget;
use restate_sdk::prelude::*;

use crate::awaits::{Await, Completion, Delegate, Outcome};
use crate::recorder::record;

pub struct Awakeables;

#[restate_sdk::service(name = "RustAwakeables")]
impl Awakeables {
    /// Publishes the ids of n awakeables and waits for each in order.
    #[handler(name = "await")]
    async fn wait(&self, ctx: Context<'_>, Json(input): Json<Await>) -> HandlerResult<Json<Vec<Outcome>>> {
        let (ids, awakeables): (Vec<_>, Vec<_>) = (0..input.n).map(|_| ctx.awakeable::<String>()).unzip();
        ctx.run(|| async {
            for id in ids {
                record(&input.id, id).await?;
            }
            Ok(())
        })
        .name("publish")
        .await?;
        let mut outcomes = Vec::with_capacity(input.n);
        for awakeable in awakeables {
            outcomes.push(awakeable.await.into());
        }
        Ok(Json(outcomes))
    }

    /// Resolves or rejects an awakeable.
    #[handler]
    async fn complete(&self, ctx: Context<'_>, Json(input): Json<Completion>) -> HandlerResult<()> {
        complete(&ctx, &input.awakeable.clone(), input);
        Ok(())
    }

    /// Hands an awakeable to a holder and returns what it is resolved with.
    #[handler]
    async fn delegate(&self, ctx: Context<'_>, Json(input): Json<Delegate>) -> HandlerResult<String> {
        let (id, awakeable) = ctx.awakeable::<String>();
        let target = RequestTarget::object(input.holder, input.key, "hold");
        ctx.request::<_, ()>(target, id).call().await?;
        Ok(awakeable.await?)
    }
}

/// Keeps the id of one awakeable.
pub struct Holder;

#[restate_sdk::object(name = "RustHolder")]
impl Holder {
    #[handler]
    async fn hold(&self, ctx: ObjectContext<'_>, id: String) -> HandlerResult<()> {
        ctx.set("id", id);
        Ok(())
    }

    #[handler]
    async fn has(&self, ctx: ObjectContext<'_>) -> HandlerResult<bool> {
        Ok(ctx.get::<String>("id").await?.is_some())
    }

    /// Resolves or rejects the awakeable that is held.
    #[handler]
    async fn complete(&self, ctx: ObjectContext<'_>, Json(input): Json<Completion>) -> HandlerResult<()> {
        let Some(id) = ctx.get::<String>("id").await? else {
            return Err(TerminalError::new_with_code(404, "nothing is held").into());
        };
        complete(&ctx, &id, input);
        ctx.clear("id");
        Ok(())
    }
}

fn complete<'ctx>(ctx: &impl ContextAwakeables<'ctx>, id: &str, input: Completion) {
    if input.reject.is_empty() {
        ctx.resolve_awakeable(id, input.value);
    } else {
        ctx.reject_awakeable(id, TerminalError::new(input.reject));
    }
}
