"""The techniques that ``bench.techniques`` compares, each on tokens that it is right about and misses."""

import pytest
from bench.other_techniques import (
    Answer,
    Level,
    Technique,
    compiled_helper,
    helper_at_caller,
    helper_in_creation,
    quoter,
    selectors,
    transfer,
)
from bench.techniques import Tried, misses, ours, row
from bench.zoo import Case, animal_case, sample_cases
from bench.zoo_truth import Kind, Met, bought_before, met

from roundtrip.chain.rpc.client import Meter
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from truth.animals import Animal


@pytest.fixture(scope="session")
def techniques() -> dict[str, Technique]:
    creation, runtime = compiled_helper()
    return {
        "helper at its caller": helper_at_caller(runtime),
        "helper made in the call": helper_in_creation(creation),
        "quoter": quoter,
        "transfer": transfer,
        "selectors": selectors,
    }


def test_every_token_that_trades_is_tried(rpc: SyncRpc, built: Built) -> None:
    assert set(built.tokens) - set(sample_cases(rpc, built)) == {
        "no_pool", "not_a_token", "loops_on_balance", "curve_all_but_full", "curve_full", "swept", "rescued",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "kind", "said"),
    [
        # Fair, on each kind of place and for each kind of money.
        ("plain", "fair", ("ok", "ok", "ok", "ok", "ok")),
        ("curve_other", "fair", ("ok", "ok", "unknown", "ok", "ok")),
        ("graduated_other", "fair", ("ok", "ok", "ok", "ok", "ok")),
        # In one block nothing is late.
        ("time_bomb", "trap", ("ok", "ok", "ok", "ok", "ok")),
        ("blacklist_after_buy", "trap", ("ok", "ok", "ok", "danger", "ok")),
        # What looks at trades sees what they come to, and what does not look at the token does not.
        ("owner_only_sell", "trap", ("danger", "danger", "ok", "danger", "ok")),
        ("heavy_fee_on_buy", "trap", ("danger", "danger", "ok", "ok", "ok")),
        ("hook_fee_jump", "trap", ("danger", "danger", "danger", "ok", "ok")),
        ("fee_on_buy", "snag", ("warn", "warn", "ok", "ok", "ok")),
        ("paused", "closed", ("danger", "danger", "danger", "danger", "danger")),
    ],
)
async def test_what_each_technique_sees(
    ctx: Context,
    rpc: SyncRpc,
    built: Built,
    techniques: dict[str, Technique],
    key: str,
    kind: str,
    said: object,
) -> None:
    case = bought_before(rpc, built, sample_cases(rpc, built)[key])
    answers = [await ask(ctx.node, ctx.contracts, case, Meter()) for ask in techniques.values()]
    assert tuple(answer.level for answer in answers) == said
    assert met(rpc, built, case).kind == kind


async def test_a_helper_with_code_is_let_through_where_one_without_is_not(
    ctx: Context, rpc: SyncRpc, built: Built, techniques: dict[str, Technique]
) -> None:
    case = bought_before(rpc, built, animal_case(rpc, built, Animal("whitelist_sell")))
    answer = [
        (await techniques[name](ctx.node, ctx.contracts, case, Meter())).level
        for name in ("helper at its caller", "helper made in the call")
    ]
    assert answer == ["ok", "danger"]
    assert met(rpc, built, case).kind == "trap"


async def test_our_check_is_asked_as_the_others_are(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    meter, case = Meter(), sample_cases(rpc, built)["owner_only_sell"]
    answer = await ours(ctx)(ctx.node, ctx.contracts, case, meter)
    assert (answer.level, answer.said, meter.trips) == ("danger", "cannot_sell", 3)


def test_a_wrong_answer_of_anybodys_is_counted_and_named() -> None:
    kinds: dict[str, Kind] = {"a": "trap", "b": "fair", "c": "snag", "d": "closed"}
    rows: list[tuple[str, Level]] = [
        ("a", "ok"),
        ("b", "danger"),
        ("c", "unknown"),
        ("d", "warn"),
        ("b", "ok"),
    ]
    truth, one = {name: Met(kind, "") for name, kind in kinds.items()}, Tried()
    for name, level in rows:
        one.add(Case(name, Address("0x"), ()), Answer(level), 2.0, 1)
    assert row("x", one, truth) == [
        "x", "1 of 1", "0", "1 of 1", "0", "0 of 1", "0", "1", "1 of 4", "2.0", "2.0", "1",
    ]  # fmt: skip
    assert misses({"x": one}, truth) == [
        "x: fair called danger (1): b",
        "x: snag called unknown (1): c",
        "x: trap called ok (1): a",
        "x: not the same each time: b (danger, ok)",
    ]
