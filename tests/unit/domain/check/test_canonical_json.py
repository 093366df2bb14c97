"""The same evidence is the same bytes, and back; anything else is a ValueError."""

import dataclasses
import json
import sys
from typing import Any, ClassVar, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.base.venue import OtherPool, PoolFacts, Venue
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import (
    AccountRights,
    CodeSign,
    CompletedBuy,
    Crowd,
    CrowdSale,
    CrowdTrade,
    CrowdWallet,
    Curve,
    DeployerRecord,
    Environment,
    EnvironmentBuy,
    Evidence,
    HolderSell,
    HolderSells,
    HookCarry,
    IsolatedTrade,
    LaunchRecord,
    MarketRates,
    Missing,
    NotTried,
    NumberInstruction,
    NumberSubstitution,
    OwnerCall,
    OwnerCalls,
    PoolLaunch,
    Probe,
    ProbeCell,
    QuoteHop,
    QuoteRate,
    RefusedCall,
    Sold,
    TokenFacts,
    VenueEvidence,
)
from unit.domain.builders import MARKET, NODE, evidence, sold, venue
from unit.domain.launches import LAUNCH, POOL_LAUNCH, at, v4

QUICK = settings(max_examples=60, deadline=None)

Text = st.text(max_size=20)
Number = st.one_of(
    st.integers(-3, 20),
    st.integers(-(2**256), 2**256),
    st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, -(2**53)]),
)
Addresses = st.integers(0, 2**160 - 1).map(lambda n: Address(f"0x{n:040x}"))
Gap = st.builds(Missing, st.sampled_from(["node", "token"]), Text)
Sizes = st.sampled_from(["probe", "tenth", "hundredth", "thousandth", "large"])
Refusal = st.builds(
    RefusedCall, st.sampled_from(["fund", "buy", "approve", "transfer", "sell"]), st.none() | Text, Number
)
Buys = st.builds(
    EnvironmentBuy,
    Sizes,
    Number,
    st.one_of(
        st.builds(
            CompletedBuy, *[Number] * 4, st.lists(Number, max_size=3).map(tuple), Number, st.booleans()
        ),
        Refusal,
        Gap,
    ),
)
Probes = st.builds(Probe, Sizes, Number, Number, Number, st.sampled_from(["buyer", "receiver"]))
Sales = st.builds(Sold, *[Number] * 7, st.none() | Number)
Cells = st.builds(ProbeCell, Probes, st.one_of(Sales, Refusal, Gap))
Venues = st.builds(
    Venue,
    st.sampled_from(["launchpad_curve", "launchpad_pool", "amm_v3", "amm_v4"]),
    st.one_of(st.sampled_from(["eth", "weth", "usdg"]), Addresses),
    Addresses,
    st.none() | Addresses,
    Number,
    Number,
    st.none() | Addresses,
    st.none() | Text,
)
Wallets = st.builds(
    CrowdWallet,
    Addresses,
    *[Number] * 7,
    st.booleans(),
    Number,
    Number,
    st.sampled_from(["usual", "second route", "pieces"]),
)
CrowdTrades = st.builds(CrowdTrade, Wallets, st.one_of(st.builds(CrowdSale, *[Number] * 6), Refusal, Gap))
Isolated = st.builds(
    IsolatedTrade,
    Number,
    st.sampled_from(["as drawn", "wallet", "others sold", "tip"]),
    st.one_of(Sales, Refusal, Gap),
)
Crowds = st.builds(
    Crowd, st.lists(CrowdTrades, max_size=2).map(tuple), st.lists(Isolated, max_size=2).map(tuple)
)
Tried = st.builds(
    VenueEvidence,
    Venues,
    st.one_of(st.builds(PoolFacts, st.booleans(), Number, Number, Number), Gap),
    st.lists(Buys, max_size=3).map(tuple),
    st.lists(Cells, max_size=3).map(tuple),
    st.one_of(st.none(), Refusal, Gap),
    st.one_of(st.none(), Refusal, Gap),
    st.one_of(st.none(), st.builds(HookCarry, Number, Number, Number), Refusal, Gap),
    st.one_of(st.none(), Sales, Refusal, Gap),
    st.one_of(st.none(), Crowds, Gap),
)
Facts = st.builds(
    TokenFacts,
    Number | Gap,
    st.one_of(st.none(), Text, Gap),
    st.one_of(st.none(), Text, Gap),
    st.one_of(st.none(), Number, Gap),
    st.one_of(st.none(), Number, Gap),
    st.booleans() | Gap,
    st.one_of(st.none(), Addresses, Gap),
    st.one_of(st.none(), Addresses, Gap),
)
Environments = st.builds(
    Environment, Addresses, Addresses, Addresses, Number, Addresses, Text, *[Number] * 5, st.booleans(),
    Number, Number, Number, st.lists(Number, max_size=3).map(tuple), Number, st.booleans(),
)  # fmt: skip
Rates = st.builds(
    QuoteRate,
    Addresses,
    Number,
    st.lists(st.builds(QuoteHop, Addresses, Number), max_size=2).map(tuple),
    Number,
)
Curves = st.builds(Curve, *[Number] * 6, st.booleans(), Number, Number, st.none() | Number)
Launches = st.builds(
    LaunchRecord,
    st.sampled_from(["curve", "swept", "pooled", "rescued"]),
    *[Addresses] * 3,
    *[Number] * 5,
    st.none() | Number,
    st.one_of(st.none(), Curves, Gap),
)
PoolLaunches = st.builds(
    PoolLaunch, Addresses, Addresses, Number, st.none() | Number, st.none() | Number, st.booleans()
)
Outcomes = st.one_of(Sales, Refusal, Gap)
OwnersCalls = st.builds(
    OwnerCall, Text, Text, st.sampled_from(["owner", "proxy admin"]), Addresses, Addresses,
    st.lists(Text, max_size=2).map(tuple), st.none() | Outcomes, st.none() | Addresses, st.none() | Addresses,
)  # fmt: skip
HoldersSells = st.builds(HolderSell, Addresses, st.none() | Number, Outcomes, st.none() | Outcomes)
Whole = st.builds(
    Evidence,
    Number,
    Text,
    Number,
    st.builds(BlockRef, Number, Text, Number),
    Number,
    Addresses,
    st.sampled_from(["token", "weth", "usdg"]),
    Facts,
    st.builds(
        MarketRates,
        Number,
        Number | Gap,
        st.none() | Number,
        st.none() | Number,
        st.lists(Rates, max_size=2).map(tuple),
    ),
    st.lists(Environments, max_size=2).map(tuple),
    st.lists(Tried, max_size=2).map(tuple),
    st.booleans(),
    Number,
    Number,
    st.one_of(st.none(), Launches, PoolLaunches, Gap),
    st.lists(Addresses, max_size=2).map(tuple),
    st.none() | st.builds(DeployerRecord, *[Number] * 5),
    st.one_of(
        st.none(), Gap, st.builds(OwnerCalls, Number, Outcomes, st.lists(OwnersCalls).map(tuple), Number)
    ),
    st.one_of(
        st.none(), Gap, st.builds(HolderSells, Number, Sales, Number, st.lists(HoldersSells).map(tuple))
    ),
    code_signs=st.lists(st.sampled_from(get_args(CodeSign)), max_size=2).map(tuple),
    account_rights=st.one_of(
        st.none(),
        Gap,
        st.builds(
            AccountRights,
            Number,
            Outcomes,
            Number,
            Number,
            st.lists(OwnersCalls).map(tuple),
            Number,
            Number,
            st.lists(st.sampled_from(["events", "storage", "contracts", "calls"]), max_size=2).map(tuple),
            st.booleans(),
        ),
    ),
    numbers=st.none()
    | st.builds(
        NumberSubstitution,
        st.sampled_from(get_args(NumberInstruction)),
        Number,
        st.lists(Addresses, max_size=2).map(tuple),
        st.lists(Text, max_size=2).map(tuple),
        Number,
    ),
)

