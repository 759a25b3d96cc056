"""Logs: one JSON line (or, on a terminal, one readable line) an event, on standard error. Never a text or a token."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

from core.redaction import NOTHING, Redaction


def set_up(level: str, redaction: Redaction = NOTHING) -> None:
    """Send every log, those of the libraries too, through one format, without what the redaction hides.

    ``level`` as ASKGATE_LOG_LEVEL has it.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redacting(redaction))
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler])
    # slack_sdk logs whole payloads at debug, tokens and texts included
    for name in ("slack_sdk", "slack_bolt", "aiohttp", "redis"):
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redacting(redaction),
            structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


class _Redacting(logging.Formatter):
    """The lines of libraries, their tracebacks included."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__("%(levelname)s %(name)s %(message)s")
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        return self._redaction.text(super().format(record))


def _redacting(redaction: Redaction) -> structlog.typing.Processor:
    """Our own lines. Their names are ours, so they only hide what stands in texts and under listed names."""

    def redact(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        return {name: redaction.value(value, hide=redaction.lists(name)) for name, value in event.items()}

    return redact
