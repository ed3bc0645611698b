//! Waiting that ends by cancellation.

use std::time::Duration;

use restate_sdk::context::RequestTarget;
use restate_sdk::prelude::*;

use crate::awaits::Block;
use crate::contract::Failure;
use crate::raw::Raw;
use crate::recorder::{note, record};
use crate::steps::{caught, quick};

const NAME: &str = "RustCancel";

const HOUR: Duration = Duration::from_secs(3600);

pub struct Cancel;

#[restate_sdk::object(name = "RustCancel")]
impl Cancel {
    /// Waits until it is cancelled, and records what it undoes then.
    #[handler]
    async fn block(&self, ctx: ObjectContext<'_>, Json(input): Json<Block>) -> HandlerResult<Json<Failure>> {
        let Err(error) = blocked(&ctx, &input).await else {
            return Ok(Json(Failure::default()));
        };
        ctx.run(|| note(format!("{}-undone", input.id), error.code().to_string())).name("undo").await?;
        if input.catch {
            return Ok(Json(caught(Err::<(), _>(error))));
        }
        Err(error.into())
    }

    /// Answers as soon as the key is free.
    #[handler]
    async fn ping(&self, _ctx: ObjectContext<'_>) -> HandlerResult<String> {
        Ok("pong".to_owned())
    }
}

/// Waits where the input says. The cancellation may come as early as at the step.
async fn blocked(ctx: &ObjectContext<'_>, input: &Block) -> Result<(), TerminalError> {
    ctx.run(|| note(&input.id, "blocked")).name("blocked").await?;
    match input.place.as_str() {
        "sleep" => ctx.sleep(HOUR).await,
        "awakeable" => ctx.awakeable::<String>().1.await.map(drop),
        "call" => child(ctx, input).call().await.map(drop),
        "attach" => child(ctx, input).send().await?.attach::<Raw>().await.map(drop),
        "send" => {
            child(ctx, input).send().await?;
            ctx.sleep(HOUR).await
        }
        "combined" => {
            let slept = ctx.sleep(HOUR);
            let (_, awoken) = ctx.awakeable::<String>();
            let answered = child(ctx, input).call();
            restate_sdk::select! {
                end = slept => end,
                end = awoken => end.map(drop),
                end = answered => end.map(drop),
            }
        }
        "run" => {
            let policy = quick().exponentiation_factor(2.0).max_delay(Duration::from_secs(1));
            ctx.run(|| failing(&input.id)).name("failing").retry_policy(policy).await
        }
        unknown => Err(TerminalError::new(format!("cannot block in {unknown:?}"))),
    }
}

/// Records a try and fails.
async fn failing(id: &str) -> HandlerResult<()> {
    record(&format!("{id}-try"), "try").await?;
    Err("this step is meant to fail".into())
}

/// Addresses the child, which waits for an awakeable.
fn child<'ctx>(ctx: &ObjectContext<'ctx>, input: &Block) -> Request<'ctx, Json<Block>, Raw> {
    let block = Block { id: format!("{}-child", input.id), place: "awakeable".to_owned(), ..Block::default() };
    ctx.request(RequestTarget::object(NAME, &input.child, "block"), Json(block))
}
