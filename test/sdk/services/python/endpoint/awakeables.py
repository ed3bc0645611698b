"""Awakeables, completed by the test, by a service or by a holder."""

import restate

from .contract import Await, Completion, Delegate, Outcome
from .effects import publish
from .results import outcome
from .serde import JSON

awakeables = restate.Service("PyAwakeables")


def settle(ctx: restate.Context, awakeable: str, how: Completion) -> None:
    """Resolves or rejects an awakeable."""
    if how.reject:
        ctx.reject_awakeable(awakeable, how.reject)
    else:
        ctx.resolve_awakeable(awakeable, how.value)


@awakeables.handler("await", output_serde=JSON)
async def await_all(ctx: restate.Context, what: Await) -> list[Outcome]:
    created = [ctx.awakeable(type_hint=str) for _ in range(what.n)]
    await publish(ctx, what.id, *(name for name, _ in created))
    return [await outcome(future) for _, future in created]


@awakeables.handler()
async def complete(ctx: restate.Context, how: Completion) -> None:
    settle(ctx, how.awakeable, how)


@awakeables.handler()
async def delegate(ctx: restate.Context, to: Delegate) -> str:
    name, future = ctx.awakeable(type_hint=str)
    await ctx.generic_call(to.holder, "hold", JSON.serialize(name), key=to.key)
    return await future
