"""What the objects have in common."""

import os

# None leaves the choice to the server, which sends the state along.
STATE_PRELOAD = False if os.environ.get("LAZY_STATE") == "1" else None
