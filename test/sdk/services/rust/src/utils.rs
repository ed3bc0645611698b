//! Small handlers that other services and cases call.

use std::time::Duration;

use restate_sdk::prelude::*;

use crate::awaits::Say;
use crate::contract::{Race, Step};
use crate::recorder::{record, wait};

pub struct Utils;

#[restate_sdk::service(name = "RustUtils")]
impl Utils {
    /// Sleeps, runs a recorded step and fails as asked, then returns the value.
    #[handler]
    async fn say(&self, ctx: Context<'_>, Json(input): Json<Say>) -> HandlerResult<String> {
        if input.millis > 0 {
            ctx.sleep(Duration::from_millis(input.millis)).await?;
        }
        if !input.id.is_empty() {
            ctx.run(|| async {
                record(&input.id, &input.value).await?;
                wait(&input.gate).await
            })
            .name("say")
            .await?;
        }
        if input.code != 0 {
            return Err(TerminalError::new_with_code(input.code, input.message).into());
        }
        Ok(input.value)
    }

    /// Returns the id of this invocation.
    #[handler]
    async fn id(&self, ctx: Context<'_>) -> HandlerResult<String> {
        Ok(ctx.invocation_id().to_owned())
    }

    /// Runs n recorded steps and returns how many there were: one after the
    /// other, since this SDK runs a step only while it is awaited.
    #[handler]
    async fn effects(&self, ctx: Context<'_>, Json(input): Json<Step>) -> HandlerResult<u64> {
        let mut sum = 0;
        for i in 0..input.n {
            let id = &input.id;
            sum += ctx
                .run(|| async move {
                    record(id, i.to_string()).await?;
                    Ok(1u64)
                })
                .name("effect")
                .await?;
        }
        Ok(sum)
    }

    /// Sleeps several times at once and returns how many sleeps there were.
    #[handler]
    async fn sleeps(&self, ctx: Context<'_>, Json(input): Json<Race>) -> HandlerResult<u64> {
        let millis = input.millis.into_iter();
        let sleeps: Vec<_> = millis.map(|ms| ctx.sleep(Duration::from_millis(ms))).collect();
        let n = sleeps.len() as u64;
        for sleep in sleeps {
            sleep.await?;
        }
        Ok(n)
    }
}
