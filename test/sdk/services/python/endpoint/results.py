"""Terminal errors as payloads."""

from collections.abc import Awaitable
from typing import Any

from restate import TerminalError

from .contract import Failure, Outcome


def caught(error: TerminalError) -> Failure:
    """Describes a terminal error that a handler handles itself."""
    return Failure(code=error.status_code, message=error.message, metadata=error.metadata or {})


async def failure(of: Awaitable[Any]) -> Failure:
    """Waits for something and describes how it failed, if it did."""
    try:
        await of
    except TerminalError as error:
        return caught(error)
    return Failure()


async def outcome(of: Awaitable[str]) -> Outcome:
    """Waits for something and tells its value or how it failed."""
    try:
        return Outcome(value=await of)
    except TerminalError as error:
        return Outcome(code=error.status_code, message=error.message)


def terminal(code: int, message: str, metadata: dict[str, str] | None = None) -> TerminalError:
    """Returns the terminal error that an input asks for."""
    return TerminalError(message, code or 500, metadata or None)
