"""Calls, sends, waiting for several things at once, and other invocations."""

from datetime import timedelta
from typing import Any

import restate
from restate import RestateDurableCallFuture
from restate.serde import BytesSerde

from .contract import Call, Failure, Race, Timeout
from .results import failure
from .serde import JSON, Json

caller = restate.Service("PyCaller")

CALLS = Json(list[Call])


def parameters(call: Call) -> dict[str, Any]:
    """Returns what generic_call and generic_send want to know."""
    return {
        "service": call.service,
        "key": call.key or None,
        "handler": call.handler,
        "arg": bytes(call.input),
        "idempotency_key": call.idempotency_key or None,
        "headers": call.headers or None,
    }


def start(ctx: restate.Context, call: Call) -> RestateDurableCallFuture[bytes]:
    """Calls without waiting for the answer."""
    return ctx.generic_call(**parameters(call))


@caller.handler("call", output_serde=BytesSerde())
async def call_one(ctx: restate.Context, call: Call) -> bytes:
    return await start(ctx, call)


@caller.handler()
async def send(ctx: restate.Context, call: Call) -> str:
    delay = timedelta(milliseconds=call.delay_millis)
    return await ctx.generic_send(**parameters(call), send_delay=delay).invocation_id()


@caller.handler()
async def catch(ctx: restate.Context, call: Call) -> Failure:
    return await failure(start(ctx, call))


@caller.handler(input_serde=CALLS, output_serde=JSON)
async def fanout(ctx: restate.Context, calls: list[Call]) -> list[Any]:
    futures = [start(ctx, call) for call in calls]
    await restate.gather(*futures)
    return [JSON.deserialize(await future) for future in futures]


@caller.handler(input_serde=CALLS, output_serde=JSON)
async def settle(ctx: restate.Context, calls: list[Call]) -> list[Failure]:
    futures = [start(ctx, call) for call in calls]
    await restate.gather(*futures)
    return [await failure(future) for future in futures]


@caller.handler()
async def race(ctx: restate.Context, what: Race) -> int:
    sleeps = {str(i): ctx.sleep(timedelta(milliseconds=ms)) for i, ms in enumerate(what.millis or [])}
    first, _ = await restate.select(**sleeps)
    return int(first)


@caller.handler()
async def timeout(ctx: restate.Context, what: Timeout) -> bool:
    answer = start(ctx, what.call)
    limit = ctx.sleep(timedelta(milliseconds=what.millis))
    first, _ = await restate.select(answer=answer, limit=limit)
    return first == "answer"


@caller.handler()
async def cancel(ctx: restate.Context, invocation: str) -> None:
    ctx.cancel_invocation(invocation)


@caller.handler(output_serde=BytesSerde())
async def attach(ctx: restate.Context, invocation: str) -> bytes:
    return await ctx.attach_invocation(invocation, BytesSerde())


@caller.handler("catchAttach")
async def catch_attach(ctx: restate.Context, invocation: str) -> Failure:
    return await failure(ctx.attach_invocation(invocation, BytesSerde()))
