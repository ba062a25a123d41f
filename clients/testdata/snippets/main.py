# Calls the README's Python snippet.
import sys

import redis

from snippet import admit

client = redis.Redis(host=sys.argv[1], port=int(sys.argv[2]))
print("take", flush=True)
sys.stdin.readline()
print(str(admit(client, "snippet", "later", "-")).lower(), str(admit(client, "snippet", "never", "-")).lower())
