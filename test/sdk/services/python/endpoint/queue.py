"""The order of exclusive handlers, and shared ones beside them."""

from datetime import timedelta

import restate

from .contract import Step
from .effects import run_once
from .options import STATE_PRELOAD

queue = restate.VirtualObject("PyQueue", state_preload=STATE_PRELOAD)


@queue.handler()
async def hold(ctx: restate.ObjectContext, step: Step) -> int:
    return await run_once(ctx, step)


@queue.handler()
async def append(ctx: restate.ObjectContext, value: str) -> int:
    values: list[str] = await ctx.get("values") or []
    await ctx.sleep(timedelta(milliseconds=1))
    values.append(value)
    ctx.set("values", values)
    return len(values)


@queue.handler("list", kind="shared")
async def list_values(ctx: restate.ObjectSharedContext) -> list[str]:
    return await ctx.get("values") or []
