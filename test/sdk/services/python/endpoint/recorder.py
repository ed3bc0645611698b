"""Tells the test of side effects and waits for it, by HTTP."""

import os

import httpx

_BASE = os.environ.get("RECORDER", "")

# Gates are held open for as long as the test likes, any number at once.
_client = httpx.AsyncClient(
    timeout=None,
    limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
    trust_env=False,
)


async def record(name: str, value: str) -> int:
    """Reports a side effect and returns how many were reported under this name."""
    return int(await _ask("POST", f"/record/{name}", value))


async def wait(gate: str) -> None:
    """Returns when the test has opened the gate; no name means no gate."""
    if gate:
        await _ask("GET", f"/gate/{gate}")


async def _ask(method: str, path: str, body: str = "") -> str:
    response = await _client.request(method, _BASE + path, content=body.encode())
    if response.status_code != 200:
        raise RuntimeError(f"recorder: {response.status_code} {response.text}")
    return response.text
