"""From a block of the file of hosts to the adapter that serves it."""

from __future__ import annotations

from core.clock import Clock
from core.hosts.a13n.host import A13nHost
from core.hosts.base import Host, Sessions
from core.hosts.config import A13nConfig, HostConfig, LooprigConfig, MotusConfig
from core.hosts.looprig.factory import FactoryHost
from core.hosts.looprig.host import LooprigHost
from core.hosts.motus.host import MotusHost


def adapter(config: HostConfig, clock: Clock, sessions: Sessions) -> Host:
    """The adapter of a block. Raises TypeError for a block of no kind."""
    match config:
        case A13nConfig():
            return A13nHost(config, clock, sessions)
        case MotusConfig():
            return MotusHost(config, clock, sessions)
        case LooprigConfig(dialect="factory"):
            return FactoryHost(config, clock)
        case LooprigConfig():
            return LooprigHost(config, clock)
    raise TypeError(f"there is no adapter for {type(config).__name__}")