Json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_infinity=False), st.text(max_size=10)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)

OTHER = Address("0x" + "99" * 20)
RATE = QuoteRate(OTHER, 10**15, (QuoteHop(OTHER, 500),), 8)
WALLET = CrowdWallet(OTHER, 1, 2, 3, 4, 5, 6, 7, True, 8, 9, "pieces")
EXAMPLE = dataclasses.replace(
    evidence(
        at(
            v4(),
            venue(told_on_buy=NODE, told_on_sell=RefusedCall("sell", "no", 1)),
            carried=HookCarry(2**60, 1, 2),
        ),
        dataclasses.replace(
            venue(
                (),
                facts=NODE,
                all_buys=(EnvironmentBuy("probe", 0, CompletedBuy(1, 2, 3, 4, (5,), 6, True)),),
            ),
            crossed=Sold(1, 2, 3, 4, 5, 6, 7, 8),
            short_raw=2,
            crossed_large=RefusedCall("sell", "no", 1),
            crowd=Crowd(
                (CrowdTrade(WALLET, CrowdSale(1, 2, 3, 4, 5, 6)), CrowdTrade(WALLET, NotTried("gas"))),
                (IsolatedTrade(0, "others", NODE),),
            ),
        ),
        market=dataclasses.replace(MARKET, feed_usd_e8=1, rates=(RATE,)),
        facts=TokenFacts(1, "0x", "0x", 18, 10**27, True, OTHER, OTHER),
    ),
    environments=(
        Environment(OTHER, OTHER, OTHER, 1, OTHER, "0x", 1, 2, 1, sell_gas_ladder=(1,), company=True),
    ),
    launch=LAUNCH,
    given=(OTHER,),
    deployer=DeployerRecord(5, 1, 2, 3, 4),
    owner_calls=OwnerCalls(
        0, NODE, (OwnerCall("pause()", "", "owner", OTHER, OTHER, ("0x",), NODE, OTHER),), 1
    ),
    holder_sells=HolderSells(0, Sold(1, 2, 3, 4, 5, 6, 7, 8), 1, (HolderSell(OTHER, 1, NODE, NODE),)),
    code_signs=("origin",),
    numbers=NumberSubstitution("COINBASE", 23_000_000, (OTHER,), ("0x" + "5c" * 32,), 2),
    other_pools=(OtherPool("0x" + "0f" * 20, OTHER),),
    account_rights=AccountRights(
        0,
        NODE,
        1,
        2,
        (OwnerCall("f()", "", "contract", OTHER, OTHER, (), None, None, OTHER),),
        3,
        4,
        ("events",),
        True,
    ),
)
OTHER_EXAMPLE = dataclasses.replace(EXAMPLE, launch=POOL_LAUNCH)
"""Every kind of piece there is, and every field told in one of the two at least."""


