"""Tells which version of the code runs, before and after a wait."""

import restate

from .contract import Step, Versions
from .effects import publish
from .options import STATE_PRELOAD, VERSION
from .recorder import record
from .results import terminal

versioned = restate.VirtualObject("PyVersioned", state_preload=STATE_PRELOAD)


async def recorded_version(name: str) -> str:
    """Is a step that records the version and gives it."""
    await record(name, VERSION)
    return VERSION


@versioned.handler(kind="shared")
async def version(_ctx: restate.ObjectSharedContext) -> str:
    return VERSION


@versioned.handler()
async def work(ctx: restate.ObjectContext, step: Step) -> Versions:
    before = await ctx.run_typed("before", recorded_version, restate.RunOptions(), step.id + "-before")
    name, awakeable = ctx.awakeable()
    await publish(ctx, step.id, name)
    await awakeable
    return Versions(before=before, after=VERSION)


@versioned.handler()
async def chain(ctx: restate.ObjectContext, step: Step) -> str:
    results = [
        await ctx.run_typed(name, recorded_version, restate.RunOptions(), f"{step.id}-{name}")
        for name in ("a", "b", "c")
    ]
    if VERSION == "v1" and step.fail:
        raise terminal(500, "broken in v1")
    return ",".join(results)
