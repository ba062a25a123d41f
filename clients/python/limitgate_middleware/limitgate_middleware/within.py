"""Waits for a coroutine for a limited time, without cancelling it."""

from __future__ import annotations

import asyncio
from typing import Any, Coroutine, Optional, Set, TypeVar

T = TypeVar("T")

# The event loop itself holds tasks only by weak references.
_running: Set["asyncio.Task[Any]"] = set()


async def within(timeout: Optional[float], coroutine: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a coroutine, or raises asyncio.TimeoutError after timeout seconds.

    The coroutine goes on after a timeout, and when the caller is cancelled. Some versions of
    redis-py return a connection to the pool when a command is cancelled. The next command would
    then read the reply of the cancelled one.
    """
    task = asyncio.ensure_future(coroutine)
    _running.add(task)
    task.add_done_callback(_ended)
    try:
        return await asyncio.wait_for(asyncio.shield(task), timeout)
    except asyncio.TimeoutError as err:
        raise asyncio.TimeoutError(str(err) or f"it takes more than {timeout} s") from err


def _ended(task: "asyncio.Task[Any]") -> None:
    """Forgets a task. asyncio logs an exception that nobody has read, even one after a timeout."""
    _running.discard(task)
    if not task.cancelled():
        task.exception()