def pieces(kind: Any) -> set[type]:
    """Every dataclass that a kind may hold, itself included."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return {kind}.union(*(pieces(hint) for hint in get_type_hints(kind).values()))
    return set().union(*map(pieces, get_args(kind)))


def filled_fields(node: object) -> set[tuple[type, str]]:
    """Every field of every piece that stands in a tree as something else than None or nothing at all."""
    if isinstance(node, tuple):
        return set().union(*map(filled_fields, node))
    if not dataclasses.is_dataclass(node):
        return set()
    fields = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
    here = {(type(node), name) for name, value in fields.items() if value is not None and value != ()}
    return here.union(*map(filled_fields, fields.values()))


def load_or_value_error(document: bytes) -> Evidence | None:
    try:
        return canonical_json.load(Evidence, document)
    except ValueError:
        return None


@QUICK
@given(Whole)
def test_evidence_comes_back_as_it_was(found: Evidence) -> None:
    document = canonical_json.dump(found)
    assert canonical_json.load(Evidence, document) == found
    assert canonical_json.dump(canonical_json.load(Evidence, document)) == document


def test_the_example_has_every_field_of_every_kind_of_piece() -> None:
    every = {(kind, f.name) for kind in pieces(Evidence) for f in dataclasses.fields(kind)}
    assert every - filled_fields(EXAMPLE) - filled_fields(OTHER_EXAMPLE) == set()


@pytest.mark.parametrize(
    "whole", [EXAMPLE, OTHER_EXAMPLE, dataclasses.replace(EXAMPLE, launch=NODE, deployer=None)]
)
def test_evidence_of_a_launch_comes_back_as_it_was(whole: Evidence) -> None:
    assert canonical_json.load(Evidence, canonical_json.dump(whole)) == whole


@pytest.mark.parametrize("state", [NODE, None])
def test_a_launch_without_its_curves_state_comes_back_as_it_was(state: Missing | None) -> None:
    known = dataclasses.replace(LAUNCH, curve_state=state)
    assert canonical_json.load(LaunchRecord, canonical_json.dump(known)) == known


@QUICK
@given(Whole)
def test_a_document_is_plain_sorted_and_exact_in_any_reader(found: Evidence) -> None:
    document = canonical_json.dump(found)
    plain = json.loads(document)
    assert document == json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()

    def exact(node: Any) -> bool:
        if isinstance(node, dict):
            return all(map(exact, node.values()))
        if isinstance(node, list):
            return all(map(exact, node))
        return not isinstance(node, int | float) or abs(node) < 2**53

    assert exact(plain)


def test_integers_beyond_doubles_stand_as_text() -> None:
    assert b'"paid_raw":"100000000000000000"' in canonical_json.dump(sold())
    assert canonical_json.load(
        Sold, canonical_json.dump(Sold(2**53, 2**53 - 1, 0, 1, 2, -(2**255), 3))
    ) == Sold(2**53, 2**53 - 1, 0, 1, 2, -(2**255), 3)


def test_a_class_is_named_by_its_tag_and_not_by_its_name() -> None:
    renamed = type("Renamed", (MarketRates,), {"wire": "Market"})(
        *(getattr(MARKET, f.name) for f in dataclasses.fields(MARKET))
    )
    assert canonical_json.dump(renamed) == canonical_json.dump(MARKET)


def test_a_field_may_keep_its_key_under_another_name() -> None:
    @dataclasses.dataclass(frozen=True)
    class Sample:
        wire: ClassVar[str] = "Sample"
        block_gas: int = dataclasses.field(metadata={"wire": "gas"})

    assert canonical_json.dump(Sample(7)) == b'{"gas":7,"kind_of":"Sample"}'
    assert canonical_json.load(Sample, b'{"gas":7,"kind_of":"Sample"}') == Sample(7)


def test_a_class_without_a_tag_has_no_place_in_evidence() -> None:
    untagged = type("Untagged", (MarketRates,), {})(
        *(getattr(MARKET, f.name) for f in dataclasses.fields(MARKET))
    )
    with pytest.raises(TypeError, match="no wire tag"):
        canonical_json.dump(untagged)


@pytest.mark.parametrize("value", [1.5, b"x", [1], {"a": 1}, object()])
def test_other_values_have_no_place_in_evidence(value: object) -> None:
    with pytest.raises(TypeError, match="no place"):
        canonical_json.dump(value)


@QUICK
@given(Json)
def test_arbitrary_json_is_a_value_error(junk: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the text
        canonical_json.load(Evidence, json.dumps(junk).encode())


@QUICK
@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_a_value_error(junk: bytes) -> None:
    assert load_or_value_error(junk) is None


def leaves(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in items:
        found += leaves(inner, (*path, key))
    return found


PATHS = leaves(json.loads(canonical_json.dump(EXAMPLE)))


def changed(path: tuple[Any, ...], value: Any, drop: bool = False) -> bytes:
    """The example with one place replaced, or gone."""
    plain = json.loads(canonical_json.dump(EXAMPLE))
    node = plain
    for key in path[:-1]:
        node = node[key]
    if drop:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return json.dumps(plain).encode()


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PATHS), Json, st.booleans())
def test_a_changed_document_is_evidence_or_a_value_error(
    path: tuple[Any, ...], value: Any, drop: bool
) -> None:
    found = load_or_value_error(changed(path, value, drop))
    assert found is None or isinstance(found, Evidence)


def test_no_key_may_be_left_out() -> None:
    keys = [path for path in PATHS if not isinstance(path[-1], int)]
    assert not [path for path in keys if load_or_value_error(changed(path, None, drop=True)) is not None]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "x"),
        (("schema",), None),
        (("schema",), []),
        (("role",), "nft"),
        (("role",), ["token"]),
        (("token",), 5),
        (("block",), None),
        (("kind_of",), "Block"),
        (("kind_of",), ["Evidence"]),
        (("venues",), None),
        (("venues",), 7),
        (("venues", 0), "x"),
        (("venues", 0, "facts", "kind_of"), "Sold"),
        (("candidates_complete",), 1),
    ],
    ids=str,
)
def test_a_value_of_the_wrong_kind_is_a_value_error(path: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        canonical_json.load(Evidence, changed(path, value))


@pytest.mark.parametrize("text", ["Infinity", "-Infinity", "1e999"])
def test_an_infinite_number_is_a_value_error(text: str) -> None:
    document = changed(("schema",), "HERE").replace(b'"HERE"', text.encode())
    assert load_or_value_error(document) is None


def test_a_deeply_nested_document_is_a_value_error() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    try:
        assert load_or_value_error(b"[" * 5000) is None
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    ("path", "value"),
    [(("schema",), True), (("schema",), 1.5), (("schema",), " 1_0 "), (("venues",), {}), (("venues",), "")],
    ids=str,
)
def test_what_no_dump_writes_is_not_read(path: tuple[Any, ...], value: Any) -> None:
    assert load_or_value_error(changed(path, value)) is None


def test_the_market_is_read_by_its_own_kind_too() -> None:
    assert canonical_json.load(MarketRates, canonical_json.dump(MARKET)) == MARKET
    with pytest.raises(ValueError, match="Market"):
        canonical_json.load(PoolFacts, canonical_json.dump(MARKET))
