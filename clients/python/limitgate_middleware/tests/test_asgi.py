"""Calls LimitASGI as a server does."""

from __future__ import annotations

import asyncio
import json
import time
import unittest
from typing import Any, AsyncIterator, Dict, List

import redis
import redis.asyncio

from limitgate_middleware import DecisionError, LimitASGI

from .support import HOST, PORT, URL, Errors, Response, closed_port, expect_two, new_tenant, points, reset, silent_port


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"RateLimit-Reset", b"own")]})
    await send({"type": "http.response.body", "body": b"served"})


def scope_of(path: str = "/", **more: Any) -> Dict[str, Any]:
    return {"type": "http", "method": "GET", "path": path, "headers": [], "client": ("127.0.0.1", 5), **more}


async def get(app: Any, path: str = "/", **more: Any) -> Response:
    """Sends a request to an application. Returns its response."""
    messages: List[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        messages.append(message)

    await app(scope_of(path, **more), receive, send)
    start, body = messages
    assert all(name == name.lower() for name, _ in start["headers"][1:])
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    assert len(headers) == len(start["headers"])
    return Response(start["status"], headers, body["body"])


class ASGITest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        client = redis.asyncio.Redis(host=HOST, port=int(PORT))
        self.addAsyncCleanup(client.close)
        decoding = redis.asyncio.Redis(host=HOST, port=int(PORT), decode_responses=True)
        self.addAsyncCleanup(decoding.close)
        self.ways = {"redis": {"client": client}, "decoding": {"client": decoding}, "http": {"url": URL}}

    def client(self, port: int, **options: Any) -> Any:
        client = redis.asyncio.Redis(port=port, **options)
        self.addAsyncCleanup(client.connection_pool.disconnect)  # also connections in use
        return client

    async def test_two_are_admitted(self) -> None:
        for way, how in self.ways.items():
            with self.subTest(way):
                seen: List[bool] = []

                async def app(scope: Any, receive: Any, send: Any) -> None:
                    seen.append(scope["limitgate.decision"].allowed)
                    await hello(scope, receive, send)

                limited = LimitASGI(app, tenant=lambda scope: scope["tenant"], **how)
                tenant = new_tenant()
                responses = [await get(limited, "/items", tenant=tenant) for _ in range(3)]
                expect_two(self, iter(responses))
                self.assertEqual([r.headers["ratelimit-reset"] for r in responses[:2]], ["own", "own"])
                self.assertEqual(seen, [True, True])
                # The op is the path unless the application gives it.
                self.assertEqual((await get(limited, "/other", tenant=tenant)).status, 200)

    async def test_paths_and_peers_that_cannot_be_sent_are_decided(self) -> None:
        for way, how in self.ways.items():
            with self.subTest(way):
                limited = LimitASGI(hello, tenant=new_tenant(), **how)
                for path in ("/" + "x" * 3000, "/caf\u00e9", "/\x00\n", "/\udcff", "/" + "\u00e9" * 700):
                    self.assertEqual((await get(limited, path)).status, 200, path)
                for n, peer in enumerate([None, ("testclient", 5), ("fe80::1%eth0", 5), ("", 0)]):
                    self.assertEqual((await get(limited, f"/{n}", client=peer)).status, 200, peer)

    async def test_other_types_are_not_limited(self) -> None:
        seen: List[str] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.append(scope["type"])

        limited = LimitASGI(app, url=f"http://127.0.0.1:{closed_port()}", tenant=lambda scope: 1 / 0)
        for kind in ("lifespan", "websocket"):
            await limited({"type": kind}, *(None, None))
        self.assertEqual(seen, ["lifespan", "websocket"])

    async def test_cost_dims_and_settle(self) -> None:
        for way, how in self.ways.items():
            with self.subTest(way):
                reset("shop-http")
                settled: List[int] = []

                async def cost(scope: Any) -> int:
                    return 15

                async def used(scope: Any, status: int) -> float:
                    settled.append(status)
                    return scope["used"]

                async def app(scope: Any, receive: Any, send: Any) -> None:
                    scope["used"] = 1.5
                    await hello(scope, receive, send)

                limited = LimitASGI(
                    app, tenant="shop-http", op="GET /report", ip=lambda scope: "::1", cost=cost,
                    dims=lambda scope: {"user": "u1", "team": None}, settle=used, **how,
                )
                # 15 of 20 points fit only once, but 2 are used of each.
                for _ in range(3):
                    self.assertEqual((await get(limited)).status, 200)
                    self.assertGreaterEqual(points("shop-http"), 13)
                self.assertEqual(settled, [200, 200, 200])

    async def test_exceptions_of_the_application_commit(self) -> None:
        async def at_once(scope: Any, receive: Any, send: Any) -> None:
            raise RuntimeError("broken")

        async def later(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 202})
            raise RuntimeError("broken")

        for way, how in self.ways.items():
            for app, want in ((at_once, 500), (later, 202)):
                with self.subTest(way, app=app.__name__):
                    reset("aborted")
                    settled: List[int] = []
                    limited = LimitASGI(
                        app, tenant="aborted", op="GET /", cost=20,
                        settle=lambda scope, status: settled.append(status) or 1, **how,
                    )
                    with self.assertRaisesRegex(RuntimeError, "broken"):
                        await get(limited)
                    self.assertEqual(settled, [want])
                    self.assertGreaterEqual(points("aborted"), 18)

    async def test_a_request_that_is_cancelled_commits(self) -> None:
        for way, how in self.ways.items():
            with self.subTest(way):
                reset("aborted")
                began = asyncio.Event()

                async def app(scope: Any, receive: Any, send: Any) -> None:
                    began.set()
                    await asyncio.sleep(60)

                limited = LimitASGI(app, tenant="aborted", op="GET /", cost=20, settle=lambda *args: 1, **how)
                task = asyncio.ensure_future(get(limited))
                await began.wait()
                task.cancel()
                await asyncio.sleep(0)
                task.cancel()  # anyio cancels again while something is awaited
                with self.assertRaises(asyncio.CancelledError):
                    await task
                for _ in range(200):
                    await asyncio.sleep(0.01)
                    if points("aborted") >= 18:
                        break
                self.assertGreaterEqual(points("aborted"), 18)

    async def test_a_question_that_times_out_leaves_no_reply_behind(self) -> None:
        async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Answers each question after 0.2 s with a decision whose limit is the tenant."""
            while words := (await reader.read(4096)).split(b"\r\n"):
                if len(words) < 5:
                    break
                await asyncio.sleep(0.2)
                writer.write(b"*8\r\n:1\r\n:2\r\n:1\r\n:0\r\n:0\r\n+%s\r\n+store\r\n*0\r\n" % words[4])
            writer.close()

        server = await asyncio.start_server(answer_late, "127.0.0.1", 0)
        self.addCleanup(server.close)
        client = self.client(server.sockets[0].getsockname()[1])
        errors: Errors = []
        await get(LimitASGI(hello, tenant="first", client=client, timeout=0.05, on_error=errors.append))
        self.assertEqual(len(errors), 1)
        seen: List[str] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.append(scope["limitgate.decision"].limit_id)
            await hello(scope, receive, send)

        await get(LimitASGI(app, tenant="second", client=client, timeout=2))
        self.assertEqual(seen, ["second"])

    async def test_an_error_of_settle_leaves_the_response(self) -> None:
        errors: Errors = []
        reset("aborted")
        limited = LimitASGI(hello, url=URL, tenant="aborted", cost=20, settle=lambda *args: 1 / 0, on_error=errors.append)
        self.assertEqual((await get(limited)).body, b"served")
        self.assertIsInstance(errors[0], ZeroDivisionError)
        self.assertLess(points("aborted"), 10)

    async def test_mistakes_are_errors(self) -> None:
        for way, how in self.ways.items():
            for options, text in (
                ({"tenant": "t" * 300}, "invalid tenant"),
                ({"tenant": None}, "tenant is empty"),
                ({"tenant": "\ud800"}, "Unicode"),
                ({"tenant": "a", "cost": 0}, "cost"),
                ({"tenant": "a", "ip": "localhost"}, "ip"),
                ({"tenant": "a", "dims": {"user": ""}}, "dimension"),
            ):
                with self.subTest(way, options=options):
                    with self.assertRaisesRegex(DecisionError, text):
                        await get(LimitASGI(hello, **options, **how))

    async def test_a_wrong_password_is_an_error(self) -> None:
        client = self.client(int(PORT), host=HOST, username="nobody", password="wrong")
        with self.assertRaises(DecisionError):
            await get(LimitASGI(hello, client=client, tenant="a"))

    async def test_without_limitgate(self) -> None:
        silent = silent_port(self)
        ways: List[Any] = []
        for port in (silent, closed_port()):
            ways += [{"url": f"http://127.0.0.1:{port}"}, {"client": self.client(port)}]
            ways += [{"client": self.client(port, socket_timeout=0.05, socket_connect_timeout=0.05)}]
        for how in ways:
            for fail_open in (True, False):
                for settle in (None, lambda *args: 1):
                    with self.subTest(how=how, fail_open=fail_open):
                        errors: Errors = []
                        options = {"tenant": "acme", "fail_open": fail_open, "settle": settle, "on_error": errors.append}
                        begin = time.monotonic()
                        answer = await get(LimitASGI(hello, timeout=0.1, **options, **how))
                        self.assertLess(time.monotonic() - begin, 1)
                        self.assertEqual(answer.status, 200 if fail_open else 503)
                        self.assertEqual(len(errors), 1)

    async def test_on_denied_replaces_the_answer(self) -> None:
        async def teapot(scope: Any, receive: Any, send: Any, decision: Any) -> None:
            await send({"type": "http.response.start", "status": 418})
            await send({"type": "http.response.body", "body": json.dumps(decision.limit_id).encode()})

        limited = LimitASGI(hello, url=URL, tenant=new_tenant(), on_denied=teapot)
        answer = [await get(limited) for _ in range(3)][2]
        self.assertEqual((answer.status, answer.body), (418, b'"two"'))
        self.assertIn("retry-after", answer.headers)

    async def test_options(self) -> None:
        with self.assertRaisesRegex(TypeError, "give a client"):
            LimitASGI(hello, tenant="a")
        with self.assertRaisesRegex(TypeError, "not a redis.Redis"):
            LimitASGI(hello, tenant="a", client=redis.Redis())
