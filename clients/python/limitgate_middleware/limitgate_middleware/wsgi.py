"""Middleware for WSGI: Flask, Django, Pyramid, Bottle and others."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from .answer import PROBLEM_HEADERS, default_ip, default_op, denied_body, log_error, unavailable_body, units
from .ask import Decision, Request, Unavailable, asker, check_options

Environ = Dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class LimitWSGI:
    """Asks Limitgate before each request, and answers 429 to one that is denied.

    README.md describes the options. A callable among tenant, op, ip, cost and dims receives the
    environ. Settle receives the environ and the status.
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
        settle: Optional[Callable[[Environ, int], float]] = None,
        fail_open: bool = True,
        on_denied: Optional[Callable[[Environ, StartResponse, Decision], Iterable[bytes]]] = None,
        on_error: Optional[Callable[[Exception], Any]] = None,
    ) -> None:
        check_options(timeout, fail_open)
        self.app = app
        self.ask = asker(client, url, timeout, authorization)
        self.tenant, self.op, self.ip, self.cost, self.dims = tenant, op, ip, cost, dims
        self.settle = settle
        self.fail_open = fail_open
        self.on_denied = on_denied or _deny
        self.on_error = on_error or log_error

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Runs the application, or answers in its place."""
        decision = self._decide(environ)
        if decision is None:
            if self.fail_open:
                return self.app(environ, start_response)
            return _answer(environ, start_response, "503 Service Unavailable", unavailable_body())
        start_response = _with_fields(start_response, decision.headers)
        if not decision.allowed:
            return self.on_denied(environ, start_response, decision)
        environ["limitgate.decision"] = decision
        if decision.id is None:
            return self.app(environ, start_response)
        return self._run_and_settle(environ, start_response, decision.id)

    def _decide(self, environ: Environ) -> Optional[Decision]:
        """Returns the decision about a request, or None if Limitgate does not answer."""
        request = Request(
            tenant=_value(self.tenant, environ),
            op=default_op(environ["REQUEST_METHOD"], _path(environ)) if self.op is None else _value(self.op, environ),
            ip=default_ip(environ.get("REMOTE_ADDR")) if self.ip is None else _value(self.ip, environ),
            cost=_value(self.cost, environ),
            dims=_value(self.dims, environ) or {},
        )
        try:
            return self.ask.decide(request, reserve=self.settle is not None)
        except Unavailable as err:
            self.on_error(err)
            return None

    def _run_and_settle(self, environ: Environ, start_response: StartResponse, reservation: str) -> Iterable[bytes]:
        """Runs the application, and commits its reservation when its response is closed."""
        status = 500

        def watch(line: str, *args: Any) -> Any:
            nonlocal status
            status = int(line.split()[0])
            return start_response(line, *args)

        def commit() -> None:
            self._commit(environ, status, reservation)

        try:
            body = self.app(environ, watch)
        except BaseException:
            commit()
            raise
        return _Body(body, commit)

    def _commit(self, environ: Environ, status: int, reservation: str) -> None:
        """Settles a reservation. An error leaves it charged as estimated."""
        assert self.settle is not None
        try:
            self.ask.commit(reservation, units(self.settle(environ, status)))
        except Exception as err:
            self.on_error(err)


class _Body:
    """The body of a response, which calls a function when the server closes it."""

    def __init__(self, body: Iterable[bytes], on_close: Callable[[], None]) -> None:
        self.body = body
        self.on_close: Optional[Callable[[], None]] = on_close

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.body)

    def close(self) -> None:
        """Closes the application's body, and calls the function once."""
        on_close, self.on_close = self.on_close, None
        try:
            close = getattr(self.body, "close", None)
            if close is not None:
                close()
        finally:
            if on_close is not None:
                on_close()


def _value(option: Any, environ: Environ) -> Any:
    """Returns the value of an option, which may be a callable."""
    return option(environ) if callable(option) else option


def _path(environ: Environ) -> str:
    """Returns the path of a request. WSGI has the bytes of a path in a str of Latin-1."""
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    return path.encode("latin-1", "replace").decode("utf-8", "replace")


def _with_fields(start_response: StartResponse, fields: Mapping[str, str]) -> StartResponse:
    """Returns a start_response that adds header fields to a response which has none of these names."""

    def start_with_fields(line: str, headers: List[Tuple[str, str]], *exc_info: Any) -> Any:
        present = {name.lower() for name, _ in headers}
        added = [(name, value) for name, value in fields.items() if name.lower() not in present]
        return start_response(line, headers + added, *exc_info)

    return start_with_fields


def _deny(environ: Environ, start_response: StartResponse, decision: Decision) -> Iterable[bytes]:
    return _answer(environ, start_response, "429 Too Many Requests", denied_body(decision))


def _answer(environ: Environ, start_response: StartResponse, line: str, body: bytes) -> Iterable[bytes]:
    """Returns a whole response. Servers of WSGI leave it to the application to answer HEAD without a body."""
    start_response(line, [*PROBLEM_HEADERS.items(), ("Content-Length", str(len(body)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
