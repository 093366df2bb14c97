"""``roundtrip work`` as it is run: a process of its own, beside whoever wishes for work."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from roundtrip.devnet.world import Built, describe
from roundtrip.store import jobs
from support.commands import hears_interrupts

WAIT_S = 30.0
_NOT_DONE = "SELECT count(*) < 2 OR bool_or(claim IS NOT NULL OR run_at <= now()) FROM jobs.job"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
async def test_it_does_what_is_wished_for_and_ends_quietly(
    chain_url: str, built: Built, database_url: str, tmp_path: Path, end: signal.Signals
) -> None:
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, chain_url)))
    environment = {**os.environ, "ROUNDTRIP_VAR": str(tmp_path), "ROUNDTRIP_DATABASE_URL": database_url}
    token = built.tokens["plain"]
    connection = await asyncpg.connect(database_url)
    await connection.execute("TRUNCATE jobs.job, facts.token, facts.cursor")
    with subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-m", "roundtrip", "work"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=hears_interrupts,
    ) as process:
        try:
            assert process.stdout is not None
            line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), WAIT_S)
            assert line == "roundtrip works on chain 4663. Ctrl-C ends it.\n"
            await jobs.enqueue(connection, "token", token)
            async with asyncio.timeout(WAIT_S):
                while await connection.fetchval("SELECT symbol FROM facts.token") != "PLAIN":  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                # What every worker wishes for stands there, done for today or for a while.
                while await connection.fetchval(_NOT_DONE):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            process.send_signal(end)
            rest, _ = await asyncio.to_thread(process.communicate, timeout=WAIT_S)
        finally:
            process.kill()
    assert (process.returncode, rest) == (0, "")
    kinds = await connection.fetch("SELECT kind FROM jobs.job WHERE last_error IS NULL ORDER BY kind")
    assert [row["kind"] for row in kinds] == ["boards", "prune", "winners"]
    await connection.execute("TRUNCATE jobs.job, facts.token")
    await connection.close()
