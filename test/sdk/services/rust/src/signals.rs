//! Named signals.

use restate_sdk::prelude::*;

use crate::awaits::{Outcome, Signal, Wait};
use crate::recorder::note;

pub struct Signals;

#[restate_sdk::service(name = "RustSignals")]
impl Signals {
    /// Publishes the own id and waits for a new signal of each name, in order.
    #[handler(name = "await")]
    async fn wait(&self, ctx: Context<'_>, Json(input): Json<Wait>) -> HandlerResult<Json<Vec<Outcome>>> {
        let own = ctx.invocation_id().to_owned();
        ctx.run(|| note(&input.id, own)).name("publish").await?;
        let mut outcomes = Vec::new();
        for name in &input.names {
            outcomes.push(ctx.signal::<String>(name).await.into());
        }
        Ok(Json(outcomes))
    }

    /// Sends a signal.
    #[handler]
    async fn send(&self, ctx: Context<'_>, Json(input): Json<Signal>) -> HandlerResult<()> {
        let signal = ctx.invocation_handle(input.invocation).signal(input.name);
        if input.reject.is_empty() {
            signal.resolve(input.value);
        } else {
            signal.reject(TerminalError::new(input.reject));
        }
        Ok(())
    }
}
