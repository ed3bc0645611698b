"""Named signals to an invocation."""

import restate

from .contract import Outcome, Signal, Wait
from .effects import publish
from .results import outcome

signals = restate.Service("PySignals")


@signals.handler("await")
async def await_all(ctx: restate.Context, what: Wait) -> list[Outcome]:
    await publish(ctx, what["id"], ctx.request().id)
    return [await outcome(ctx.signal(name, type_hint=str)) for name in what.get("names") or []]


@signals.handler()
async def send(ctx: restate.Context, signal: Signal) -> None:
    if message := signal.get("reject"):
        ctx.reject_signal(signal["invocation"], signal["name"], message)
    else:
        ctx.resolve_signal(signal["invocation"], signal["name"], signal.get("value", ""))
