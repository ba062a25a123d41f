"""Tests the waits of retry."""

from __future__ import annotations

import io
import unittest
from email.message import Message
from types import SimpleNamespace
from typing import Any, List, Tuple
from urllib.error import HTTPError

from limitgate_middleware import retry


def response(status: int, after: Any = None, name: str = "status_code") -> Any:
    return SimpleNamespace(**{name: status}, headers={} if after is None else {"Retry-After": str(after)})


def run(responses: List[Any], **options: Any) -> Tuple[int, List[float]]:
    """Returns the last status and the waits."""
    waits: List[float] = []
    left = iter(responses)
    last = retry(lambda: next(left), random=lambda: 0.5, wait=lambda s: waits.append(round(s, 6)), **options)
    return last.status_code, waits


class RetryTest(unittest.TestCase):
    def test_waits(self) -> None:
        self.assertEqual(run([response(200)]), (200, []))
        self.assertEqual(run([response(500)]), (500, []))
        self.assertEqual(run([response(429, 2), response(200)]), (200, [2.1]))
        self.assertEqual(run([response(429, 1), response(503), response(429), response(200)]), (200, [1.1, 0.2, 0.4]))
        self.assertEqual(run([response(429, 1)] * 4), (429, [1.1, 1.2, 1.4]))
        self.assertEqual(run([response(429)] * 2, attempts=2, base=4), (429, [2]))
        self.assertEqual(run([response(429)], attempts=0), (429, []))

    def test_gives_up_where_a_wait_is_too_long(self) -> None:
        for after in (60, 61, 2592000, "inf", "1e400"):
            self.assertEqual(run([response(429, after)]), (429, []))
        self.assertEqual(run([response(429, 6)], max_wait=5), (429, []))

    def test_fields_that_are_no_number(self) -> None:
        for after in ("Wed, 21 Oct 2026 07:28:00 GMT", "", "nan", "-5"):
            self.assertEqual(run([response(429, after), response(200)]), (200, [0.1]))

    def test_the_random_time_is_bounded(self) -> None:
        status, waits = run([response(429)] * 2000, attempts=2000)
        self.assertEqual((status, len(waits), max(waits)), (429, 1999, 30))

    def test_responses_of_libraries(self) -> None:
        waits: List[float] = []
        field = Message()
        field["Retry-After"] = "2"
        left: Any = iter([
            response(429, 1, name="status"), HTTPError("http://a", 503, "no", field, io.BytesIO()),
            response(200, name="code"),
        ])
        self.assertEqual(retry(lambda: next(left), random=lambda: 0, wait=waits.append).code, 200)
        self.assertEqual(waits, [1, 2])
        with self.assertRaises(TypeError):
            retry(lambda: object())
