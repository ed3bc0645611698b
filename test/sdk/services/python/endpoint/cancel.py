"""Waits in every way until it is cancelled."""

from datetime import timedelta
from typing import Any

import restate
from restate import RunOptions, SendHandle, TerminalError

from .contract import Block, Failure
from .effects import publish
from .options import QUICK, STATE_PRELOAD
from .recorder import record
from .results import caught

cancel = restate.VirtualObject("PyCancel", state_preload=STATE_PRELOAD)

HOUR = timedelta(hours=1)


@cancel.handler()
async def block(ctx: restate.ObjectContext, what: Block) -> Failure:
    await record(what.id, "blocked")
    try:
        await wait_in(ctx, what)
    except TerminalError as error:
        await publish(ctx, what.id + "-undone", str(error.status_code), step="undo")
        if what.catch:
            return caught(error)
        raise
    return Failure()


async def wait_in(ctx: restate.ObjectContext, what: Block) -> None:
    """Waits as the input says, which only a cancellation ends."""
    match what.way:
        case "sleep":
            await ctx.sleep(HOUR)
        case "awakeable":
            await ctx.awakeable()[1]
        case "call":
            await call_child(ctx, what)
        case "attach":
            await ctx.attach_invocation(await send_to_child(ctx, what).invocation_id())
        case "send":
            send_to_child(ctx, what)
            await ctx.sleep(HOUR)
        case "combined":
            await restate.select(sleep=ctx.sleep(HOUR), awakeable=ctx.awakeable()[1], call=call_child(ctx, what))
        case "run":
            options: RunOptions[None] = RunOptions(
                initial_retry_interval=QUICK, max_retry_interval=timedelta(seconds=1)
            )
            await ctx.run_typed("never", never, options, what.id + "-try")
        case way:
            raise TerminalError(f"unknown way to wait {way}")


async def never(name: str) -> None:
    """Is a step that always fails."""
    await record(name, "try")
    raise RuntimeError("this try is meant to fail")


def child_input(what: Block) -> Block:
    """Returns what a child is asked to do."""
    return Block(id=what.id + "-child", way="awakeable")


def call_child(ctx: restate.ObjectContext, what: Block) -> restate.RestateDurableCallFuture[Any]:
    """Calls the child without waiting for it."""
    return ctx.object_call(block, what.child, child_input(what))


def send_to_child(ctx: restate.ObjectContext, what: Block) -> SendHandle:
    """Calls the child one-way."""
    return ctx.object_send(block, what.child, child_input(what))


@cancel.handler()
async def ping(_ctx: restate.ObjectContext) -> str:
    return "pong"
