//! What a program has begun and may await: one future of the SDK, or a combinator
//! of several.

use std::pin::Pin;
use std::time::Duration;

use restate_sdk::context::DurableFuture;
use restate_sdk::prelude::*;

use crate::awaits::{Command, Outcome};
use crate::caller::request;
use crate::interpreter::Kept;
use crate::recorder::note;

type Future<'ctx> = Pin<Box<dyn DurableFuture<Output = Result<String, TerminalError>> + Send + 'ctx>>;

/// One awaitable.
pub enum Leaf<'ctx> {
    /// A step, which this SDK runs only while it is awaited, so it has ended.
    Ended(Result<String, TerminalError>),
    Future(Future<'ctx>),
}

/// What can be awaited for its outcome.
pub enum Pending<'ctx> {
    One(Leaf<'ctx>),
    Several(Combinator, Vec<Leaf<'ctx>>),
}

/// How the outcomes of several become one.
#[derive(Clone, Copy)]
pub enum Combinator {
    All,
    Settled,
    Any,
    First,
}

/// Begins an awaitable command, or takes what was begun before.
pub async fn begin<'ctx>(
    ctx: &ObjectContext<'ctx>,
    id: &str,
    command: Command,
    kept: &mut Kept<'ctx>,
) -> Result<Pending<'ctx>, TerminalError> {
    let combinator = match command.what.as_str() {
        "all" => Combinator::All,
        "settled" => Combinator::Settled,
        "any" => Combinator::Any,
        "first" => Combinator::First,
        "wait" => return take(&command.name, kept),
        _ => return Ok(Pending::One(leaf(ctx, id, command).await?)),
    };
    let mut leaves = Vec::with_capacity(command.of.len());
    for part in command.of {
        leaves.push(match part.what.as_str() {
            "wait" => match take(&part.name, kept)? {
                Pending::One(leaf) => leaf,
                Pending::Several(..) => return Err(nested()),
            },
            "all" | "settled" | "any" | "first" => return Err(nested()),
            _ => leaf(ctx, id, part).await?,
        });
    }
    Ok(Pending::Several(combinator, leaves))
}

fn take<'ctx>(name: &str, kept: &mut Kept<'ctx>) -> Result<Pending<'ctx>, TerminalError> {
    kept.remove(name).ok_or_else(|| TerminalError::new(format!("nothing is kept under {name:?}")))
}

/// The SDK combines futures that stand for one entry of the journal only.
fn nested() -> TerminalError {
    TerminalError::new_with_code(501, "combinators cannot be nested")
}

async fn leaf<'ctx>(ctx: &ObjectContext<'ctx>, id: &str, command: Command) -> Result<Leaf<'ctx>, TerminalError> {
    Ok(Leaf::Future(match command.what.as_str() {
        "sleep" => {
            let sleep = ctx.sleep(Duration::from_millis(command.millis));
            Box::pin(sleep.map_ok(|()| "slept".to_owned()))
        }
        "run" => return Ok(Leaf::Ended(ctx.run(|| step(command)).name("run").await)),
        "awakeable" => {
            let (awakeable, future) = ctx.awakeable::<String>();
            let name = format!("{id}-{}", command.name);
            ctx.run(|| note(&name, awakeable)).name("publish").await?;
            Box::pin(future)
        }
        "signal" => Box::pin(ctx.signal::<String>(&command.name)),
        "call" => Box::pin(request::<String>(ctx, command.call.unwrap_or_default()).call()),
        unknown => return Err(TerminalError::new_with_code(501, format!("unknown command {unknown:?}"))),
    }))
}

async fn step(command: Command) -> HandlerResult<String> {
    if command.code != 0 {
        return Err(TerminalError::new_with_code(command.code, command.message).into());
    }
    Ok(command.value)
}

impl Pending<'_> {
    /// Waits for the outcome.
    pub async fn end(self) -> Result<Outcome, TerminalError> {
        match self {
            Self::One(Leaf::Ended(result)) => Ok(result.into()),
            Self::One(Leaf::Future(future)) => Ok(future.await.into()),
            Self::Several(combinator, leaves) => combine(combinator, leaves).await,
        }
    }
}

/// Takes the outcomes in the order they come until the combinator has its own.
async fn combine(combinator: Combinator, leaves: Vec<Leaf<'_>>) -> Result<Outcome, TerminalError> {
    let mut outcomes: Vec<Option<Outcome>> = leaves.iter().map(|_| None).collect();
    let mut ended = Vec::new(); // to be taken before any future
    let mut places = Vec::new(); // of the futures
    let mut futures = DurableFuturesUnordered::new();
    for (i, leaf) in leaves.into_iter().enumerate() {
        match leaf {
            Leaf::Ended(result) => ended.push((i, result)),
            Leaf::Future(future) => {
                futures.push(future);
                places.push(i);
            }
        }
    }
    let mut ended = ended.into_iter();
    loop {
        let (i, result) = match ended.next() {
            Some(next) => next,
            None => match futures.next().await? {
                Some((i, result)) => (places[i], result),
                None => break,
            },
        };
        let outcome = Outcome::from(result);
        match combinator {
            Combinator::All if outcome.failed() => return Ok(outcome),
            Combinator::Any if !outcome.failed() => return Ok(Outcome::one(i, outcome)),
            Combinator::First => return Ok(Outcome::one(i, outcome)),
            _ => outcomes[i] = Some(outcome),
        }
    }
    let of = outcomes.into_iter().map(Option::unwrap_or_default).collect();
    Ok(match combinator {
        Combinator::Any => Outcome { code: 500, message: "all have failed".to_owned(), of, ..Outcome::default() },
        _ => Outcome { of, ..Outcome::default() },
    })
}
