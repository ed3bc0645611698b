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
        await record(what["id"], what.get("value", ""))
        await wait(what.get("gate"))

    if millis := what.get("millis"):
        await ctx.sleep(timedelta(milliseconds=millis))
    if what.get("id"):
        await ctx.run_typed("say", action)
    if code := what.get("code"):
        raise terminal(code, what.get("message"))
    return what.get("value", "")


@utils.handler("id")
async def own_id(ctx: restate.Context) -> str:
    return ctx.request().id


@utils.handler()
async def effects(ctx: restate.Context, step: Step) -> int:
    async def action(i: int) -> int:
        await record(step["id"], str(i))
        return 1

    futures = [ctx.run_typed("one", action, RunOptions(), i) for i in range(step.get("n", 0))]
    await restate.gather(*futures)
    return sum([await future for future in futures])


@utils.handler()
async def sleeps(ctx: restate.Context, what: Race) -> int:
    futures = [ctx.sleep(timedelta(milliseconds=ms)) for ms in what.get("millis") or []]
    await restate.gather(*futures)
    return len(futures)
