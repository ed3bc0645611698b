"""Terminal errors as payloads."""

from restate import TerminalError

from .contract import Failure


def caught(error: TerminalError) -> Failure:
    """Describes a terminal error that a handler handles itself."""
    return {"code": error.status_code, "message": error.message}


def no_failure() -> Failure:
    """Describes that there was none."""
    return {"code": 0, "message": ""}
