"""Steps that report themselves, and attempts that are meant to fail."""

import restate

from .contract import Step
from .recorder import record, wait


async def attempt(step: Step, value: str) -> int:
    """Records an attempt, or a try of a step, and fails the first few."""
    n = await record(step.id, value)
    if n <= step.fail:
        raise RuntimeError(f"attempt {n} is meant to fail")
    return n


async def run_once(ctx: restate.Context, step: Step) -> int:
    """Runs one recorded step, behind a gate if asked, and returns its ordinal."""

    async def action() -> int:
        n = await record(step.id, "step")
        await wait(step.gate)
        return n

    return await ctx.run_typed("once", action)


async def publish(ctx: restate.Context, name: str, *values: str, step: str = "publish") -> None:
    """Records values, such as ids that the test needs, in one step."""

    async def action() -> None:
        for value in values:
            await record(name, value)

    await ctx.run_typed(step, action)
