"""Run, sleep, errors, retries and randomness."""

import time
from datetime import timedelta

import msgspec
import restate
from restate import RunOptions

from .contract import Failure, Random, Step
from .effects import attempt, run_once
from .options import QUICK, QUICK_RETRIES
from .recorder import record
from .results import failure, terminal

steps = restate.Service("PySteps", invocation_retry_policy=QUICK_RETRIES)


def now() -> int:
    """Returns the unix time in milliseconds."""
    return time.time_ns() // 1_000_000


@steps.handler()
async def once(ctx: restate.Context, step: Step) -> int:
    return await run_once(ctx, step)


@steps.handler()
async def many(ctx: restate.Context, step: Step) -> int:
    async def action(i: int) -> int:
        await record(step.id, str(i))
        return i

    total = 0
    for i in range(step.n):
        total += await ctx.run_typed("one", action, RunOptions(), i)
    return total


@steps.handler()
async def retry(ctx: restate.Context, step: Step) -> int:
    return await ctx.run_typed("retry", attempt, RunOptions(initial_retry_interval=QUICK), step, "try")


async def never(step: Step) -> None:
    """Is a step that always fails."""
    await record(step.id, "try")
    raise RuntimeError(step.message)


@steps.handler()
async def exhaust(ctx: restate.Context, step: Step) -> Failure:
    options: RunOptions[None] = RunOptions(initial_retry_interval=QUICK, max_attempts=step.n)
    return await failure(ctx.run_typed("exhaust", never, options, step))


@steps.handler("exhaustTime")
async def exhaust_time(ctx: restate.Context, step: Step) -> Failure:
    limit = timedelta(milliseconds=step.millis)
    options: RunOptions[None] = RunOptions(initial_retry_interval=QUICK, max_duration=limit)
    return await failure(ctx.run_typed("exhaust", never, options, step))


@steps.handler()
async def later(ctx: restate.Context, step: Step) -> int:
    async def action() -> int:
        return await attempt(step, str(now()))

    delay = timedelta(milliseconds=step.millis)
    return await ctx.run_typed("later", action, RunOptions(initial_retry_interval=delay, retry_interval_factor=1.0))


@steps.handler()
async def refuse(ctx: restate.Context, step: Step) -> Failure:
    async def action() -> None:
        await record(step.id, "try")
        raise terminal(step.code, step.message)

    return await failure(ctx.run_typed("refuse", action))


@steps.handler()
async def flaky(ctx: restate.Context, step: Step) -> int:
    await run_once(ctx, Step(id=step.id + "-step"))
    return await attempt(step, "attempt")


@steps.handler()
async def fail(_ctx: restate.Context, step: Step) -> int:
    raise terminal(step.code, step.message, step.metadata)


@steps.handler()
async def sleep(ctx: restate.Context, step: Step) -> list[int]:
    async def clock() -> int:
        at = now()
        await record(step.id, str(at))
        return at

    begin = await ctx.run_typed("from", clock)
    await record(step.id + "-kept", "attempt")
    await ctx.sleep(timedelta(milliseconds=step.millis))
    return [begin, await ctx.run_typed("to", clock)]


@steps.handler()
async def random(ctx: restate.Context, step: Step) -> Random:
    drawn = Random(number=ctx.random().random(), uuid=str(ctx.uuid()))
    await attempt(step, msgspec.json.encode(drawn).decode())
    return drawn


@steps.handler()
async def big(ctx: restate.Context, step: Step) -> str:
    async def action() -> str:
        return "x" * step.n

    return await ctx.run_typed("big", action)
