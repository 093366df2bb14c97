"""Whatever stands in the file: a finding or Unreadable, and never anything else."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip_verify import Network, Request, Unreadable, lines, parse, verify
from unit.verify.samples import NETWORK, NETWORK_FILE, Json, TradeCase, body, first

CASES = [
    first("launchpad_curve", "buy", "usdg"),
    first("amm_v3", "sell", "weth"),
    TradeCase("amm_v3", "sell", "usdg", second=True),
    first("amm_v4", "buy", "weth"),
    first("launchpad_pool", "sell", "eth"),
]
HUGE = 10**5000
STRANGE: list[Any] = [
    None, True, False, 0, -1, 1.5, HUGE, -HUGE, "", "0", "-1", "0x", "0x0", "0X00", "0xzz", "0x" + "f" * 64,
    "0x" + "0" * 40, "9" * 100, "1" * 100_000, "\ud800", "\u0661", "1\n", "1e5", " 1", "0x" + "ab" * 20_000,
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-14:00", "2026-13-01T00:00:00Z", "2026-01-01", [], {},
    [[]], [{}], {"address": {}}, float("nan"), float("inf"), "at least 1 (1 base units)", "eth", "weth",
    "\U0001d598" * 60,
]  # fmt: skip


def tried(answer: object) -> bool:
    """Whether it passed; anything but Unreadable is raised on."""
    try:
        report = verify(answer, NETWORK, now_s=1_790_000_000)
    except Unreadable as error:
        return one_sentence(error)
    assert "\n".join(lines(report)).isascii()
    return report.ok


def one_sentence(error: Unreadable) -> bool:
    """False: what was not read did not pass."""
    text = str(error)
    assert 0 < len(text) < 300
    assert text.isascii()
    assert text.endswith(".")
    return False


def paths(holder: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    pairs: list[tuple[str | int, object]] = []
    if isinstance(holder, dict):
        pairs = list(holder.items())
    elif isinstance(holder, list):
        pairs = list(enumerate(holder))
    for name, value in pairs:
        yield (*above, name)
        yield from paths(value, (*above, name))


def replaced(answer: Json, path: tuple[str | int, ...], value: object) -> Json:
    found: Any = copy.deepcopy(answer)
    holder = found
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    return dict(found)


def without(answer: Json, path: tuple[str | int, ...]) -> Json:
    found: Any = copy.deepcopy(answer)
    holder = found
    for name in path[:-1]:
        holder = holder[name]
    del holder[path[-1]]
    return dict(found)


NOT_READ = {"block", "sellBack", "verdict", "check", "symbol", "text", "code", "level"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_missing_field_is_told(case: Any) -> None:
    for path in paths(body(case)):
        if NOT_READ.isdisjoint(map(str, path)):
            assert not tried(without(body(case), path)), path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_strange_value_is_told(case: Any) -> None:
    for path in paths(body(case)):
        for value in STRANGE:
            tried(replaced(body(case), path, value))


def test_a_deep_nest_is_no_trouble() -> None:
    nest: Any = []
    for _ in range(50_000):
        nest = [nest]
    for name in ("check", "steps", "from", "spend"):
        assert tried({**body(CASES[1]), name: nest}) is (name == "check")
    holder = nest
    while holder:  # Taken apart by hand: freeing it at once would recurse.
        holder, holder[:] = holder[0], []


# Hypothesis prints what it draws from, and huge numbers cannot be printed.
_PRINTED = [value for value in STRANGE if type(value) is not int or abs(value) < HUGE]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(_PRINTED),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
every_path = sorted({path for case in CASES for path in paths(body(case))}, key=str)


@settings(max_examples=150, deadline=None)
@given(answer=json_values)
def test_any_json_is_read_or_refused(answer: object) -> None:
    assert not tried(answer)


@settings(max_examples=400, deadline=None)
@given(
    case=st.sampled_from(CASES),
    changes=st.lists(st.tuples(st.sampled_from(every_path), json_values), min_size=1, max_size=3),
)
def test_any_json_inside_an_answer_is_read_or_refused(case: Any, changes: list[Any]) -> None:
    answer = body(case)
    for path, value in changes:
        try:
            answer = replaced(answer, path, value)
        except (KeyError, IndexError, TypeError):
            continue
    tried(answer)


@settings(max_examples=100, deadline=None)
@given(described=json_values)
def test_any_json_is_a_network_or_refused(described: object) -> None:
    for document in (described, {"chainId": 1, "contracts": described}):
        try:
            Network.read(document)
        except Unreadable as error:
            one_sentence(error)


@pytest.mark.parametrize("name", ["weth", "usdg", "permit2", "v3Factory", "swapRouter02", "universalRouter"])
def test_a_network_without_one_of_its_contracts_is_refused(name: str) -> None:
    contracts = dict(NETWORK_FILE["contracts"])  # type: ignore[call-overload]
    for value in (None, contracts["launchpadHook"], "0x" + "0" * 40, "0x" + "2".rjust(40, "0")):
        with pytest.raises(Unreadable):
            Network.read({"chainId": 4663, "contracts": {**contracts, name: value}})
    del contracts[name]
    with pytest.raises(Unreadable, match=name):
        Network.read({"chainId": 4663, "contracts": contracts})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[]",
        "null",
        "{]",
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":1}}',
        '{"a":NaN}',
        "[" * 200_000,
        "1" * 5000,
    ],
)
def test_a_file_that_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        parse(text)


def test_a_file_is_read_as_it_stands() -> None:
    answer = body(CASES[0])
    assert parse(json.dumps(answer)) == answer


@pytest.mark.parametrize(
    "asked",
    [Request(wallet="me"), Request(token="it"), Request(side="\u202e"), Request(amount="\ud800"),
     Request(amount="1" * 10_000), Request(amount_raw=HUGE), Request(slippage_bps=-HUGE)],
)  # fmt: skip
def test_a_strange_request_is_refused_or_a_finding(asked: Request) -> None:
    try:
        report = verify(body(CASES[1]), NETWORK, asked)
    except Unreadable:
        return
    assert not report.ok
    assert "\n".join(lines(report)).isascii()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": "rate_limited", "message": "Wait 20 s."}, "rate_limited, 'Wait 20 s.'."),
        ({"code": "<b>", "message": "\x1b[1m\U0001d598" * 60}, "without a code, '"),
        ({}, "without a code, null."),
    ],
)
def test_an_error_that_was_saved_is_told_as_that(error: Json, expected: str) -> None:
    with pytest.raises(Unreadable) as raised:
        verify({"error": error}, NETWORK)
    assert str(raised.value).startswith(f"The file is an error, not a prepared trade: {expected}")
    one_sentence(raised.value)
