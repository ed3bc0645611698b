"""State."""

from datetime import timedelta

import restate
from restate import TerminalError
from restate.serde import BytesSerde

from .contract import Op, OpResult, Step
from .effects import attempt
from .options import QUICK_RETRIES, STATE_PRELOAD
from .serde import JSON, Json

store = restate.VirtualObject("PyStore", state_preload=STATE_PRELOAD, invocation_retry_policy=QUICK_RETRIES)


async def read(ctx: restate.ObjectContext | restate.ObjectSharedContext, op: Op) -> OpResult:
    """Carries out one of the reading operations."""
    match op.op:
        case "get":
            value = await ctx.get(op.key)
            return OpResult() if value is None else OpResult(present=True, value=value)
        case "getBytes":
            body = await ctx.get(op.key, serde=BytesSerde())
            return OpResult() if body is None else OpResult(present=True, value=body.decode())
        case "keys":
            return OpResult(keys=sorted(await ctx.state_keys()))
    raise TerminalError(f"unknown operation {op.op}")


@store.handler(input_serde=Json(list[Op]), output_serde=JSON)
async def script(ctx: restate.ObjectContext, ops: list[Op]) -> list[OpResult]:
    results: list[OpResult] = []
    for op in ops:
        match op.op:
            case "set":
                ctx.set(op.key, op.value)
            case "setBytes":
                ctx.set(op.key, op.value.encode(), serde=BytesSerde())
            case "clear":
                ctx.clear(op.key)
            case "clearAll":
                ctx.clear_all()
            case "sleep":
                await ctx.sleep(timedelta(milliseconds=1))
            case "retry":
                await attempt(Step(id=op.key, fail=int(op.value)), "attempt")
            case "fail":
                raise TerminalError(op.value, 422)
            case _:
                results.append(await read(ctx, op))
    return results


@store.handler(kind="shared")
async def peek(ctx: restate.ObjectSharedContext, key: str) -> OpResult:
    return await read(ctx, Op(op="get", key=key))
