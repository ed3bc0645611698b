"""The payloads; see the contract package, which has the same names."""

from typing import Any, TypedDict


class Message(TypedDict):
    text: str
    number: int
    tags: dict[str, str] | None


class Step(TypedDict, total=False):
    id: str
    n: int
    fail: int
    code: int
    message: str
    millis: int
    gate: str


class Failure(TypedDict):
    code: int
    message: str


class Random(TypedDict):
    number: float
    uuid: str


class Call(TypedDict, total=False):
    service: str
    key: str
    handler: str
    input: Any
    delayMillis: int
    idempotencyKey: str


class Race(TypedDict):
    millis: list[int]


class Timeout(TypedDict):
    call: Call
    millis: int


class Op(TypedDict, total=False):
    op: str
    key: str
    value: str


class OpResult(TypedDict, total=False):
    present: bool
    value: str
    keys: list[str]
