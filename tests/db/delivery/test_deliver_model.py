"""Channels and their deliveries in any order of alerts, tries, crashes, removals and time: nothing is lost,
and nothing is told under two ids."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from roundtrip.channels.post import PostReply
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.watch.channels import ACTIVE, MAX_TRIES
from roundtrip.jobs.kinds.deliver import deliver
from roundtrip.store.server import connections, jobs
from support.channels import NO_ANSWER, OK, ChannelStreet, answered
from support.paying import answer_of
from support.tables import own_database

A = TypeVar("A")
HOSTS = ("a.example", "b.example")
REPLIES = {"ok": OK, "no": NO_ANSWER, "500": answered(500), "410": answered(410), "wait": answered(429, 90.0)}


class Deliveries(RuleBasedStateMachine):
    """``told``: of each channel, the alerts that were made while it was told of what happens."""

    street: ChannelStreet
    loop: asyncio.AbstractEventLoop
    account: Account

    def __init__(self) -> None:
        super().__init__()
        self.notified: dict[int, list[int]] = {}

    def _run(self, doing: Awaitable[A]) -> A:
        return asyncio.run_coroutine_threadsafe(_awaited(doing), self.loop).result(20)

    @initialize()
    def begin(self) -> None:
        self._run(self.street.pool.execute("TRUNCATE jobs.job"))
        self.account = self._run(self.street.account())
        self.street.servers.sent.clear()
        for host in HOSTS:
            self.notified[self._run(self.street.webhook(self.account, host))] = []

    def _states(self) -> dict[int, str]:
        return {one: self._run(self.street.channel(one)).state for one in self.notified}

    @rule()
    def alert(self) -> None:
        states = self._states()
        (made,) = self._run(self.street.alert(self.account, "it buys"))
        for channel_id, state in states.items():
            if state in ACTIVE:
                self.notified[channel_id].append(made.id)

    @rule(a=st.sampled_from(sorted(REPLIES)), b=st.sampled_from(sorted(REPLIES)))
    def work(self, a: str, b: str) -> None:
        self._answer(REPLIES[a], REPLIES[b])
        self._run(self.street.run())

    def _answer(self, *replies: PostReply) -> None:
        for host, reply in zip(HOSTS, replies, strict=True):
            self.street.servers.replies[host] = [reply] * 100

    @rule(a=st.sampled_from(["ok", "500"]))
    def is_killed_before_it_writes(self, a: str) -> None:
        self._answer(REPLIES[a], REPLIES[a])
        self._run(self._killed())

    async def _killed(self) -> None:
        async with self.street.pool.acquire() as connection:
            found = await jobs.claim(connection, ["deliver"], 10, 30, self.street.now())
        for job in found:
            await deliver(self.street.ctx, job)

    @rule(seconds=st.sampled_from([1, 5, 31, 100, 2_000, 50_000, 100_000]))
    def time_passes(self, seconds: int) -> None:
        self.street.at_s += seconds

    @precondition(lambda self: self.notified)
    @rule(which=st.integers(0, 1))
    def is_removed(self, which: int) -> None:
        channel_id = sorted(self.notified)[which]
        self._run(answer_of(self.street.ctx, "remove_channel", self.account, id=channel_id))
        assert self._states()[channel_id] == "removed"

    @precondition(lambda self: self.notified)
    @rule(which=st.integers(0, 1))
    def is_set_again(self, which: int) -> None:
        channel_id = sorted(self.notified)[which]
        if self._states()[channel_id] == "removed":
            return
        self._answer(OK, OK)
        self._run(self.street.pool.execute("TRUNCATE accounts.channel_attempt"))
        url = f"https://{HOSTS[which]}/alerts"
        self._run(answer_of(self.street.ctx, "set_webhook", self.account, url=url))
        assert self._states()[channel_id] == "live"

    @invariant()
    def nothing_is_lost_or_told_under_two_ids(self) -> None:
        for channel_id, ids in self.notified.items():
            rows = self._run(
                self.street.pool.fetch(
                    "SELECT * FROM accounts.delivery WHERE channel_id = $1 AND kind = 'rule' ORDER BY id",
                    channel_id,
                )
            )
            assert [one for row in rows for one in row["alert_ids"]] == ids
        by_row: dict[tuple[str, int], set[str]] = {}
        for sent in self.street.servers.sent:
            for row in sent.said["rows"]:
                if row["kind"] != "test":
                    by_row.setdefault((sent.to.host, row["id"]), set()).add(sent.id)
        assert all(len(ids) == 1 for ids in by_row.values())

    @invariant()
    def what_waits_has_a_job(self) -> None:
        for channel_id, state in (self._states() if self.notified else {}).items():
            waits = self._run(self.street.states(channel_id)).count("waiting")
            # Of one that was removed just when another wished for something: its next run drops that.
            due_in_s = self._run(self.street.due_in_s(channel_id))
            assert not waits or due_in_s is not None
            assert not waits or state in ACTIVE or due_in_s == 0

    @invariant()
    def what_is_delivered_was_answered_and_what_failed_was_tried_to_the_end(self) -> None:
        for channel_id in self.notified:
            rows = self._run(
                self.street.pool.fetch(
                    "SELECT state, (SELECT array_agg(coalesce(status, 0) ORDER BY number)"
                    " FROM accounts.delivery_try WHERE delivery_id = delivery.id) AS tries"
                    " FROM accounts.delivery WHERE channel_id = $1",
                    channel_id,
                )
            )
            for row in rows:
                tries = row["tries"] or []
                assert (200 in tries) == (row["state"] == "delivered")
                assert tries.count(200) <= 1
                assert len(tries) <= MAX_TRIES
                if row["state"] == "failed":
                    assert len(tries) == MAX_TRIES

    def teardown(self) -> None:
        """In the end the servers are well: all that waits arrives."""
        if not self.notified:
            return
        self._answer(OK, OK)
        self.street.servers.replies.clear()
        for _ in range(3):
            self.street.at_s += 60_000
            while self._run(self.street.run()):
                pass
        for channel_id in self.notified:
            assert "waiting" not in self._run(self.street.states(channel_id))


async def _awaited(doing: Awaitable[A]) -> A:
    return await doing


async def test_any_order_of_events(database_url: str) -> None:
    async with (
        own_database(database_url, "deliver_model") as url,
        connections.create_pool(url, min_size=1, max_size=8, command_timeout=5) as pool,
    ):
        Deliveries.street = ChannelStreet(pool)
        Deliveries.loop = asyncio.get_running_loop()
        bounded = settings(
            max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        )
        await asyncio.to_thread(run_state_machine_as_test, Deliveries, settings=bounded)
