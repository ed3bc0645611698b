//! Tells the test of side effects and waits for it. The recorder's address is in
//! the environment variable `RECORDER`.

use std::sync::LazyLock;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use restate_sdk::prelude::HandlerResult;

static BASE: LazyLock<String> = LazyLock::new(|| std::env::var("RECORDER").unwrap_or_default());

static CLIENT: LazyLock<Client<HttpConnector, Full<Bytes>>> =
    LazyLock::new(|| Client::builder(TokioExecutor::new()).build_http());

/// Reports a side effect and returns how many were reported under this name.
pub async fn record(name: &str, value: impl Into<String>) -> HandlerResult<u64> {
    let count = ask(Method::POST, "record", name, value.into()).await?;
    Ok(count.trim().parse()?)
}

/// Reports a side effect, as a step without a result.
pub async fn note(name: impl AsRef<str>, value: impl Into<String>) -> HandlerResult<()> {
    record(name.as_ref(), value).await?;
    Ok(())
}

/// Returns when the test has opened the gate; no name means no gate.
pub async fn wait(gate: &str) -> HandlerResult<()> {
    if !gate.is_empty() {
        ask(Method::GET, "gate", gate, String::new()).await?;
    }
    Ok(())
}

async fn ask(method: Method, what: &str, name: &str, body: String) -> HandlerResult<String> {
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let request = Request::builder().method(method).uri(format!("{}/{what}/{name}", *BASE)).body(Full::from(body))?;
    let response = CLIENT.request(request).await?;
    let status = response.status();
    let text = String::from_utf8(response.into_body().collect().await?.to_bytes().to_vec())?;
    if !status.is_success() {
        return Err(format!("recorder: {status} {text}").into());
    }
    Ok(text)
}
