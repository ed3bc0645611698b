"""What becomes of an invocation whose attempts are used up."""

from typing import Literal

import restate

from .contract import Step
from .effects import attempt
from .options import QUICK


def policy(then: Literal["kill", "pause"]) -> restate.InvocationRetryPolicy:
    """Allows three attempts."""
    return restate.InvocationRetryPolicy(initial_interval=QUICK, max_attempts=3, on_max_attempts=then)


killed = restate.Service("PyKilled", invocation_retry_policy=policy("kill"))
paused = restate.Service("PyPaused", invocation_retry_policy=policy("pause"))


@killed.handler("work")
async def work_or_be_killed(_ctx: restate.Context, step: Step) -> int:
    return await attempt(step, "attempt")


@paused.handler("work")
async def work_or_be_paused(_ctx: restate.Context, step: Step) -> int:
    return await attempt(step, "attempt")
