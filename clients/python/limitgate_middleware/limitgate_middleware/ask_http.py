"""Asks Limitgate over HTTP, at the address of limitgate serve --http."""

from __future__ import annotations

import asyncio
import json
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPSConnection
from typing import Any, Dict, Optional, Tuple
from urllib.parse import urlsplit

from .ask import Decision, DecisionError, Request, Unavailable
from .within import within

# The header fields of an answer that a decision passes on.
FIELDS = (
    "RateLimit-Policy",
    "RateLimit",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "RateLimit-Near-Limit",
    "X-RateLimit-Near-Limit",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "Retry-After",
)


class HTTPAsker:
    """Asks over HTTP. Each question opens a connection.

    The timeout bounds each step in seconds: connecting, sending, and each read.
    """

    def __init__(self, url: str, timeout: float, authorization: Optional[str]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"limitgate: {url!r} is not an address such as http://HOST:PORT")
        self.connection_type = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self.host, self.port, self.timeout = parts.hostname, parts.port, timeout
        self.address = parts.netloc.rpartition("@")[2]
        self.headers = {"Content-Type": "application/json"}
        if authorization is not None:
            self.headers["Authorization"] = authorization

    def decide(self, request: Request, reserve: bool) -> Decision:
        body: Dict[str, Any] = {"tenant": request.tenant, "dims": request.given_dims()}
        if request.op:
            body["op"] = request.op
        if request.ip:
            body["ip"] = request.ip
        body["estimate" if reserve else "cost"] = request.cost
        answer, headers = self._post("reserve" if reserve else "check", body)
        return decision(answer, headers)

    def commit(self, reservation: str, actual: int) -> bool:
        answer, _ = self._post("commit", {"id": reservation, "actual": actual})
        return answer["result"] == "done"

    def _post(self, operation: str, body: Dict[str, Any]) -> Tuple[Dict[str, Any], HTTPMessage]:
        """Returns the object and the header fields that Limitgate answers with."""
        connection = self.connection_type(self.host, self.port, timeout=self.timeout)
        try:
            connection.request("POST", "/v1/" + operation, json.dumps(body), self.headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as err:
            raise Unavailable(f"Limitgate at {self.address} does not answer: {str(err) or type(err).__name__}") from err
        finally:
            connection.close()
        if answer.status >= 500 or answer.status in (408, 429, 431):
            raise Unavailable(f"Limitgate answers {answer.status}")
        value = _object(content)
        if answer.status != 200 or value is None:
            # A port of Limitgate that is not the one for HTTP says so in plain text.
            detail = (value or {}).get("detail") or content[:300].decode(errors="replace").strip() or "no reason"
            raise DecisionError(f"Limitgate answers {answer.status}: {detail}")
        return value, answer.headers


class AsyncHTTPAsker:
    """Asks as HTTPAsker does, in a thread, and waits timeout seconds for an answer."""

    def __init__(self, url: str, timeout: float, authorization: Optional[str]) -> None:
        self.asker = HTTPAsker(url, timeout, authorization)

    async def decide(self, request: Request, reserve: bool) -> Decision:
        return await self._within(self.asker.decide, request, reserve)

    async def commit(self, reservation: str, actual: int) -> bool:
        return await self._within(self.asker.commit, reservation, actual)

    async def _within(self, function: Any, *args: Any) -> Any:
        try:
            return await within(self.asker.timeout, asyncio.to_thread(function, *args))
        except asyncio.TimeoutError as err:
            raise Unavailable(f"Limitgate at {self.asker.address} does not answer: {err}") from err


def decision(answer: Dict[str, Any], headers: HTTPMessage) -> Decision:
    """Returns the decision of an answer to check or reserve."""
    return Decision(
        allowed=answer["allowed"] is True,
        limit=answer["limit"],
        remaining=answer["remaining"],
        retry_after_ms=answer["retry_after_ms"],
        reset_after_ms=answer["reset_after_ms"],
        limit_id=answer["limit_id"],
        source=answer["source"],
        headers={name: headers[name] for name in FIELDS if name in headers},
        id=answer.get("id"),
    )


def _object(content: bytes) -> Optional[Dict[str, Any]]:
    """Returns the JSON object in a body, or None if there is none."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
