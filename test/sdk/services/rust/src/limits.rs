//! Services whose invocations may be tried three times, and what comes then.

use restate_sdk::prelude::*;

use crate::contract::Step;
use crate::steps::attempt;

/// Its invocations are killed.
pub struct Killed;

#[restate_sdk::service(
    name = "RustKilled",
    invocation_retry_policy(initial_interval = "10ms", max_attempts = 3, on_max_attempts = "kill")
)]
impl Killed {
    #[handler]
    async fn work(&self, _ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        attempt(&input, "attempt").await
    }
}

/// Its invocations are paused.
pub struct Paused;

#[restate_sdk::service(
    name = "RustPaused",
    invocation_retry_policy(initial_interval = "10ms", max_attempts = 3, on_max_attempts = "pause")
)]
impl Paused {
    #[handler]
    async fn work(&self, _ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        attempt(&input, "attempt").await
    }
}
