"""JSON for what the SDK does not find a serde for: lists of payloads, any value."""

from typing import Any

import msgspec
from restate.serde import Serde


class Json(Serde[Any]):
    """Reads JSON as the given type, and writes JSON."""

    def __init__(self, type: Any = Any):
        self.decoder = msgspec.json.Decoder(type)

    def deserialize(self, buf: bytes) -> Any:
        return self.decoder.decode(buf) if buf else None

    def serialize(self, obj: Any) -> bytes:
        return msgspec.json.encode(obj)


JSON = Json()
