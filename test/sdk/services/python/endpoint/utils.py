"""Small handlers for others to call."""

from datetime import timedelta

import restate
from restate import RunOptions

from .contract import Race, Say, Step
from .recorder import record, wait
from .results import terminal

utils = restate.Service("PyUtils")


@utils.handler()
async def say(ctx: restate.Context, what: Say) -> str:
    async def action() -> None:
        await record(what.id, what.value)
        await wait(what.gate)

    if what.millis:
        await ctx.sleep(timedelta(milliseconds=what.millis))
    if what.id:
        await ctx.run_typed("say", action)
    if what.code:
        raise terminal(what.code, what.message)
    return what.value


@utils.handler("id")
async def own_id(ctx: restate.Context) -> str:
    return ctx.request().id


@utils.handler()
async def effects(ctx: restate.Context, step: Step) -> int:
    async def action(i: int) -> int:
        await record(step.id, str(i))
        return 1

    futures = [ctx.run_typed("one", action, RunOptions(), i) for i in range(step.n)]
    await restate.gather(*futures)
    return sum([await future for future in futures])


@utils.handler()
async def sleeps(ctx: restate.Context, what: Race) -> int:
    futures = [ctx.sleep(timedelta(milliseconds=ms)) for ms in what.millis or []]
    await restate.gather(*futures)
    return len(futures)
