"""A service with a sidecar: it asks Limitgate on the same host over a Unix socket.

limitgate serve --http unix:/tmp/limitgate.sock --limits policy.json
python3 service.py 8000 /tmp/limitgate.sock
curl -X POST 127.0.0.1:8000/login
"""

import http.client
import json
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Sidecar(http.client.HTTPConnection):
    """A connection of HTTP to a Unix socket."""

    def __init__(self, path):
        super().__init__("sidecar", timeout=0.25)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def decide(path, request):
    """Returns the status and the header fields of a decision, or 200 where Limitgate does not answer."""
    connection = Sidecar(path)
    try:
        connection.request("POST", "/v1/check?http=1", json.dumps(request), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status, [(name, value) for name, value in answer.getheaders() if "ratelimit" in name.lower() or name == "Retry-After"]
    except OSError as err:
        print(f"limitgate: {err}", file=sys.stderr)
        return 200, []
    finally:
        connection.close()


class Service(BaseHTTPRequestHandler):
    """Answers every request that the limits admit."""

    def handle_request(self):
        route = self.path.partition("?")[0]  # without the query, which a client chooses
        request = {"tenant": self.headers.get("X-Tenant", "anonymous"), "op": f"{self.command} {route}", "ip": self.client_address[0]}
        status, fields = decide(sys.argv[2], request)
        body = b"served\n" if status == 200 else b"come again later\n" if status == 429 else b"this request cannot be checked\n"
        self.send_response(status if status in (200, 429) else 500)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = handle_request

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
