//! Run, sleep, errors, retries and randomness.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use restate_sdk::prelude::*;

use crate::contract::{Failure, Random, Step};
use crate::recorder::{record, wait};

pub struct Steps;

#[restate_sdk::service(name = "RustSteps", invocation_retry_policy(initial_interval = "10ms"))]
impl Steps {
    #[handler]
    async fn once(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        Ok(ctx.run(|| step(&input)).name("once").await?)
    }

    /// Runs n recorded steps and returns the sum of their results.
    #[handler]
    async fn many(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        let mut sum = 0;
        for i in 0..input.n {
            let id = &input.id;
            sum += ctx
                .run(|| async move {
                    record(id, i.to_string()).await?;
                    Ok(i)
                })
                .await?;
        }
        Ok(sum)
    }

    /// Runs a step that fails a few times before it succeeds.
    #[handler]
    async fn retry(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        let tried = ctx.run(|| attempt(&input, "try")).name("retry").retry_policy(quick()).await?;
        Ok(tried)
    }

    /// Runs a step that never succeeds and may be tried n times.
    #[handler]
    async fn exhaust(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<Json<Failure>> {
        let result = ctx.run(|| never(&input)).name("exhaust").retry_policy(quick().max_attempts(input.n as u32)).await;
        Ok(Json(caught(result)))
    }

    /// The same, bounded by a time instead.
    #[handler(name = "exhaustTime")]
    async fn exhaust_time(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<Json<Failure>> {
        let result = ctx
            .run(|| never(&input))
            .name("exhaust")
            .retry_policy(quick().max_duration(Duration::from_millis(input.millis)))
            .await;
        Ok(Json(caught(result)))
    }

    /// Runs a step that is tried again after some time, and records each time.
    #[handler]
    async fn later(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        let policy =
            RunRetryPolicy::new().initial_delay(Duration::from_millis(input.millis)).exponentiation_factor(1.0);
        let tried = ctx
            .run(|| async { attempt(&input, unix_millis()?.to_string()).await })
            .name("later")
            .retry_policy(policy)
            .await?;
        Ok(tried)
    }

    /// Runs a step that ends with a terminal error.
    #[handler]
    async fn refuse(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<Json<Failure>> {
        let result = ctx
            .run(|| async {
                record(&input.id, "try").await?;
                Err::<(), HandlerError>(terminal(&input).into())
            })
            .name("refuse")
            .await;
        Ok(Json(caught(result)))
    }

    /// Runs a step, then fails the attempt a few times before it succeeds.
    #[handler]
    async fn flaky(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        let first = Step { id: format!("{}-step", input.id), ..Step::default() };
        ctx.run(|| step(&first)).name("once").await?;
        attempt(&input, "attempt").await
    }

    #[handler]
    async fn fail(&self, _ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        Err(terminal(&input).into())
    }

    /// Sleeps between two recorded steps and returns the time of both, in
    /// milliseconds. Each attempt that got the first step's result says so.
    #[handler]
    async fn sleep(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<Json<[u64; 2]>> {
        let from = ctx.run(|| now(&input.id)).name("from").await?;
        record(&format!("{}-kept", input.id), "attempt").await?;
        ctx.sleep(Duration::from_millis(input.millis)).await?;
        let to = ctx.run(|| now(&input.id)).name("to").await?;
        Ok(Json([from, to]))
    }

    /// Reports what it draws on each of its attempts, of which all but the last
    /// fail, and returns what it drew.
    #[handler]
    async fn random(&self, mut ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<Json<Random>> {
        let drawn = Random { number: ctx.rand().random(), uuid: ctx.rand_uuid().to_string() };
        attempt(&input, serde_json::to_string(&drawn)?).await?;
        Ok(Json(drawn))
    }

    /// Returns a step's result of n bytes.
    #[handler]
    async fn big(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<String> {
        let text = ctx.run(|| async { Ok("x".repeat(input.n as usize)) }).name("big").await?;
        Ok(text)
    }
}

/// Is the recorded step of `once`, behind a gate if asked; returns its ordinal.
pub async fn step(input: &Step) -> HandlerResult<u64> {
    let n = record(&input.id, "step").await?;
    wait(&input.gate).await?;
    Ok(n)
}

/// Describes a terminal error that a handler handles itself.
pub fn caught<T>(result: Result<T, TerminalError>) -> Failure {
    match result {
        Ok(_) => Failure::default(),
        Err(e) => Failure { code: e.code(), message: e.message().to_owned() },
    }
}

/// Records a try and fails.
async fn never(input: &Step) -> HandlerResult<()> {
    record(&input.id, "try").await?;
    Err(input.message.clone().into())
}

/// Records a try and fails the first few.
pub async fn attempt(input: &Step, value: impl Into<String>) -> HandlerResult<u64> {
    let n = record(&input.id, value).await?;
    if n <= input.fail {
        return Err(format!("attempt {n} is meant to fail").into());
    }
    Ok(n)
}

/// Records the time and returns it, in milliseconds since 1970.
async fn now(id: &str) -> HandlerResult<u64> {
    let at = unix_millis()?;
    record(id, at.to_string()).await?;
    Ok(at)
}

fn unix_millis() -> HandlerResult<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64)
}

/// The policy of steps that are meant to fail.
pub fn quick() -> RunRetryPolicy {
    RunRetryPolicy::new().initial_delay(Duration::from_millis(10))
}

fn terminal(input: &Step) -> TerminalError {
    TerminalError::new_with_code(input.code, input.message.clone())
}
