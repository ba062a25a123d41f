"""Asks Limitgate over a client of redis-py."""

from __future__ import annotations

import asyncio
import inspect
import re
from contextlib import contextmanager
from typing import Any, Iterator, List, Union

from redis import exceptions

from .ask import Decision, DecisionError, Request, Unavailable
from .within import within

# redis-py derives the errors of a password from its ConnectionError.
MISTAKES = (
    exceptions.ResponseError,
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
    exceptions.DataError,
)
# The reply of a Redis to commands that it does not have.
_OF_REDIS = re.compile(r"(ERR )?unknown command ['`]?RL\.", re.IGNORECASE)
NO_LIMITGATE = (
    "the server is a Redis, and no limitgate: give a client that is connected to the address of "
    "limitgate serve --listen"
)
# A client of a cluster raises RedisClusterException when it reaches no node.
UNREACHABLE = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.RedisClusterException,
    asyncio.TimeoutError,
    OSError,
)


class RedisAsker:
    """Asks over a redis.Redis.

    The socket_timeout and socket_connect_timeout of the client bound the time of a question.
    """

    def __init__(self, client: Any) -> None:
        if inspect.iscoroutinefunction(client.execute_command):
            raise TypeError("limitgate: LimitWSGI takes a redis.Redis, and not a client of redis.asyncio")
        self.client = client

    def decide(self, request: Request, reserve: bool) -> Decision:
        with _errors():
            return decision(self.client.execute_command(*words(request, reserve)))

    def commit(self, reservation: str, actual: int) -> bool:
        with _errors():
            return int(self.client.execute_command("RL.COMMIT", reservation, actual)) == 1


class AsyncRedisAsker:
    """Asks over a redis.asyncio.Redis, and waits timeout seconds for an answer."""

    def __init__(self, client: Any, timeout: float) -> None:
        if not inspect.iscoroutinefunction(client.execute_command):
            raise TypeError("limitgate: LimitASGI takes a client of redis.asyncio, and not a redis.Redis")
        self.client = client
        self.timeout = timeout

    async def decide(self, request: Request, reserve: bool) -> Decision:
        with _errors():
            return decision(await within(self.timeout, self.client.execute_command(*words(request, reserve))))

    async def commit(self, reservation: str, actual: int) -> bool:
        with _errors():
            return int(await within(self.timeout, self.client.execute_command("RL.COMMIT", reservation, actual))) == 1


def words(request: Request, reserve: bool) -> List[Union[str, int]]:
    """Returns the words of RL.CHECK or RL.RESERVE for a request."""
    command = "RL.RESERVE" if reserve else "RL.CHECK"
    all_words: List[Union[str, int]] = [command, request.tenant, request.op or "-", request.ip or "-", request.cost]
    for name, value in request.given_dims().items():
        all_words += ["DIM", name, value]
    return all_words + ["HEADERS"]


def decision(reply: List[Any]) -> Decision:
    """Names the elements of a reply. The id of a reservation is empty if the request is denied."""
    allowed, limit, remaining, retry_after, reset_after, limit_id, source, fields = reply[:8]
    names, values = fields[::2], fields[1::2]
    return Decision(
        allowed=allowed == 1,
        limit=limit,
        remaining=remaining,
        retry_after_ms=retry_after,
        reset_after_ms=reset_after,
        limit_id=_text(limit_id),
        source=_text(source),
        headers={_text(name): _text(value) for name, value in zip(names, values)},
        id=_text(reply[8]) or None if len(reply) > 8 else None,
    )


def _text(value: Union[bytes, str]) -> str:
    """Returns a str. A client without decode_responses returns bytes."""
    return value.decode() if isinstance(value, bytes) else value


@contextmanager
def _errors() -> Iterator[None]:
    """Turns the errors of redis-py into DecisionError and Unavailable."""
    try:
        yield
    except MISTAKES as err:
        if _OF_REDIS.match(str(err)):
            raise DecisionError(NO_LIMITGATE) from err
        raise DecisionError(str(err)) from err
    except UNREACHABLE as err:
        raise Unavailable(f"Limitgate does not answer: {str(err) or type(err).__name__}") from err
