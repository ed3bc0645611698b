//! A handler that does not do the same on each of its attempts.

use std::time::Duration;

use restate_sdk::context::RequestTarget;
use restate_sdk::prelude::*;

use crate::awaits::{self, Say};
use crate::recorder::record;

pub struct Drift;

#[restate_sdk::object(name = "RustDrift", invocation_retry_policy(initial_interval = "10ms", factor = 1.0))]
impl Drift {
    #[handler]
    async fn run(&self, ctx: ObjectContext<'_>, Json(input): Json<awaits::Drift>) -> HandlerResult<u64> {
        let m = record(&input.id, "attempt").await?;
        let first = m == 1 || m >= input.heal;
        act(&ctx, if first { &input.first } else { &input.second }).await?;
        if m < input.heal {
            return Err(format!("attempt {m} is meant to fail").into());
        }
        Ok(m)
    }
}

async fn act(ctx: &ObjectContext<'_>, what: &str) -> Result<(), TerminalError> {
    match what {
        "sleep" => ctx.sleep(Duration::from_millis(1)).await,
        "run" | "other" => ctx.run(|| async { Ok(()) }).name(what).await,
        "set" => {
            ctx.set("k", "v".to_owned());
            Ok(())
        }
        "get" => ctx.get::<String>("k").await.map(drop),
        "call" => {
            let say = Say { value: "x".to_owned(), ..Say::default() };
            let target = RequestTarget::service("RustUtils", "say");
            ctx.request::<_, String>(target, Json(say)).call().await.map(drop)
        }
        unknown => Err(TerminalError::new(format!("cannot do {unknown:?}"))),
    }
}
