"""An a13n Service's deliveries: signed by the subscription's secret, of these minutes, and about one run."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Final

from core.hosts.base import NotGenuine

DELIVERY: Final = "X-A13n-Delivery-Id"
TIMESTAMP: Final = "X-A13n-Webhook-Timestamp"
SIGNATURE: Final = "X-A13n-Webhook-Signature"
MAX_AGE_S: Final = 300
MAX_ID: Final = 128


def signature(secret: str, timestamp: str, delivery: str, body: bytes) -> str:
    """`v1=` and the hex HMAC-SHA256 of timestamp, delivery id and body (a13n: subscriptions)."""
    signed = f"{timestamp}.{delivery}.".encode() + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def check(headers: Mapping[str, str], body: bytes, secret: str, now_s: float) -> str:
    """The id of a delivery that is the Service's own. Raises NotGenuine."""
    delivery, stamp = headers.get(DELIVERY, ""), headers.get(TIMESTAMP, "")
    given = headers.get(SIGNATURE, "")
    if not (delivery.isascii() and 0 < len(delivery) <= MAX_ID and given):
        raise NotGenuine("the signature headers are missing or malformed")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12):
        raise NotGenuine("the signature headers are missing or malformed")
    if abs(now_s - int(stamp)) > MAX_AGE_S:
        raise NotGenuine("the delivery is too old, or the clocks differ")
    right = signature(secret, stamp, delivery, body)
    if not hmac.compare_digest(right.encode(), given.encode("utf-8", "replace")):
        raise NotGenuine("the signature is wrong")
    return delivery


def waiting_run(body: bytes) -> str | None:
    """The run that a genuine delivery says waits; None if it is about anything else."""
    try:
        event = json.loads(body)
        run_id = event["run"]["id"] if event["type"] == "run.waiting" else None
    except (ValueError, KeyError, TypeError):
        return None
    return run_id if isinstance(run_id, str) else None
