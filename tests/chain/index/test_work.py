"""``roundtrip work`` as it is run: a process of its own, beside whoever wishes for work."""

import asyncio
import json
import os
import signal
from pathlib import Path

import asyncpg
import pytest

from roundtrip.store.server import jobs
from roundtrip_development.devnet.world import Built, describe
from support.commands import running_command
from support.tables import own_database

WAIT_S = 30.0
_NOT_DONE = "SELECT count(*) < 7 OR bool_or(claim IS NOT NULL OR run_at <= now()) FROM jobs.job"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
async def test_it_does_what_is_wished_for_and_ends_quietly(
    chain_url: str, built: Built, database_url: str, tmp_path: Path, end: signal.Signals
) -> None:
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, chain_url)))
    environment = {**os.environ, "ROUNDTRIP_VAR": str(tmp_path), "ROUNDTRIP_DATABASE_URL": database_url}
    token = built.tokens["plain"]
    connection = await asyncpg.connect(database_url)
    await connection.execute("TRUNCATE jobs.job, facts.token, facts.cursor")
    with running_command(environment, "work") as process:
        assert process.stdout is not None
        line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), WAIT_S)
        assert line == "roundtrip works on chain 4663. Press Ctrl-C to stop.\n"
        await jobs.enqueue(connection, "token", token)
        async with asyncio.timeout(WAIT_S):
            while await connection.fetchval("SELECT symbol FROM facts.token") != "PLAIN":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            # What every worker wishes for stands there, done for today or for a while.
            while await connection.fetchval(_NOT_DONE):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        process.send_signal(end)
        rest, _ = await asyncio.to_thread(process.communicate, timeout=WAIT_S)
    assert (process.returncode, rest) == (0, "")
    kinds = await connection.fetch("SELECT kind FROM jobs.job WHERE last_error IS NULL ORDER BY kind")
    assert [row["kind"] for row in kinds] == [
        "bag",
        "boards",
        "calls",
        "names",
        "prune",
        "scorecard",
        "unlocks",
        "winners",
    ]
    await connection.execute("TRUNCATE jobs.job, facts.token")
    await connection.close()


_NOTED = """
    CREATE TABLE public.done (key text NOT NULL);
    CREATE FUNCTION public.note_done() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.done VALUES (OLD.key); RETURN OLD; END $$;
    CREATE TRIGGER done AFTER DELETE ON jobs.job FOR EACH ROW WHEN (OLD.kind = 'token')
    EXECUTE FUNCTION public.note_done();
"""
_TAKEN = "SELECT id FROM jobs.job WHERE kind = 'token' AND claim IS NOT NULL"


async def test_what_a_killed_one_had_taken_is_done_by_the_other_and_all_of_it_once(
    chain_url: str, built: Built, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, chain_url)))
    tokens = sorted(built.tokens.values())[:24]
    async with own_database(database_url, "two_workers") as url, asyncio.timeout(WAIT_S):
        environment = {**os.environ, "ROUNDTRIP_VAR": str(tmp_path), "ROUNDTRIP_DATABASE_URL": url}
        connection, holding = await asyncpg.connect(url), await asyncpg.connect(url)
        await connection.execute(_NOTED)
        await jobs.enqueue_many(connection, "token", tokens)
        async with holding.transaction():
            # Who takes a job waits here with its effect.
            await holding.execute("LOCK TABLE facts.token IN EXCLUSIVE MODE")
            with running_command(environment, "work") as first:
                while not (taken := await connection.fetch(_TAKEN)):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                first.send_signal(signal.SIGKILL)
                first.wait()
            taken = await connection.fetch(_TAKEN)
        with running_command(environment, "work") as second:
            # Their lease is over.
            await connection.execute(
                "UPDATE jobs.job SET claimed_until = now() WHERE id = ANY($1::bigint[])",
                [row["id"] for row in taken],
            )
            while await connection.fetchval("SELECT count(*) FROM public.done") < len(tokens):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert second.poll() is None
        done = await connection.fetch("SELECT key FROM public.done ORDER BY key")
        assert [row["key"] for row in done] == tokens
        assert await connection.fetchval("SELECT count(*) FROM jobs.job WHERE kind = 'token'") == 0
        await holding.close()
        await connection.close()


async def test_two_of_them_share_what_there_is(
    chain_url: str, built: Built, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, chain_url)))
    tokens = sorted(built.tokens.values())[:24]
    async with own_database(database_url, "two_workers") as url, asyncio.timeout(WAIT_S):
        environment = {**os.environ, "ROUNDTRIP_VAR": str(tmp_path), "ROUNDTRIP_DATABASE_URL": url}
        connection = await asyncpg.connect(url)
        await connection.execute(_NOTED)
        with running_command(environment, "work") as first, running_command(environment, "work") as second:
            for process in (first, second):
                assert process.stdout is not None
                await asyncio.to_thread(process.stdout.readline)
            await jobs.enqueue_many(connection, "token", tokens)
            while await connection.fetchval("SELECT count(*) FROM public.done") < len(tokens):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert (first.poll(), second.poll()) == (None, None)
        done = await connection.fetch("SELECT key FROM public.done ORDER BY key")
        assert [row["key"] for row in done] == tokens
        await connection.close()
