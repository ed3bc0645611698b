"""The test service endpoint written with the Python SDK.

It listens on PORT and reports side effects to the recorder at RECORDER.

LAZY_STATE=1 announces lazy state for its objects and workflows, BIDI=0 announces
request-response mode, IDENTITY_KEY is the key that requests must be signed for,
VERSION is what PyVersioned tells, VERBOSE=1 logs the failed attempts.
"""

import asyncio
import logging
import os
import signal

import hypercorn
import restate
from hypercorn.asyncio import serve
from restate.server import install_shutdown_hook

from endpoint import SERVICES

# Failed attempts and lost connections are part of the tests; keep the log readable.
VERBOSE = bool(os.environ.get("VERBOSE"))


def app():
    """Returns the ASGI application of all services."""
    bidirectional = os.environ.get("BIDI") != "0"
    identity_key = os.environ.get("IDENTITY_KEY")
    return restate.app(
        SERVICES,
        protocol="bidi" if bidirectional else "request_response",
        identity_keys=[identity_key] if identity_key else None,
    )


async def main():
    # The SDK takes SIGTERM over from the server and lets go only when every attempt
    # has; what is worth keeping is in the journals, so just end.
    for signum in (signal.SIGTERM, signal.SIGINT):
        install_shutdown_hook(asyncio.get_running_loop(), lambda: os._exit(0), signum)

    config = hypercorn.Config()
    config.bind = [f"127.0.0.1:{os.environ['PORT']}"]
    config.errorlog = "-" if VERBOSE else None
    # By default the server drops a connection, with what is in flight on it, after
    # a thousand requests.
    config.keep_alive_max_requests = 1_000_000_000
    await serve(app(), config, shutdown_trigger=asyncio.Event().wait)


if __name__ == "__main__":
    if not VERBOSE:
        for name in ("restate", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    asyncio.run(main())
