"""Middleware for ASGI: FastAPI, Starlette, Quart, Django and others."""

from __future__ import annotations

import inspect
from typing import Any, Awaitable, Callable, Dict, Mapping, MutableMapping, Optional

from .answer import PROBLEM_HEADERS, default_ip, default_op, denied_body, log_error, unavailable_body, units
from .ask import Decision, Request, Unavailable, async_asker, check_options
from .within import within

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class LimitASGI:
    """Asks Limitgate before each request of type http, and answers 429 to one that is denied.

    README.md describes the options. A callable among tenant, op, ip, cost and dims receives the
    scope. It may be a coroutine function, as may settle, which receives the scope and the status.
    """

    def __init__(
        self,
        app: App,
        *,
        tenant: Any,
        client: Any = None,
        url: Optional[str] = None,
        authorization: Optional[str] = None,
        timeout: float = 0.25,
        op: Any = None,
        ip: Any = None,
        cost: Any = 1,
        dims: Any = None,
        settle: Optional[Callable[[Scope, int], Any]] = None,
        fail_open: bool = True,
        on_denied: Optional[Callable[[Scope, Receive, Send, Decision], Awaitable[None]]] = None,
        on_error: Optional[Callable[[Exception], Any]] = None,
    ) -> None:
        check_options(timeout, fail_open)
        self.app = app
        self.ask = async_asker(client, url, timeout, authorization)
        self.tenant, self.op, self.ip, self.cost, self.dims = tenant, op, ip, cost, dims
        self.settle = settle
        self.fail_open = fail_open
        self.on_denied = on_denied or _deny
        self.on_error = on_error or log_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the application, or answers in its place."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        decision = await self._decide(scope)
        if decision is None:
            if self.fail_open:
                await self.app(scope, receive, send)
            else:
                await _answer(send, 503, unavailable_body())
            return
        send = _with_fields(send, decision.headers)
        if not decision.allowed:
            await self.on_denied(scope, receive, send, decision)
            return
        # A middleware of ASGI gives its additions to the application in a copy of the scope.
        scope = {**scope, "limitgate.decision": decision}
        if decision.id is None:
            await self.app(scope, receive, send)
        else:
            await self._run_and_settle(scope, receive, send, decision.id)

    async def _decide(self, scope: Scope) -> Optional[Decision]:
        """Returns the decision about a request, or None if Limitgate does not answer."""
        peer = scope.get("client")
        request = Request(
            tenant=await _value(self.tenant, scope),
            op=default_op(scope["method"], scope["path"]) if self.op is None else await _value(self.op, scope),
            ip=default_ip(peer[0] if peer else None) if self.ip is None else await _value(self.ip, scope),
            cost=await _value(self.cost, scope),
            dims=await _value(self.dims, scope) or {},
        )
        try:
            return await self.ask.decide(request, reserve=self.settle is not None)
        except Unavailable as err:
            self.on_error(err)
            return None

    async def _run_and_settle(self, scope: Scope, receive: Receive, send: Send, reservation: str) -> None:
        """Runs the application, and commits its reservation however it ends."""
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            # The commit goes on when the server cancels the request.
            await within(None, self._commit(scope, status, reservation))

    async def _commit(self, scope: Scope, status: int, reservation: str) -> None:
        """Settles a reservation. An error leaves it charged as estimated."""
        assert self.settle is not None
        try:
            actual = self.settle(scope, status)
            if inspect.isawaitable(actual):
                actual = await actual
            await self.ask.commit(reservation, units(actual))
        except Exception as err:
            self.on_error(err)


async def _value(option: Any, scope: Scope) -> Any:
    """Returns the value of an option, which may be a callable."""
    value = option(scope) if callable(option) else option
    return await value if inspect.isawaitable(value) else value


def _with_fields(send: Send, fields: Mapping[str, str]) -> Send:
    """Returns a send that adds header fields to a response which has none of these names."""
    added: Dict[bytes, bytes] = {name.lower().encode(): value.encode() for name, value in fields.items()}

    async def send_with_fields(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [tuple(header) for header in message.get("headers", ())]
            present = {name.lower() for name, _ in headers}
            headers += [header for header in added.items() if header[0] not in present]
            message = {**message, "headers": headers}
        await send(message)

    return send_with_fields


async def _deny(scope: Scope, receive: Receive, send: Send, decision: Decision) -> None:
    await _answer(send, 429, denied_body(decision))


async def _answer(send: Send, status: int, body: bytes) -> None:
    """Sends a whole response."""
    fields = {**PROBLEM_HEADERS, "Content-Length": str(len(body))}
    headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
