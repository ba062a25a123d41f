# Calls the Python code of docs/clients.md. It connects with TLS if the environment has a
# password.
import os
import sys

import redis

from connection import connect
from snippet import admit

host, port, password = sys.argv[1], int(sys.argv[2]), os.environ.get("CLIENT_PASSWORD")
client = connect(host, port, password) if password else redis.Redis(host=host, port=port)
print("take", flush=True)
sys.stdin.readline()
print(str(admit(client, "snippet", "later", "-")).lower(), str(admit(client, "snippet", "never", "-")).lower())
