"""What the middleware asks Limitgate, what Limitgate answers, and how asking fails.

ask_redis.py asks over a client of redis-py, and ask_http.py over HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Protocol


class DecisionError(Exception):
    """A mistake in the call, such as a tenant that is too long or a wrong password."""


class Unavailable(Exception):
    """Limitgate cannot be reached, or does not answer in time."""


@dataclass(frozen=True)
class Request:
    """A request to decide about."""

    tenant: str
    #: None or an empty text stands for no op.
    op: Optional[str] = None
    #: None or an empty text stands for no ip.
    ip: Optional[str] = None
    cost: int = 1
    #: The value None stands for no such dimension.
    dims: Mapping[str, Optional[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises DecisionError if a value has a wrong type or cannot be sent."""
        if not self.tenant:
            raise DecisionError("the tenant is empty")
        _check_text("tenant", self.tenant)
        _check_text("op", self.op or "")
        _check_text("ip", self.ip or "")
        for name, value in self.given_dims().items():
            _check_text("the name of a dimension", name)
            _check_text(f"the dimension {name!r}", value)
        if not isinstance(self.cost, int) or isinstance(self.cost, bool):
            raise DecisionError(f"the cost is of type {type(self.cost).__name__}, and not an int")

    def given_dims(self) -> Dict[str, str]:
        """Returns the dimensions that have a value."""
        return {name: value for name, value in self.dims.items() if value is not None}


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise DecisionError(f"{name} is of type {type(value).__name__}, and not a str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DecisionError(f"{name} is not valid Unicode") from None


@dataclass(frozen=True)
class Decision:
    """An answer of Limitgate."""

    allowed: bool
    #: The capacity of the limit that decided, -1 without one.
    limit: int
    remaining: int
    #: 0 if allowed, -1 if the request can never be allowed.
    retry_after_ms: int
    reset_after_ms: int
    limit_id: str
    #: store, lease, cache, backstop or policy.
    source: str
    #: The header fields for the response.
    headers: Mapping[str, str]
    #: The id of a reservation, None without one.
    id: Optional[str] = None


class Asker(Protocol):
    """Asks Limitgate. Its methods raise DecisionError or Unavailable."""

    def decide(self, request: Request, reserve: bool) -> Decision:
        """Takes the cost of a request, or reserves it."""
        ...

    def commit(self, reservation: str, actual: int) -> bool:
        """Settles a reservation to the units that were used. Returns whether it was held."""
        ...


class AsyncAsker(Protocol):
    """Asks Limitgate as Asker does, for asyncio."""

    async def decide(self, request: Request, reserve: bool) -> Decision:
        """Takes the cost of a request, or reserves it."""
        ...

    async def commit(self, reservation: str, actual: int) -> bool:
        """Settles a reservation to the units that were used. Returns whether it was held."""
        ...


def asker(client: Any, url: Optional[str], timeout: float, authorization: Optional[str]) -> Asker:
    """Returns an Asker for a client or a URL."""
    _check_way(client, url)
    if url is not None:
        from .ask_http import HTTPAsker

        return HTTPAsker(url, timeout, authorization)
    from .ask_redis import RedisAsker

    return RedisAsker(client)


def async_asker(client: Any, url: Optional[str], timeout: float, authorization: Optional[str]) -> AsyncAsker:
    """Returns an AsyncAsker for a client or a URL."""
    _check_way(client, url)
    if url is not None:
        from .ask_http import AsyncHTTPAsker

        return AsyncHTTPAsker(url, timeout, authorization)
    from .ask_redis import AsyncRedisAsker

    return AsyncRedisAsker(client, timeout)


def check_options(timeout: Any, fail_open: Any) -> None:
    """Raises TypeError for a timeout or a fail_open that cannot be meant."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout <= 3600:
        raise TypeError(f"limitgate: the timeout is {timeout!r}: it is a number of seconds, such as 0.25")
    if not isinstance(fail_open, bool):
        raise TypeError(f"limitgate: fail_open is {fail_open!r}: it is True or False")


def _check_way(client: Any, url: Optional[str]) -> None:
    if client is None and url is None:
        raise TypeError("limitgate: give a client of redis-py, or the url of limitgate serve --http")
    if client is not None and url is not None:
        raise TypeError("limitgate: give a client or a url, not both")
