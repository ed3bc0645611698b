"""Inputs and outputs: JSON, bytes, none, headers."""

import restate
from restate.serde import BytesSerde

from .contract import Message

echo = restate.Service("PyEcho")


@echo.handler("json")
async def echo_json(_ctx: restate.Context, message: Message) -> Message:
    return message


@echo.handler(
    "bytes",
    accept="*/*",
    content_type="application/octet-stream",
    input_serde=BytesSerde(),
    output_serde=BytesSerde(),
)
async def echo_bytes(_ctx: restate.Context, body: bytes) -> bytes:
    return body


@echo.handler()
async def nothing(_ctx: restate.Context) -> None:
    pass


@echo.handler()
async def header(ctx: restate.Context, name: str) -> str:
    for key, value in ctx.request().headers.items():
        if key.lower() == name.lower():
            return value
    return ""
