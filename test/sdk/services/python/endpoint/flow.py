"""A workflow and its durable promises."""

import restate
from restate import TerminalError

from .contract import Completion, Failure, Flow, OpResult, Outcome
from .effects import publish
from .options import STATE_PRELOAD
from .results import failure

flow = restate.Workflow("PyFlow", state_preload=STATE_PRELOAD)


@flow.main()
async def run(ctx: restate.WorkflowContext, what: Flow) -> list[str]:
    await publish(ctx, what.id, "run")
    ctx.set("text", what.text)
    values: list[str] = []
    for name in what.promises or []:
        values.append(await ctx.promise(name, type_hint=str))
        ctx.set("got", len(values))
    return values


@flow.handler("await")
async def await_promise(ctx: restate.WorkflowSharedContext, name: str) -> str:
    return await ctx.promise(name, type_hint=str)


@flow.handler()
async def peek(ctx: restate.WorkflowSharedContext, name: str) -> Outcome:
    try:
        value = await ctx.promise(name, type_hint=str).peek()
    except TerminalError as error:
        return Outcome(index=1, code=error.status_code, message=error.message)
    return Outcome() if value is None else Outcome(index=1, value=value)


@flow.handler()
async def complete(ctx: restate.WorkflowSharedContext, how: Completion) -> Failure:
    promise = ctx.promise(how.promise, type_hint=str)
    if how.reject:
        return await failure(promise.reject(how.reject))
    return await failure(promise.resolve(how.value))


@flow.handler()
async def text(ctx: restate.WorkflowSharedContext) -> OpResult:
    value = await ctx.get("text", type_hint=str)
    return OpResult() if value is None else OpResult(present=True, value=value)
