"""A replica of the fleet that keeps to a quota by token-throttle.

It reads its task from the environment, prints true, begins at the first byte
of its standard input, prints its report, and ends when its input does, as the
replicas in Go do. The burst is what the rate allows in a second: the library
takes no smaller one. A refused call is made again after Retry-After.
"""
import http.client
import itertools
import json
import logging
import os
import sys
import threading
import time
import urllib.parse

import redis
from token_throttle import PerModelConfig, Quota, SyncRateLimiter, SyncRedisBackendBuilder, UsageQuotas

logging.disable(logging.CRITICAL)
task = json.loads(os.environ["PEERBENCH_FLEET"])
quota, calls = task["Quota"], task["Calls"]
host, port = task["Redis"].rsplit(":", 1)
vendor = urllib.parse.urlsplit(task["Vendor"])
limiter = SyncRateLimiter(
    PerModelConfig(quotas=UsageQuotas([Quota(metric="requests", limit=quota["Rate"], per_seconds=1)])),
    backend=SyncRedisBackendBuilder(redis.Redis(host=host, port=int(port)), key_prefix=quota["Name"]),
)
turns = itertools.count()
spans = [None] * calls
failed = []


def succeeds(connection):
    while True:
        # Nothing is refunded: a call costs what it has reserved.
        limiter.acquire_capacity({"requests": 1}, model="drain")
        connection.request("GET", vendor.path or "/")
        response = connection.getresponse()
        response.read()
        if response.status != 429:
            return response.status == 200
        time.sleep(float(response.getheader("Retry-After", "1")))


def work():
    connection = http.client.HTTPConnection(vendor.netloc)
    while (i := next(turns)) < calls:
        began = time.time_ns()
        try:
            served = succeeds(connection)
        except Exception:
            served = False
        if not served:
            failed.append(i)
        spans[i] = {"Asked": began, "Took": time.time_ns() - began}


print("true", flush=True)
if sys.stdin.buffer.read(1):
    workers = [threading.Thread(target=work) for _ in range(task["Workers"])]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(json.dumps({"Spans": [spans], "Failed": len(failed)}), flush=True)
    sys.stdin.buffer.read()
limiter.close()
