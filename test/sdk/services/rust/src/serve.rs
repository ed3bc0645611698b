//! Serves an endpoint in request-response mode, which the SDK's own server does
//! not announce. HTTP/1.1 and HTTP/2 are both understood.

use std::convert::Infallible;
use std::future::ready;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use restate_sdk::prelude::*;
use tokio::net::TcpListener;

/// Accepts connections until accepting fails.
pub async fn request_response(endpoint: Endpoint, listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let options = HandleOptions { protocol_mode: ProtocolMode::RequestResponse };
                ready(Ok::<_, Infallible>(endpoint.handle_with_options(request, options)))
            });
            // A connection that breaks is the server's to notice and retry.
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
