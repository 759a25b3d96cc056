"""The HTTP door: runs, gates, resumes and the audit for agents and their hosts; health for operators."""

from core.api.app import PREFIX, build_api
from core.api.health import build_health
from core.api.metrics import Metrics

__all__ = ["PREFIX", "Metrics", "build_api", "build_health"]
