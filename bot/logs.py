"""Logs: one JSON line (or, on a terminal, one readable line) an event, on standard error. Never a text or a token."""

from __future__ import annotations

import logging
import sys

import structlog


def set_up(level: str) -> None:
    """Send every log, those of the libraries too, through one format. ``level`` as ASKGATE_LOG_LEVEL has it."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(
        stream=sys.stderr, level=max(number, logging.WARNING), format="%(levelname)s %(name)s %(message)s"
    )
    # slack_sdk logs whole payloads at debug, tokens and texts included
    for name in ("slack_sdk", "slack_bolt", "aiohttp", "redis"):
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
