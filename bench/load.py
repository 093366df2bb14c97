"""A bounded load on one loopback url: so many requests over so many connections, then a JSON line with how
often each status came, and the times.

python bench/load.py http://127.0.0.1:8463/v1/health 1000 16
python bench/load.py http://127.0.0.1:8463/mcp 1000 16 '{"jsonrpc": ...}'     a POST of this body
python bench/load.py http://127.0.0.1:8463/v1/health 1000 16 '' rt_...         with a key
"""

import asyncio
import json
import sys
import time
from collections import Counter
from urllib.parse import urlsplit

_ANSWER_S = 30.0


async def worker(
    host: str, port: int, request: bytes, count: int, times_ms: list[float], statuses: Counter[str]
) -> None:
    """One keep-alive connection, opened again where the server has closed it."""
    reader, writer = await asyncio.open_connection(host, port)
    for _ in range(count):
        started = time.perf_counter()
        try:
            async with asyncio.timeout(_ANSWER_S):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
        except (OSError, EOFError, TimeoutError):
            statuses["lost"] += 1
            writer.close()
            reader, writer = await asyncio.open_connection(host, port)
            continue
        statuses[head[9:12].decode()] += 1
        times_ms.append((time.perf_counter() - started) * 1000)
    writer.close()


async def main(url: str, requests: int, connections: int, posted: str = "", key: str = "") -> None:
    """Runs the load and prints what it came to."""
    parts = urlsplit(url)
    assert parts.hostname == "127.0.0.1", "loads go to loopback only"
    assert parts.port is not None
    head = f"{parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\n"
    if key:
        head += f"x-api-key: {key}\r\n"
    if not posted:
        request = f"GET {head}\r\n".encode()
    else:
        body = posted.encode()
        kind = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        request = f"POST {head}{kind}accept: application/json\r\n\r\n".encode() + body
    times_ms: list[float] = []
    statuses: Counter[str] = Counter()
    started = time.perf_counter()
    each = requests // connections
    await asyncio.gather(
        *(worker(parts.hostname, parts.port, request, each, times_ms, statuses) for _ in range(connections))
    )
    seconds = time.perf_counter() - started
    print(json.dumps({"per_second": len(times_ms) / seconds, "statuses": statuses, "times_ms": times_ms}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:6]))
