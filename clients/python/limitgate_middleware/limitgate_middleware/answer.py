"""What LimitASGI and LimitWSGI have in common: bodies, the default op and ip, and the log."""

from __future__ import annotations

import ipaddress
import json
import logging
import math
from typing import Any, Dict, Optional

from .ask import Decision

#: Limitgate takes an op of up to 1024 bytes.
MAX_OP_BYTES = 1024

#: The header fields of a 429 and a 503.
PROBLEM_HEADERS = {"Content-Type": "application/problem+json", "Cache-Control": "no-store"}


def denied_body(decision: Decision) -> bytes:
    """Returns the body of a 429, as RFC 9457 describes it."""
    problem: Dict[str, Any] = {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Request cannot be satisfied as assigned quota has been exceeded",
        "status": 429,
    }
    if decision.limit_id:
        problem["violated-policies"] = [decision.limit_id]
    return json.dumps(problem).encode()


def unavailable_body() -> bytes:
    """Returns the body of a 503."""
    return json.dumps({"title": "Service Unavailable", "status": 503}).encode()


def default_op(method: str, path: str) -> str:
    """Returns the method and the path, without characters that an op cannot have."""
    op = "".join(c for c in f"{method} {path}" if c.isprintable())
    return op.encode()[:MAX_OP_BYTES].decode(errors="ignore")


def default_ip(address: Optional[str]) -> Optional[str]:
    """Returns an IP address without its zone, or None for a peer that has none."""
    try:
        return str(ipaddress.ip_address((address or "").split("%")[0]))
    except ValueError:
        return None


def units(actual: float) -> int:
    """Returns the units to commit: the next integer, and never less than 0."""
    return max(0, math.ceil(actual))


def log_error(err: Exception) -> None:
    """Logs an error to the logger limitgate_middleware."""
    logging.getLogger("limitgate_middleware").error("%s", err)
