"""The services, one module each; the contract's README says what they do."""

from .awakeables import awakeables
from .caller import caller
from .cancel import cancel
from .drift import drift
from .echo import echo
from .flow import flow
from .holder import holder
from .interpreter import interpreter
from .policies import killed, paused
from .queue import queue
from .signals import signals
from .steps import steps
from .store import store
from .tree import tree
from .utils import utils
from .versioned import versioned

SERVICES = [
    echo,
    steps,
    caller,
    store,
    queue,
    utils,
    awakeables,
    holder,
    flow,
    signals,
    cancel,
    tree,
    drift,
    killed,
    paused,
    versioned,
    interpreter,
]
