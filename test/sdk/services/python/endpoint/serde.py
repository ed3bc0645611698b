"""How payloads are written."""

import json
from typing import Any

from restate.serde import Serde


class Json(Serde[Any]):
    """JSON without blanks and with null for None, as the other SDKs write it.

    The SDK's own serde puts blanks after separators and writes None as no bytes.
    """

    def deserialize(self, buf: bytes) -> Any:
        return json.loads(buf) if buf else None

    def serialize(self, obj: Any) -> bytes:
        return json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode()


JSON = Json()
