"""Run, sleep, errors, retries and randomness."""

import json
import time
from datetime import timedelta

import restate
from restate import RunOptions, TerminalError

from .contract import Failure, Random, Step
from .errors import caught, no_failure
from .recorder import record, wait

# The first delay of handlers and steps that are meant to fail.
QUICK = timedelta(milliseconds=10)

steps = restate.Service("PySteps", invocation_retry_policy=restate.InvocationRetryPolicy(initial_interval=QUICK))


async def run_once(ctx: restate.Context, step: Step) -> int:
    """Runs one recorded step, behind a gate if asked, and returns its ordinal."""

    async def action() -> int:
        n = await record(step["id"], "step")
        await wait(step.get("gate"))
        return n

    return await ctx.run_typed("once", action)


async def attempt(step: Step, value: str) -> int:
    """Records an attempt, or a try of a step, and fails the first few."""
    n = await record(step["id"], value)
    if n <= step.get("fail", 0):
        raise RuntimeError(f"attempt {n} is meant to fail")
    return n


@steps.handler()
async def once(ctx: restate.Context, step: Step) -> int:
    return await run_once(ctx, step)


@steps.handler()
async def many(ctx: restate.Context, step: Step) -> int:
    async def action(i: int) -> int:
        await record(step["id"], str(i))
        return i

    total = 0
    for i in range(step.get("n", 0)):
        total += await ctx.run_typed("one", action, RunOptions(), i)
    return total


@steps.handler()
async def retry(ctx: restate.Context, step: Step) -> int:
    return await ctx.run_typed("retry", attempt, RunOptions(initial_retry_interval=QUICK), step, "try")


@steps.handler()
async def exhaust(ctx: restate.Context, step: Step) -> Failure:
    async def action() -> None:
        await record(step["id"], "try")
        raise RuntimeError(step.get("message", ""))

    try:
        await ctx.run_typed("exhaust", action, RunOptions(initial_retry_interval=QUICK, max_attempts=step.get("n")))
    except TerminalError as error:
        return caught(error)
    return no_failure()


@steps.handler()
async def refuse(ctx: restate.Context, step: Step) -> Failure:
    async def action() -> None:
        await record(step["id"], "try")
        raise TerminalError(step.get("message", ""), step.get("code", 500))

    try:
        await ctx.run_typed("refuse", action)
    except TerminalError as error:
        return caught(error)
    return no_failure()


@steps.handler()
async def flaky(ctx: restate.Context, step: Step) -> int:
    await run_once(ctx, {"id": step["id"] + "-step"})
    return await attempt(step, "attempt")


@steps.handler()
async def fail(_ctx: restate.Context, step: Step) -> int:
    raise TerminalError(step.get("message", ""), step.get("code", 500))


@steps.handler()
async def sleep(ctx: restate.Context, step: Step) -> list[int]:
    async def now() -> int:
        at = time.time_ns() // 1_000_000
        await record(step["id"], str(at))
        return at

    begin = await ctx.run_typed("from", now)
    await record(step["id"] + "-kept", "attempt")
    await ctx.sleep(timedelta(milliseconds=step.get("millis", 0)))
    return [begin, await ctx.run_typed("to", now)]


@steps.handler()
async def random(ctx: restate.Context, step: Step) -> Random:
    drawn: Random = {"number": ctx.random().random(), "uuid": str(ctx.uuid())}
    await attempt(step, json.dumps(drawn))
    return drawn


@steps.handler()
async def big(ctx: restate.Context, step: Step) -> str:
    async def action() -> str:
        return "x" * step.get("n", 0)

    return await ctx.run_typed("big", action)
