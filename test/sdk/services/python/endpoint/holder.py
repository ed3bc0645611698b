"""Keeps the id of an awakeable until somebody completes it."""

import restate
from restate import TerminalError

from .awakeables import settle
from .contract import Completion
from .options import STATE_PRELOAD

holder = restate.VirtualObject("PyHolder", state_preload=STATE_PRELOAD)


@holder.handler()
async def hold(ctx: restate.ObjectContext, awakeable: str) -> None:
    ctx.set("id", awakeable)


@holder.handler()
async def has(ctx: restate.ObjectContext) -> bool:
    return await ctx.get("id") is not None


@holder.handler()
async def complete(ctx: restate.ObjectContext, how: Completion) -> None:
    awakeable = await ctx.get("id", type_hint=str)
    if awakeable is None:
        raise TerminalError("nothing is held", 404)
    settle(ctx, awakeable, how)
    ctx.clear("id")
