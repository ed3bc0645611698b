//! The test service endpoint written with the Rust SDK. It listens on the port in
//! `PORT` and reports side effects to the recorder at `RECORDER`.
//!
//! `LAZY_STATE=1` announces lazy state for its objects, `BIDI=0` announces
//! request-response mode.

mod caller;
mod contract;
mod echo;
mod objects;
mod raw;
mod recorder;
mod serve;
mod steps;

use std::env::var;
use std::error::Error;

use restate_sdk::prelude::*;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = var("PORT")?.parse()?;
    let endpoint = Endpoint::builder()
        .bind(echo::Echo)
        .bind(steps::Steps)
        .bind(caller::Caller)
        .bind(object(objects::Store))
        .bind(object(objects::Queue))
        .build();

    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    if var("BIDI").is_ok_and(|v| v == "0") {
        serve::request_response(endpoint, listener).await?;
    } else {
        HttpServer::new(endpoint).serve(listener).await;
    }
    Ok(())
}

/// Sets the options that all services with state share.
fn object(service: impl IntoServiceDefinition) -> ServiceDefinition {
    let lazy = var("LAZY_STATE").is_ok_and(|v| v == "1");
    let options = ServiceOptions::new().enable_lazy_state(lazy);
    service.into_service_definition().options(options)
}
