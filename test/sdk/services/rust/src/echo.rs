//! Inputs and outputs: JSON, bytes, none, headers.

use restate_sdk::prelude::*;

use crate::contract::Message;

pub struct Echo;

#[restate_sdk::service(name = "RustEcho")]
impl Echo {
    #[handler]
    async fn json(&self, _ctx: Context<'_>, input: Json<Message>) -> HandlerResult<Json<Message>> {
        Ok(input)
    }

    #[handler]
    async fn bytes(&self, _ctx: Context<'_>, input: Vec<u8>) -> HandlerResult<Vec<u8>> {
        Ok(input)
    }

    #[handler]
    async fn nothing(&self, _ctx: Context<'_>) -> HandlerResult<()> {
        Ok(())
    }

    #[handler]
    async fn header(&self, ctx: Context<'_>, name: String) -> HandlerResult<String> {
        Ok(ctx.headers().get(name).cloned().unwrap_or_default())
    }
}
