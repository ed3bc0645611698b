//! Calls, sends and waiting for several things at once.

use std::time::Duration;

use restate_sdk::context::RequestTarget;
use restate_sdk::prelude::*;
use serde_json::value::RawValue;

use crate::contract::{Call, Failure, Race, Timeout};
use crate::raw::Raw;
use crate::steps::caught;

pub struct Caller;

#[restate_sdk::service(name = "RustCaller")]
impl Caller {
    /// Returns what the callee returned.
    #[handler]
    async fn call(&self, ctx: Context<'_>, Json(input): Json<Call>) -> HandlerResult<Raw> {
        Ok(request::<Raw>(&ctx, input).call().await?)
    }

    /// Invokes one-way and returns the id of the invocation.
    #[handler]
    async fn send(&self, ctx: Context<'_>, Json(input): Json<Call>) -> HandlerResult<String> {
        let delay = input.delay_millis;
        let request = request::<()>(&ctx, input);
        let sent = if delay > 0 { request.send_after(Duration::from_millis(delay)) } else { request.send() };
        Ok(sent.await?.invocation_id().to_owned())
    }

    /// Calls and returns the callee's terminal error.
    #[handler]
    async fn catch(&self, ctx: Context<'_>, Json(input): Json<Call>) -> HandlerResult<Json<Failure>> {
        Ok(Json(caught(request::<Raw>(&ctx, input).call().await)))
    }

    /// Makes all calls at once and returns all answers, in the order of calls.
    #[handler]
    async fn fanout(&self, ctx: Context<'_>, Json(input): Json<Vec<Call>>) -> HandlerResult<Json<Vec<Box<RawValue>>>> {
        let calls: Vec<_> = input.into_iter().map(|c| request::<Raw>(&ctx, c).call()).collect();
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            answers.push(call.await?.into_json()?);
        }
        Ok(Json(answers))
    }

    /// Makes all calls at once, takes the answers in the order they come and
    /// returns the failures of those that failed, in the order of calls.
    #[handler]
    async fn settle(&self, ctx: Context<'_>, Json(input): Json<Vec<Call>>) -> HandlerResult<Json<Vec<Failure>>> {
        let mut failures: Vec<_> = input.iter().map(|_| Failure::default()).collect();
        let mut calls: DurableFuturesUnordered<_> = input.into_iter().map(|c| request::<Raw>(&ctx, c).call()).collect();
        while let Some((i, answer)) = calls.next().await? {
            failures[i] = caught(answer);
        }
        Ok(Json(failures))
    }

    /// Sleeps several times at once and returns the index of the first to end.
    #[handler]
    async fn race(&self, ctx: Context<'_>, Json(input): Json<Race>) -> HandlerResult<u64> {
        let sleeps = input.millis.iter().map(|ms| ctx.sleep(Duration::from_millis(*ms)));
        let mut sleeps: DurableFuturesUnordered<_> = sleeps.collect();
        match sleeps.next().await? {
            Some((first, slept)) => slept.map(|()| first as u64).map_err(Into::into),
            None => Err(TerminalError::new("nothing to wait for").into()),
        }
    }

    /// Waits for a call for a limited time and tells whether it was in time.
    #[handler]
    async fn timeout(&self, ctx: Context<'_>, Json(input): Json<Timeout>) -> HandlerResult<bool> {
        let answer = request::<Raw>(&ctx, input.call).call();
        let limit = ctx.sleep(Duration::from_millis(input.millis));
        restate_sdk::select! {
            answered = answer => { answered?; Ok(true) },
            slept = limit => { slept?; Ok(false) },
        }
    }

    /// Cancels the invocation of this id.
    #[handler]
    async fn cancel(&self, ctx: Context<'_>, id: String) -> HandlerResult<()> {
        ctx.invocation_handle(id).cancel();
        Ok(())
    }

    /// Returns the result of the invocation of this id.
    #[handler]
    async fn attach(&self, ctx: Context<'_>, id: String) -> HandlerResult<Raw> {
        Ok(ctx.invocation_handle(id).attach().await?)
    }

    /// Attaches to the invocation of this id and returns its terminal error.
    #[handler(name = "catchAttach")]
    async fn catch_attach(&self, ctx: Context<'_>, id: String) -> HandlerResult<Json<Failure>> {
        Ok(Json(caught(ctx.invocation_handle(id).attach::<Raw>().await)))
    }
}

/// Addresses the handler that the input names.
pub fn request<'ctx, Res>(ctx: &impl ContextClient<'ctx>, input: Call) -> Request<'ctx, Raw, Res> {
    let target = if input.key.is_empty() {
        RequestTarget::service(input.service, input.handler)
    } else {
        RequestTarget::object(input.service, input.key, input.handler)
    };
    let mut request = ctx.request(target, Raw::from(input.input));
    for (name, value) in input.headers {
        request = request.header(name, value);
    }
    if input.idempotency_key.is_empty() {
        return request;
    }
    request.idempotency_key(input.idempotency_key)
}
