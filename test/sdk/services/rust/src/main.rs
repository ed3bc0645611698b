//! The test service endpoint written with the Rust SDK. It listens on the port in
//! `PORT` and reports side effects to the recorder at `RECORDER`.
//!
//! `LAZY_STATE=1` announces lazy state for all that have state, `BIDI=0` announces
//! request-response mode, `IDENTITY_KEY` is the only key whose requests are taken,
//! `VERSION` is what `Versioned` tells, and `VERBOSE` turns the log on.

mod awaits;
mod awakeables;
mod caller;
mod cancel;
mod contract;
mod drift;
mod echo;
mod flow;
mod interpreter;
mod limits;
mod nodes;
mod outcome;
mod queue;
mod raw;
mod recorder;
mod serve;
mod signals;
mod steps;
mod store;
mod tree;
mod utils;
mod versioned;

use std::env::var;
use std::error::Error;

use restate_sdk::prelude::*;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if var("VERBOSE").is_ok_and(|v| !v.is_empty()) {
        tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    }
    let port: u16 = var("PORT")?.parse()?;
    let endpoint = endpoint()?;

    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    if var("BIDI").is_ok_and(|v| v == "0") {
        serve::request_response(endpoint, listener).await?;
    } else {
        HttpServer::new(endpoint).serve(listener).await;
    }
    Ok(())
}

fn endpoint() -> Result<Endpoint, Box<dyn Error>> {
    let mut builder = Endpoint::builder();
    if let Ok(key) = var("IDENTITY_KEY").as_deref()
        && !key.is_empty()
    {
        builder = builder.identity_key(key)?;
    }
    let endpoint = builder
        .bind(echo::Echo)
        .bind(steps::Steps)
        .bind(caller::Caller)
        .bind(stateful(store::Store))
        .bind(stateful(queue::Queue))
        .bind(utils::Utils)
        .bind(awakeables::Awakeables)
        .bind(stateful(awakeables::Holder))
        .bind(stateful(flow::Flow))
        .bind(signals::Signals)
        .bind(stateful(cancel::Cancel))
        .bind(stateful(tree::Tree))
        .bind(stateful(drift::Drift))
        .bind(limits::Killed)
        .bind(limits::Paused)
        .bind(stateful(versioned::Versioned))
        .bind(stateful(interpreter::Interpreter))
        .build();
    Ok(endpoint)
}

/// Sets the options that all services with state share.
fn stateful(service: impl IntoServiceDefinition) -> ServiceDefinition {
    let lazy = var("LAZY_STATE").is_ok_and(|v| v == "1");
    let options = ServiceOptions::new().enable_lazy_state(lazy);
    service.into_service_definition().options(options)
}
