//! Tells which version of the services an invocation runs on.

use std::sync::LazyLock;

use restate_sdk::prelude::*;

use crate::awaits::Versions;
use crate::contract::Step;
use crate::recorder::{note, record};

static VERSION: LazyLock<String> = LazyLock::new(|| std::env::var("VERSION").unwrap_or_else(|_| "v1".to_owned()));

pub struct Versioned;

#[restate_sdk::object(name = "RustVersioned")]
impl Versioned {
    #[handler]
    async fn version(&self, _ctx: SharedObjectContext<'_>) -> HandlerResult<String> {
        Ok(VERSION.clone())
    }

    /// Returns the version before and after an awakeable.
    #[handler]
    async fn work(&self, ctx: ObjectContext<'_>, Json(input): Json<Step>) -> HandlerResult<Json<Versions>> {
        let before = ctx.run(|| noted(&input.id, "before")).name("before").await?;
        let (id, awakeable) = ctx.awakeable::<String>();
        ctx.run(|| note(&input.id, id)).name("publish").await?;
        awakeable.await?;
        Ok(Json(Versions { before, after: VERSION.clone() }))
    }

    /// Returns the versions that three steps saw; the first version can end with
    /// an error instead.
    #[handler]
    async fn chain(&self, ctx: ObjectContext<'_>, Json(input): Json<Step>) -> HandlerResult<String> {
        let mut seen = Vec::new();
        for name in ["a", "b", "c"] {
            seen.push(ctx.run(|| noted(&input.id, name)).name(name).await?);
        }
        if *VERSION == "v1" && input.fail != 0 {
            return Err(TerminalError::new("broken in v1").into());
        }
        Ok(seen.join(","))
    }
}

/// Records the version under the id and the step's name, and returns it.
async fn noted(id: &str, step: &str) -> HandlerResult<String> {
    record(&format!("{id}-{step}"), VERSION.clone()).await?;
    Ok(VERSION.clone())
}
