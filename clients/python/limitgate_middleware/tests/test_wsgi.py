"""Runs LimitWSGI under the server of wsgiref, with its validators on both sides."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time
import unittest
from http.client import HTTPConnection
from typing import Any, Dict, List, Optional
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.validate import validator

import redis

from limitgate_middleware import DecisionError, LimitWSGI

from .support import HOST, PORT, URL, Errors, Response, closed_port, expect_two, new_tenant
from .support import points, reset, silent_port, until


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


class QuietServer(WSGIServer):
    def handle_error(self, *args: Any) -> None:
        pass


class AsyncClient:
    """Has the method of redis.asyncio.Redis that tells it from redis.Redis."""

    async def execute_command(self, *words: Any) -> Any:
        pass


def hello(environ: Dict[str, Any], start_response: Any) -> List[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain"), ("Cache-Control", "private")])
    return [b"served"]


class WSGITest(unittest.TestCase):
    def setUp(self) -> None:
        client = redis.Redis(HOST, int(PORT), socket_timeout=5)
        self.addCleanup(client.close)
        decoding = redis.Redis(HOST, int(PORT), socket_timeout=5, decode_responses=True)
        self.addCleanup(decoding.close)
        self.ways = {"redis": {"client": client}, "decoding": {"client": decoding}, "http": {"url": URL}}

    def serve(self, app: Any) -> int:
        """Serves an application until the test ends. Returns the port."""
        server = QuietServer(("127.0.0.1", 0), QuietHandler)
        server.set_app(validator(app))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_port

    def get(self, port: int, path: str = "/", method: str = "GET", headers: Optional[Dict[str, str]] = None) -> Response:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        self.addCleanup(connection.close)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def call(self, app: Any, path: str = "/") -> bytes:
        """Calls an application in this thread, so that its exceptions arrive here."""
        environ = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": path, "REMOTE_ADDR": "127.0.0.1"}
        body = app(environ, lambda *args: None)
        try:
            return b"".join(body)
        finally:
            getattr(body, "close", lambda: None)()

    def test_two_are_admitted(self) -> None:
        for way, how in self.ways.items():
            with self.subTest(way):
                seen: List[bool] = []

                def app(environ: Dict[str, Any], start_response: Any) -> List[bytes]:
                    seen.append(environ["limitgate.decision"].allowed)
                    return hello(environ, start_response)

                tenant = new_tenant()
                limited = LimitWSGI(validator(app), tenant=lambda environ: environ["HTTP_X_TENANT"], **how)
                port = self.serve(limited)
                expect_two(self, (self.get(port, "/items", headers={"X-Tenant": tenant}) for _ in range(3)))
                self.assertEqual(seen, [True, True])
                # The op is the path unless the application gives it.
                self.assertEqual(self.get(port, "/other", headers={"X-Tenant": tenant}).status, 200)

    def test_paths_and_peers_that_cannot_be_sent_are_decided(self) -> None:
        for way, how in self.ways.items():
            with self.subTest(way):
                limited = LimitWSGI(hello, tenant=new_tenant(), **how)
                for path in ("/" + "x" * 3000, "/caf\u00c3\u00a9", "/\x00\n", "/\u00ff", "/" + "\u00c3\u00a9" * 700):
                    self.assertEqual(self.call(limited, path), b"served", path)

    def test_head_has_no_body_and_fields_of_the_application_stay(self) -> None:
        port = self.serve(LimitWSGI(hello, url=URL, tenant=new_tenant(), op="HEAD /"))
        self.assertEqual(self.get(port, method="HEAD").headers["cache-control"], "private")
        self.get(port, method="HEAD")
        answer = self.get(port, method="HEAD")
        self.assertEqual((answer.status, answer.body), (429, b""))

    def test_cost_dims_and_settle(self) -> None:
        for way, how in self.ways.items():
            with self.subTest(way):
                reset("shop-http")
                settled: List[int] = []

                def used(environ: Dict[str, Any], status: int) -> float:
                    settled.append(status)
                    return 1.5

                limited = LimitWSGI(
                    validator(hello), tenant="shop-http", op="GET /report", ip=lambda environ: "::1",
                    cost=lambda environ: 15, dims=lambda environ: {"user": "u1", "team": None}, settle=used, **how,
                )
                port = self.serve(limited)
                # 15 of 20 points fit only once, but 2 are used of each.
                for _ in range(3):
                    self.assertEqual(self.get(port).status, 200)
                    until(self, lambda: points("shop-http") >= 13)
                self.assertEqual(settled, [200, 200, 200])

    def test_exceptions_of_the_application_commit(self) -> None:
        def at_once(environ: Dict[str, Any], start_response: Any) -> List[bytes]:
            raise RuntimeError("broken")

        def later(environ: Dict[str, Any], start_response: Any) -> Any:
            start_response("202 Accepted", [])
            yield b"some"
            raise RuntimeError("broken")

        for way, how in self.ways.items():
            for app, want in ((at_once, 500), (later, 202)):
                with self.subTest(way, app=app.__name__):
                    reset("aborted")
                    settled: List[int] = []
                    limited = LimitWSGI(
                        app, tenant="aborted", op="GET /", cost=20,
                        settle=lambda environ, status: settled.append(status) or 1, **how,
                    )
                    with self.assertRaisesRegex(RuntimeError, "broken"):
                        self.call(limited)
                    self.assertEqual(settled, [want])
                    self.assertGreaterEqual(points("aborted"), 18)

    def test_an_error_of_settle_leaves_the_response(self) -> None:
        errors: Errors = []
        reset("aborted")
        limited = LimitWSGI(hello, url=URL, tenant="aborted", cost=20, settle=lambda *args: 1 / 0, on_error=errors.append)
        self.assertEqual(self.get(self.serve(limited)).body, b"served")
        until(self, lambda: errors)
        self.assertIsInstance(errors[0], ZeroDivisionError)
        self.assertLess(points("aborted"), 10)

    def test_mistakes_are_errors(self) -> None:
        mistakes: List[Any] = [
            ({"tenant": "t" * 300}, "invalid tenant"),
            ({"tenant": None}, "tenant is empty"),
            ({"tenant": 7}, "not a str"),
            ({"tenant": "\ud800"}, "Unicode"),
            ({"tenant": "a", "cost": 0}, "cost"),
            ({"tenant": "a", "cost": 1.5}, "cost"),
            ({"tenant": "a", "ip": "localhost"}, "ip"),
            ({"tenant": "a", "dims": {"user": ""}}, "dimension"),
            ({"tenant": "a", "dims": {"user": 7}}, "not a str"),
            ({"tenant": "a", "dims": {"user": "\udc00"}}, "Unicode"),
        ]
        for way, how in self.ways.items():
            for options, text in mistakes:
                with self.subTest(way, options=options):
                    with self.assertRaisesRegex(DecisionError, text):
                        self.call(LimitWSGI(hello, **options, **how))
        with contextlib.redirect_stderr(io.StringIO()) as log:
            self.assertEqual(self.get(self.serve(LimitWSGI(hello, url=URL, tenant="t" * 300))).status, 500)
        self.assertIn("DecisionError", log.getvalue())

    def test_wrong_passwords_and_addresses_are_errors(self) -> None:
        with redis.Redis(HOST, int(PORT), username="nobody", password="wrong", socket_timeout=5) as client:
            with self.assertRaises(DecisionError):
                self.call(LimitWSGI(hello, client=client, tenant="a"))
        wrong = f"http://127.0.0.1:{self.serve(hello)}"  # a server that is not Limitgate
        with self.assertRaises(DecisionError):
            self.call(LimitWSGI(hello, url=wrong, tenant="a"))

    def test_a_redis_in_the_place_of_limitgate_is_an_error(self) -> None:
        class Client:
            """A client whose server has no RL.CHECK."""

            def execute_command(self, *words: Any) -> None:
                raise redis.ResponseError(f"unknown command '{words[0]}', with args beginning with: 'a' ")

        with self.assertRaisesRegex(DecisionError, "the server is a Redis, and no limitgate"):
            self.call(LimitWSGI(hello, client=Client(), tenant="a"))

    def test_without_limitgate(self) -> None:
        silent = silent_port(self)
        ways: List[Any] = [{"url": f"http://127.0.0.1:{port}", "timeout": 0.1} for port in (silent, closed_port())]
        for port in (silent, closed_port()):
            client = redis.Redis(port=port, socket_timeout=0.1, socket_connect_timeout=0.1)
            self.addCleanup(client.close)
            ways.append({"client": client})
        for how in ways:
            for fail_open in (True, False):
                for settle in (None, lambda *args: 1):
                    with self.subTest(how=how, fail_open=fail_open):
                        errors: Errors = []
                        options = {"tenant": "acme", "fail_open": fail_open, "settle": settle, "on_error": errors.append}
                        begin = time.monotonic()
                        answer = self.get(self.serve(LimitWSGI(validator(hello), **options, **how)))
                        self.assertLess(time.monotonic() - begin, 1)
                        self.assertEqual(answer.status, 200 if fail_open else 503)
                        self.assertEqual(len(errors), 1)

    def test_errors_are_logged(self) -> None:
        with self.assertLogs("limitgate_middleware", "ERROR") as logs:
            self.call(LimitWSGI(hello, url=f"http://127.0.0.1:{closed_port()}", tenant="acme"))
        self.assertRegex(logs.output[0], r"Limitgate at 127\.0\.0\.1:\d+ does not answer: .*refused")

    def test_on_denied_replaces_the_answer(self) -> None:
        def teapot(environ: Dict[str, Any], start_response: Any, decision: Any) -> List[bytes]:
            start_response("418 I'm a Teapot", [("Content-Type", "application/json")])
            return [json.dumps(decision.limit_id).encode()]

        port = self.serve(LimitWSGI(hello, url=URL, tenant=new_tenant(), on_denied=teapot))
        answer = [self.get(port) for _ in range(3)][2]
        self.assertEqual((answer.status, answer.body), (418, b'"two"'))
        self.assertIn("retry-after", answer.headers)

    def test_options(self) -> None:
        client = self.ways["redis"]["client"]
        with self.assertRaisesRegex(TypeError, "give a client"):
            LimitWSGI(hello, tenant="a")
        with self.assertRaisesRegex(TypeError, "not both"):
            LimitWSGI(hello, tenant="a", client=client, url=URL)
        with self.assertRaisesRegex(TypeError, "not a client of redis.asyncio"):
            LimitWSGI(hello, tenant="a", client=AsyncClient())
        with self.assertRaisesRegex(ValueError, "is not an address"):
            LimitWSGI(hello, tenant="a", url="127.0.0.1:80")
        for wrong in ("250ms", 0, -1, True, None):
            with self.assertRaisesRegex(TypeError, "it is a number of seconds, such as 0.25"):
                LimitWSGI(hello, tenant="a", url=URL, timeout=wrong)
        with self.assertRaisesRegex(TypeError, "fail_open is 'no': it is True or False"):
            LimitWSGI(hello, tenant="a", url=URL, fail_open="no")

    def test_the_port_for_redis_says_so(self) -> None:
        with self.assertRaisesRegex(DecisionError, "speaks the protocol of Redis"):
            self.call(LimitWSGI(hello, tenant="a", url=f"http://{HOST}:{PORT}"))
