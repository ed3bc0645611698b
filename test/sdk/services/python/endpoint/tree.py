"""A tree of invocations whose leaves wait for ever."""

import restate
from restate import TerminalError

from .contract import Tree
from .effects import publish
from .options import STATE_PRELOAD
from .recorder import record

tree = restate.VirtualObject("PyTree", state_preload=STATE_PRELOAD)


@tree.handler()
async def grow(ctx: restate.ObjectContext, what: Tree) -> None:
    await record(what.id, ctx.key())
    try:
        await wait_for_children(ctx, what)
    except TerminalError:
        await publish(ctx, what.id + "-ended", ctx.key())
        raise


async def wait_for_children(ctx: restate.ObjectContext, what: Tree) -> None:
    """Starts the children, if any, and waits for ever or until they have ended."""
    child = Tree(id=what.id, depth=what.depth - 1, width=what.width, send=what.send)
    keys = [f"{ctx.key()}.{i}" for i in range(what.width)] if what.depth > 0 else []
    if what.depth > 0 and not what.send:
        for call in [ctx.object_call(grow, key, child) for key in keys]:
            await call
        return
    for key in keys:
        ctx.object_send(grow, key, child)
    await ctx.awakeable()[1]


@tree.handler()
async def ping(_ctx: restate.ObjectContext) -> str:
    return "pong"
