# Calls the Python code of docs/clients.md. It connects with TLS if the environment has a
# password.
import os
import sys

import redis

from connection import connect
from limited import check
from snippet import admit

host, port, password = sys.argv[1], int(sys.argv[2]), os.environ.get("CLIENT_PASSWORD")
client = connect(host, port, password) if password else redis.Redis(host=host, port=port)
print("take", flush=True)
sys.stdin.readline()
results = [str(admit(client, "snippet", op, "-")).lower() for op in ("later", "never", "GET /hourly")]
for op in ("GET /hourly", "GET /free"):
    allowed, headers = check(client, "snippet", op, "127.0.0.1")
    results += ["200" if allowed else "429", headers.get("Retry-After", "")]
try:
    check(client, "snippet", "long" * 300, "127.0.0.1")
except redis.ResponseError:
    results.append("500")
print(*results)
