"""Which token the front page and the documentation take for an example; when a live board is rendered."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from roundtrip.api.dispatch import DoorReply
from roundtrip.console.pages.boards import GRADUATING, BoardReader, find_good
from roundtrip.console.support.render import Templates
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.policy import POLICY
from roundtrip.services.boards.newest_verdicts import NewestVerdicts
from support.answers import build_answer
from unit.venues.network import address


@pytest.mark.parametrize(
    ("levels", "place"),
    [(["danger", "ok", "ok"], 1), (["ok", "warn"], 0), (["danger", "warn"], None), ([], None)],
)
def test_the_good_example_is_the_first_that_is_ok(levels: list[str], place: int | None) -> None:
    examples = [
        {"token": {"address": address(number)}, "verdict": {"level": level}}
        for number, level in enumerate(levels)
    ]
    newest = build_answer(NewestVerdicts, {"examples": examples})
    assert find_good(newest) == (None if place is None else address(place))


def test_without_verdicts_there_is_no_good_example() -> None:
    assert find_good(None) is None


class CountedTemplates(Templates):
    def __init__(self) -> None:
        super().__init__({})
        self.rendered: Counter[str] = Counter()

    def render(self, name: str, **values: Any) -> str:
        self.rendered[name] += 1
        return super().render(name, **values)


async def test_an_answer_is_rendered_once_and_its_lag_is_of_the_moment() -> None:
    templates = CountedTemplates()
    answer: Any = build_answer(GRADUATING.answer, {"block": 7})
    block = SimpleNamespace(timestamp_s=answer.block_time.timestamp())
    head = SimpleNamespace(
        block=block, market=SimpleNamespace(usdg_per_eth_raw=3_500 * 10**6, feed_usd_e8=None)
    )
    replies: list[DoorReply] = []

    async def run(*args: object, **options: object) -> DoorReply:
        return replies[-1]

    ctx = SimpleNamespace(heads=SimpleNamespace(current=lambda: head), policy=POLICY)
    dispatch: Any = SimpleNamespace(ctx=ctx, run=run)
    reader, rows = BoardReader(dispatch, templates), "boards/graduating_soon.html"
    replies.append(DoorReply(200, msgspec.json.encode(answer)))
    first = await reader.read_events("graduating_soon")
    assert first.keys() == {"rows", "said", "as-of", "state"}
    assert await reader.read_events("graduating_soon") == first
    assert templates.rendered[rows] == 1
    head.block.timestamp_s += 100
    late = await reader.read_events("graduating_soon")
    assert late["as-of"] != first["as-of"]
    assert {**late, "as-of": ""} == {**first, "as-of": ""}
    # Another stream is another text, and what cannot be read leaves the rows.
    await reader.read_events("graduating_soon?short=1")
    assert templates.rendered[rows] == 2
    replies.append(DoorReply(503, b"{}", error=ServiceFull("busy", "No room.", 5)))
    assert (await reader.read_events("graduating_soon")).keys() == {"state"}
    replies.append(DoorReply(200, msgspec.json.encode(msgspec.structs.replace(answer, block=8))))
    newer = await reader.read_events("graduating_soon")
    assert templates.rendered[rows] == 3
    assert "Block 8" in newer["as-of"]
