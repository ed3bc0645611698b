"""The payloads; see the contract package, which has the same names.

A missing field is the same as its zero value, so every field has a default and is
left out when it has that. Go writes an empty list as null where it writes it at all.
"""

from msgspec import Raw, Struct, field


class Payload(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What all payloads have in common."""


class Message(Payload):
    text: str = ""
    number: int = 0
    tags: dict[str, str] | None = None


class Step(Payload):
    id: str = ""
    n: int = 0
    fail: int = 0
    code: int = 0
    message: str = ""
    millis: int = 0
    gate: str = ""
    metadata: dict[str, str] = {}


class Failure(Payload):
    code: int = 0
    message: str = ""
    metadata: dict[str, str] = {}


class Random(Payload):
    number: float = 0
    uuid: str = ""


class Call(Payload):
    service: str = ""
    key: str = ""
    handler: str = ""
    input: Raw = field(default_factory=Raw)  # JSON, passed on as it is
    delay_millis: int = 0
    idempotency_key: str = ""
    headers: dict[str, str] = {}


class Race(Payload):
    millis: list[int] | None = None


class Timeout(Payload):
    call: Call = field(default_factory=Call)
    millis: int = 0


class Op(Payload):
    op: str = ""
    key: str = ""
    value: str = ""


class OpResult(Payload):
    present: bool = False
    value: str = ""
    keys: list[str] = []


class Outcome(Payload):
    value: str = ""
    code: int = 0
    message: str = ""
    index: int = 0
    of: list["Outcome"] = []


class Await(Payload):
    id: str = ""
    n: int = 0


class Completion(Payload):
    awakeable: str = ""
    promise: str = ""
    value: str = ""
    reject: str = ""


class Delegate(Payload):
    holder: str = ""
    key: str = ""


class Flow(Payload):
    id: str = ""
    promises: list[str] | None = None
    text: str = ""


class Wait(Payload):
    id: str = ""
    names: list[str] | None = None


class Signal(Payload):
    invocation: str = ""
    name: str = ""
    value: str = ""
    reject: str = ""


class Block(Payload):
    id: str = ""
    way: str = field(default="", name="in")  # "in" is a keyword
    child: str = ""
    catch: bool = False


class Tree(Payload):
    id: str = ""
    depth: int = 0
    width: int = 0
    send: bool = False


class Drift(Payload):
    id: str = ""
    first: str = ""
    second: str = ""
    heal: int = 0


class Say(Payload):
    value: str = ""
    id: str = ""
    gate: str = ""
    millis: int = 0
    code: int = 0
    message: str = ""


class Versions(Payload):
    before: str = ""
    after: str = ""


class Command(Payload):
    do: str = ""
    name: str = ""
    value: str = ""
    millis: int = 0
    code: int = 0
    message: str = ""
    call: Call = field(default_factory=Call)
    of: list["Command"] = []


class Program(Payload):
    id: str = ""
    commands: list[Command] | None = None
