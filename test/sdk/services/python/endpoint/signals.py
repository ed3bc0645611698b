"""Named signals to an invocation."""

import restate

from .contract import Outcome, Signal, Wait
from .effects import publish
from .results import outcome
from .serde import JSON

signals = restate.Service("PySignals")


@signals.handler("await", output_serde=JSON)
async def await_all(ctx: restate.Context, what: Wait) -> list[Outcome]:
    if what.id:
        await publish(ctx, what.id, ctx.request().id)
    return [await outcome(ctx.signal(name, type_hint=str)) for name in what.names or []]


@signals.handler()
async def send(ctx: restate.Context, signal: Signal) -> None:
    if signal.reject:
        ctx.reject_signal(signal.invocation, signal.name, signal.reject)
    else:
        ctx.resolve_signal(signal.invocation, signal.name, signal.value)
