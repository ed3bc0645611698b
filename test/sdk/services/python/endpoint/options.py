"""What the environment says, and the settings that several services share."""

import os
from datetime import timedelta

import restate

# None leaves the choice to the server, which sends the state along.
STATE_PRELOAD = False if os.environ.get("LAZY_STATE") == "1" else None

VERSION = os.environ.get("VERSION") or "v1"

# The first delay of handlers and steps that are meant to fail.
QUICK = timedelta(milliseconds=10)

QUICK_RETRIES = restate.InvocationRetryPolicy(initial_interval=QUICK)
