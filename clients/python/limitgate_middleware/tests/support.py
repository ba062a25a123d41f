"""Addresses of a running Limitgate, and what the tests of ASGI and WSGI have in common."""

from __future__ import annotations

import json
import os
import socket
import time
import unittest
import uuid
from typing import Any, Callable, Dict, Iterator, List, NamedTuple
from urllib.request import urlopen

import redis

HOST, PORT = os.environ["LIMITGATE"].rsplit(":", 1)
URL = os.environ["LIMITGATE_URL"]


class Response(NamedTuple):
    """A response with the names of its header fields in lower case."""

    status: int
    headers: Dict[str, str]
    body: bytes


def new_tenant() -> str:
    """Returns a tenant that has used nothing: two requests a minute are allowed for each op."""
    return "python-" + uuid.uuid4().hex


def points(tenant: str) -> int:
    """Returns what is left of the limit points."""
    with urlopen(f"{URL}/v1/peek?tenant={tenant}&limit=points", timeout=5) as answer:
        return json.load(answer)["remaining"]


def reset(tenant: str) -> None:
    """Deletes the counters of a tenant."""
    with redis.Redis(HOST, int(PORT), socket_timeout=5) as client:
        client.execute_command("RL.RESET", tenant)


def silent_port(case: unittest.TestCase) -> int:
    """Returns a port that accepts connections and never answers, until the test ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    case.addCleanup(listener.close)
    return listener.getsockname()[1]


def closed_port() -> int:
    """Returns a port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def expect_two(case: unittest.TestCase, responses: Iterator[Response]) -> None:
    """Asserts that two of three responses are admitted, and what header fields they have."""
    for want, response in zip([200, 200, 429], responses):
        case.assertEqual(response.status, want, response.body)
        case.assertRegex(response.headers["ratelimit"], r'^"two";r=[01];t=\d+$')
        case.assertEqual(response.headers["ratelimit-policy"], '"two";q=2;w=60')
        if want == 429:
            case.assertGreater(int(response.headers["retry-after"]), 0)
            case.assertEqual(response.headers["cache-control"], "no-store")
            case.assertEqual(response.headers["content-type"], "application/problem+json")
            case.assertEqual(json.loads(response.body)["violated-policies"], ["two"])


def until(case: unittest.TestCase, condition: Callable[[], Any]) -> None:
    """Waits for a condition of another thread."""
    for _ in range(200):
        if condition():
            return
        time.sleep(0.01)
    case.fail("the condition did not come true")


Errors = List[Exception]
