"""Sends a request again when it is denied."""

from __future__ import annotations

import itertools
import random as random_module
import time
from typing import Any, Callable, TypeVar

R = TypeVar("R")


def retry(
    attempt: Callable[[], R],
    *,
    attempts: int = 4,
    base: float = 0.2,
    max_wait: float = 60,
    random: Callable[[], float] = random_module.random,
    wait: Callable[[float], Any] = time.sleep,
) -> R:
    """Calls attempt until it returns a response whose status is not 429 or 503.

    Attempt returns a response of requests, httpx, urllib3 or http.client, or an HTTPError of
    urllib. Retry calls it attempts times at most. Between two calls it waits for Retry-After and a
    random time more, so that clients that were denied together do not come back together. The
    bound of the random time is base seconds, and doubles. Retry gives up where one wait would be
    longer than max_wait seconds. It returns the last response.
    """
    bound = base
    for n in itertools.count(1):
        response = attempt()
        if _status(response) not in (429, 503) or n >= attempts:
            return response
        seconds = _retry_after(response) + random() * min(max_wait, bound)
        if seconds > max_wait:
            return response
        wait(seconds)
        bound *= 2
    raise AssertionError("the loop has no end")


def _status(response: Any) -> int:
    """Returns the status of a response, which libraries name differently."""
    for name in ("status_code", "status", "code"):
        status = getattr(response, name, None)
        if status is not None:
            return int(status)
    raise TypeError("limitgate: the response has no status_code, status or code")


def _retry_after(response: Any) -> float:
    """Returns the seconds of Retry-After, or 0 if it is missing or a date."""
    try:
        seconds = float(response.headers.get("Retry-After") or 0)
    except ValueError:
        return 0
    return seconds if seconds > 0 else 0
