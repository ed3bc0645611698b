"""The payloads; see the contract package, which has the same names.

A missing field is the same as its zero value, so read fields with get.
"""

from typing import Any, TypedDict


class Message(TypedDict, total=False):
    text: str
    number: int
    tags: dict[str, str]


class Step(TypedDict, total=False):
    id: str
    n: int
    fail: int
    code: int
    message: str
    millis: int
    gate: str
    metadata: dict[str, str]


class Failure(TypedDict, total=False):
    code: int
    message: str
    metadata: dict[str, str]


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
    headers: dict[str, str]


class Race(TypedDict, total=False):
    millis: list[int]


class Timeout(TypedDict, total=False):
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


class Outcome(TypedDict, total=False):
    value: str
    code: int
    message: str
    index: int
    of: list["Outcome"]


class Await(TypedDict, total=False):
    id: str
    n: int


class Completion(TypedDict, total=False):
    awakeable: str
    promise: str
    value: str
    reject: str


class Delegate(TypedDict, total=False):
    holder: str
    key: str


class Flow(TypedDict, total=False):
    id: str
    promises: list[str]
    text: str


class Wait(TypedDict, total=False):
    id: str
    names: list[str]


class Signal(TypedDict, total=False):
    invocation: str
    name: str
    value: str
    reject: str


# One of its names is a keyword.
Block = TypedDict("Block", {"id": str, "in": str, "child": str, "catch": bool}, total=False)


class Tree(TypedDict, total=False):
    id: str
    depth: int
    width: int
    send: bool


class Drift(TypedDict, total=False):
    id: str
    first: str
    second: str
    heal: int


class Say(TypedDict, total=False):
    value: str
    id: str
    gate: str
    millis: int
    code: int
    message: str


class Versions(TypedDict):
    before: str
    after: str


class Command(TypedDict, total=False):
    do: str
    name: str
    value: str
    millis: int
    code: int
    message: str
    call: Call
    of: list["Command"]


class Program(TypedDict, total=False):
    id: str
    commands: list[Command]
