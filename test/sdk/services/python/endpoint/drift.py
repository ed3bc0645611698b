"""Does something else on some attempts, which the server must notice."""

from datetime import timedelta

import restate
from restate import TerminalError

from .contract import Drift, Say
from .options import QUICK, STATE_PRELOAD
from .recorder import record
from .utils import say

drift = restate.VirtualObject(
    "PyDrift",
    state_preload=STATE_PRELOAD,
    invocation_retry_policy=restate.InvocationRetryPolicy(initial_interval=QUICK, exponentiation_factor=1.0),
)


@drift.handler()
async def run(ctx: restate.ObjectContext, what: Drift) -> int:
    m = await record(what.id, "attempt")
    await do(ctx, what.first if m == 1 or m >= what.heal else what.second)
    if m < what.heal:
        raise RuntimeError(f"attempt {m} is meant to fail")
    return m


async def do(ctx: restate.ObjectContext, what: str) -> None:
    """Does one thing that leaves an entry in the journal."""
    match what:
        case "sleep":
            await ctx.sleep(timedelta(milliseconds=1))
        case "run" | "other":
            await ctx.run_typed(what, nothing)
        case "set":
            ctx.set("k", "v")
        case "get":
            await ctx.get("k")
        case "call":
            await ctx.service_call(say, Say(value="x"))
        case _:
            raise TerminalError(f"unknown thing to do {what}")


async def nothing() -> None:
    """Is a step without an effect."""
