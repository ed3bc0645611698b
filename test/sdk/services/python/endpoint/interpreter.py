"""Carries out a program, command by command, with the SDK's own futures.

The SDK combines futures of its own only, so combinators cannot be nested.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

import restate
from restate import RestateDurableFuture, TerminalError

from .caller import start
from .contract import Command, Outcome, Program
from .effects import publish
from .options import STATE_PRELOAD
from .results import outcome, terminal
from .serde import JSON

interpreter = restate.VirtualObject("PyInterpreter", state_preload=STATE_PRELOAD)


class One(NamedTuple):
    """A future, and how to tell its value."""

    future: RestateDurableFuture
    text: Callable[[object], str] = lambda value: str(value)

    async def wait(self) -> Outcome:
        async def value() -> str:
            return self.text(await self.future)

        return await outcome(value())


class Several(NamedTuple):
    """Futures to be awaited by a combinator."""

    combine: Callable[[list[One]], Awaitable[Outcome]]
    parts: list[One]

    async def wait(self) -> Outcome:
        return await self.combine(self.parts)


async def every(parts: list[One]) -> list[Outcome]:
    """Returns the outcomes of futures, in their order."""
    return [await part.wait() for part in parts]


async def settled(parts: list[One]) -> Outcome:
    await restate.gather(*(part.future for part in parts))
    return Outcome(of=await every(parts))


async def all_succeeded(parts: list[One]) -> Outcome:
    async for _, result in as_they_end(parts):
        if result.code:
            return result
    return Outcome(of=await every(parts))


async def any_succeeded(parts: list[One]) -> Outcome:
    async for i, result in as_they_end(parts):
        if not result.code:
            return Outcome(index=i, of=[result])
    return Outcome(code=500, message="all have failed", of=await every(parts))


async def first(parts: list[One]) -> Outcome:
    async for i, result in as_they_end(parts):
        return Outcome(index=i, of=[result])
    raise TerminalError("the first of nothing", 400)


async def as_they_end(parts: list[One]):
    """Yields the index and the outcome of each, in the order in which they end."""
    index = {part.future: i for i, part in enumerate(parts)}
    async for future in restate.as_completed(*index):
        i = index[future]
        yield i, await parts[i].wait()


COMBINATORS = {"all": all_succeeded, "settled": settled, "any": any_succeeded, "first": first}


class Run:
    """One run of a program."""

    def __init__(self, ctx: restate.ObjectContext, id: str):
        self.ctx = ctx
        self.id = id
        self.kept: dict[str, One | Several] = {}

    async def carry_out(self, command: Command) -> Outcome:
        """Carries out one command and waits for what it makes, if anything."""
        ctx, name = self.ctx, command.name
        match command.do:
            case "start":
                self.kept[name] = await self.begin(command.of[0])
            case "await":
                return await (await self.begin(command.of[0])).wait()
            case "id":
                await publish(ctx, f"{self.id}-{name}", ctx.request().id, step="id")
            case "set":
                ctx.set(name, command.value)
            case "get":
                value = await ctx.get(name, type_hint=str)
                return Outcome() if value is None else Outcome(value=value)
            case "fail":
                raise terminal(command.code, command.message)
            case _:
                return await (await self.begin(command)).wait()
        return Outcome()

    async def begin(self, command: Command) -> One | Several:
        """Begins an awaitable command without waiting for it."""
        if combine := COMBINATORS.get(command.do):
            return Several(combine, [await self.part(c) for c in command.of])
        if command.do == "wait":
            return self.kept[command.name]
        return await self.one(command)

    async def part(self, command: Command) -> One:
        """Begins a command that a combinator combines."""
        begun = await self.begin(command)
        if isinstance(begun, Several):
            raise TerminalError("combinators cannot be nested", 501)
        return begun

    async def one(self, command: Command) -> One:
        """Begins a command that makes one future."""
        ctx, name = self.ctx, command.name
        match command.do:
            case "sleep":
                return One(ctx.sleep(timedelta(milliseconds=command.millis)), lambda _: "slept")
            case "run":
                return One(ctx.run_typed("run", step, restate.RunOptions(), command))
            case "awakeable":
                id, future = ctx.awakeable(type_hint=str)
                await publish(ctx, f"{self.id}-{name}", id)
                return One(future)
            case "signal":
                return One(ctx.signal(name, type_hint=str))
            case "call":
                return One(start(ctx, command.call), JSON.deserialize)
        raise TerminalError(f"{command.do} cannot be awaited", 400)


async def step(command: Command) -> str:
    """Is a step that succeeds or fails as the command says."""
    if command.code:
        raise terminal(command.code, command.message)
    return command.value


@interpreter.handler(output_serde=JSON)
async def run(ctx: restate.ObjectContext, program: Program) -> list[Outcome]:
    this = Run(ctx, program.id)
    return [await this.carry_out(command) for command in program.commands or []]
