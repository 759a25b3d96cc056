"""Everything that askgate refuses, one class an error; a class's docstring is its message.

``slug`` is the machine's word for it: the end of the problem ``type`` in the HTTP API and the ``reason`` of an
audit event. ``errors`` says where in the input, as ``{"loc", "msg", "type"}`` items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class AskgateError(Exception):
    """Something went wrong."""

    slug: ClassVar[str] = "error"

    def __init__(
        self,
        detail: str | None = None,
        *,
        errors: Sequence[Mapping[str, Any]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.detail = detail or str(type(self).__doc__)
        self.errors = tuple(errors)
        self.extra = dict(extra or {})
        super().__init__(self.detail)


class StoreUnavailable(AskgateError):
    """The store cannot be reached; nothing was changed that you were not told of. Try again."""

    slug = "store-unavailable"


class StoreMismatch(AskgateError):
    """The store was made with another number of partitions; it is fixed for the life of a store."""

    slug = "store-mismatch"


class NotFound(AskgateError):
    """There is no such run or gate."""

    slug = "not-found"


class Invalid(AskgateError):
    """A value breaks a rule."""

    slug = "invalid"


class NobodyMayDecide(Invalid):
    """Nobody could ever decide this: name `approvers` or `responders`, or set ASKGATE_ADMINS."""

    # ``extra`` has the GateDoc (``asked``), how many it takes (``need``), and whom the requester's rule alone shuts out
    # (``besides``)

    slug = "nobody-may-decide"


class NoPlace(Invalid):
    """There is no place to show this: give `place`, or set ASKGATE_DEFAULT_CHANNEL."""

    slug = "no-place"


class NoWorkspace(Invalid):
    """askgate is not installed in that workspace."""

    slug = "no-workspace"


class CoverageMismatch(Invalid):
    """The answers must cover every pending item, each in its own category, and nothing else."""

    slug = "pending_coverage_mismatch"


class IdempotencyKeyReused(AskgateError):
    """This Idempotency-Key was used with another body."""

    slug = "idempotency-key-reused"


class NotWaiting(AskgateError):
    """The run is no longer waiting."""

    slug = "not-waiting"


class NotFailed(AskgateError):
    """The run has not failed, so there is nothing to put back or to decide again."""

    slug = "not-failed"


class LeaseLost(AskgateError):
    """This lease has run out or was never given; claim again."""

    slug = "lease-lost"


class Refused(AskgateError):
    """The decision was refused. Each refusal is written to the audit with its slug as the reason."""

    slug = "refused"


class AlreadySettled(Refused):
    """This was settled already."""

    slug = "already-settled"


class Expired(Refused):
    """The deadline has passed."""

    slug = "expired"


class NotAllowed(Refused):
    """You are not among those who may decide this."""

    slug = "not-allowed"


class SelfApproval(NotAllowed):
    """You asked for this, so somebody else has to approve it."""

    slug = "self-approval"


class CannotVerify(NotAllowed):
    """askgate cannot verify now whether you may decide this. Try again in a minute."""

    slug = "cannot-verify"


class InvalidDecision(Refused, Invalid):
    """The decision breaks a rule."""

    slug = "invalid"


class ArgumentsChanged(Refused):
    """The arguments changed since you read them. Read the card again."""

    slug = "arguments-changed"


class Overtaken(ArgumentsChanged):
    """Some of this was decided or changed since you read it. Read the card again."""

    slug = "overtaken"
