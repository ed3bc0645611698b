"""The services, one module each; the contract package says what they do."""

from .caller import caller
from .echo import echo
from .queue import queue
from .steps import steps
from .store import store

SERVICES = [echo, steps, caller, store, queue]
