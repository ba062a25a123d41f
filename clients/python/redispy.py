"""Drives redis-py; see ../go/steps, which does the same. The last argument is the
parser: hiredis or python."""
import json
import os
import sys

import redis

CHECKS, BURST = 100, 60


def ask(client, words):
    return client.execute_command(*words)


def check(tenant, cost="1"):
    return ["RL.CHECK", tenant, "-", "-", cost]


def decision(reply):
    assert isinstance(reply, list) and len(reply) == 7, f"no decision: {reply}"
    return [field.decode() if isinstance(field, bytes) else field for field in reply]


def in_order(i, reply):
    f = decision(reply)
    want = [1, BURST, BURST - 1 - i] if i < BURST else [0, BURST, 0]
    assert f[:3] == want and f[5:] == ["daily", "store"], f"check {i + 1} answers {f}"


def admitted(client):
    f = decision(ask(client, check("other")))
    assert f[0] == 1 and f[6] == "store", f"answers {f}"


def check_step(client):
    for i in range(CHECKS):
        in_order(i, ask(client, check("alone")))


def pipeline_step(client):
    if isinstance(client, redis.RedisCluster):
        # Its pipeline sends nothing until execute, and groups by the slot of keys.
        pipe = client.pipeline()
    else:
        pipe = client.pipeline(transaction=False)
    for _ in range(CHECKS):
        pipe.execute_command(*check("piped"))
    replies = pipe.execute()
    assert len(replies) == CHECKS, f"{len(replies)} replies"
    for i, reply in enumerate(replies):
        in_order(i, reply)


def denial_step(client):
    f = decision(ask(client, check("alone")))
    assert f[0] == 0 and f[3] > 0, f"answers {f}"


def error_step(client):
    try:
        reply = ask(client, check("other", "bad"))
    except redis.ResponseError as refused:
        assert "cost must be an integer between 1 and 2147483647" in str(refused), f"says {refused}"
    else:
        raise AssertionError(f"answers {reply}")
    admitted(client)


def dialect_step(client):
    reply = ask(client, ["CL.THROTTLE", "key", "5", "10", "60", "1"])
    assert reply == [0, 6, 5, -1, 6], f"answers {reply}"


def reconnect_step(client):
    print("kill", flush=True)
    answer = sys.stdin.readline().strip()
    assert answer == "killed", f"told {answer}"
    try:
        admitted(client)
    except redis.ConnectionError:  # one call may fail
        admitted(client)


def credentials():
    """Returns the options of the environment: TLS, the client's certificate and its user."""
    env, options = os.environ, {}
    if env.get("CLIENT_CA"):
        options.update(ssl=True, ssl_ca_certs=env["CLIENT_CA"])
    if env.get("CLIENT_CERT"):
        options.update(ssl_certfile=env["CLIENT_CERT"], ssl_keyfile=env["CLIENT_KEY"])
    if env.get("CLIENT_USER"):
        options.update(username=env["CLIENT_USER"], password=env["CLIENT_PASSWORD"])
    return options


def connect(host, port, mode, parser):
    options = dict(host=host, port=port, **credentials())
    if mode == "cluster":
        return redis.RedisCluster(**options)
    if parser == "hiredis":
        assert redis.connection.DefaultParser is redis.connection.HiredisParser, "hiredis is not used"
        return redis.Redis(**options)
    # A pool has the class of its connections in place of ssl.
    secure = options.pop("ssl", False)
    kind = redis.SSLConnection if secure else redis.Connection
    pool = redis.ConnectionPool(connection_class=kind, parser_class=redis.connection.PythonParser, **options)
    return redis.Redis(connection_pool=pool)


def main():
    host, port, mode, _, parser = sys.argv[1:6]
    saw = {}
    try:
        client = connect(host, int(port), mode, parser)
        for step in (check_step, pipeline_step, denial_step, error_step, dialect_step, reconnect_step):
            name = step.__name__.removesuffix("_step")
            try:
                step(client)
                saw[name] = "ok"
            except Exception as wrong:
                saw[name] = f"{type(wrong).__name__}: {wrong}"
    except Exception as wrong:
        saw["check"] = f"connect: {type(wrong).__name__}: {wrong}"
    version = redis.__version__
    if parser == "hiredis":
        version += ", hiredis " + redis.utils.hiredis.__version__
    print(json.dumps({"version": version, "steps": saw}))


main()
