"""Proofs that somebody hands over: read or refused in one line, judged again, and their beginning weighed."""

import json
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from roundtrip.chain.blocks.environments import draw
from roundtrip.chain.rpc.client import RpcCall
from roundtrip.chain.rpc.dialect import ANVIL
from roundtrip.chain.rpc.recorder import pack
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, QuoteHop, QuoteRate
from roundtrip.domain.check.proof_input import ProofInputs
from roundtrip.domain.check.verdict import judge
from roundtrip.services.check.proof_file import (
    MAX_FILE_BYTES,
    Claim,
    UnreadableProof,
    find_mismatch,
    is_genuine,
    read_claim,
    rejudge,
)
from roundtrip.services.check.proof_schema import encode_proof_inputs, present
from roundtrip.services.engine.sell_results import EVIDENCE_SCHEMA
from roundtrip.store.check.evidence import KeptProof
from roundtrip.venues import BY_KIND, amm_v3, amm_v4, launchpad_curve, launchpad_pool
from roundtrip.venues.base import Contracts
from unit.chain.samples import interpreters_recursion_limit
from unit.domain.builders import NODE, TOKEN, cells, evidence, venue
from unit.domain.launches import LAUNCH
from unit.services.heads import HEAD
from unit.venues.network import CONTRACTS, address

SEED = bytes(range(32))
CHAIN_ID = 4663
REQUEST: dict[str, Any] = {"jsonrpc": "2.0", "id": 0, "method": "eth_chainId", "params": []}
OURS = amm_v3.candidates(TOKEN, CONTRACTS)[2]
Json = dict[str, Any]


def sound() -> Evidence:
    """Evidence of one venue, its wallets drawn from the seed."""
    document = evidence(replace(venue(cells()), venue=OURS))
    head = replace(
        HEAD, block=document.block, base_fee_wei=document.block_base_fee_wei, market=document.market
    )
    return replace(document, schema=EVIDENCE_SCHEMA, environments=draw(SEED, head, POLICY))


def proof(found: Evidence | None = None, **begun: Any) -> Json:
    """What the service would answer with it, as JSON."""
    found = found or sound()
    began = ProofInputs(**{"seed": "0x" + SEED.hex(), "venues": (OURS,), "others": 0, **begun})
    document = encode_proof_inputs(CONTRACTS, ANVIL, judge(found, POLICY).verdict, began)
    trip = pack([[RpcCall("eth_chainId", [])]])
    kept = KeptProof(datetime(2026, 11, 21, tzinfo=UTC), canonical_json.dump(found), document, [trip])
    answer: Json = json.loads(msgspec.json.encode(present(kept)))
    return answer


def claim(document: Json) -> Claim:
    return read_claim(json.dumps(document).encode())


def test_a_sound_proof_is_read_and_judged_again() -> None:
    read = claim(proof())
    assert read.evidence == sound()
    assert read.trips == [[[REQUEST]]]
    held = rejudge(read, POLICY)
    assert held.holds is True
    assert "ok, ok: It was bought and sold straight back" in held.seen
    assert find_mismatch(read, CHAIN_ID, CONTRACTS, POLICY) is None


# --- what is no proof -------------------------------------------------------------------------------


def changed(path: str, value: Any, document: Json | None = None) -> Json:
    """The proof with another value at a path of keys."""
    found = proof() if document is None else document
    at: Any = found
    *way, last = path.split(".")
    for key in way:
        at = at[int(key) if isinstance(at, list) else key]
    at[int(last) if isinstance(at, list) else last] = value
    return found


def text_of(document: Json, instead: str, of: str) -> bytes:
    """The proof as text, with something else in a place."""
    text = json.dumps(document)
    assert of in text
    return text.replace(of, instead).encode()


DEEP = "[" * 9000 + "]" * 9000
HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"<html>",
    "no object": b"[1]",
    "no text": b"\xff\xfe",
    "an error of the service": b'{"error": {"code": "busy", "message": "Too many."}}',
    "nested without end": b'{"evidence":' + b"[" * 500_000,
    "nested parameters": text_of(proof(), f'"params": {DEEP}', '"params": []'),
    "parameters nested as no check's are": text_of(
        proof(), f'"params": {"[" * 200}{"]" * 200}', '"params": []'
    ),
    "nested evidence": text_of({**proof(), "evidence": 7}, f'"evidence": {DEEP}', '"evidence": 7'),
    "too large": b" " * (MAX_FILE_BYTES + 1),
    "no trips": json.dumps({**proof(), "trips": 5}).encode(),
    "an unknown level": json.dumps(changed("verdict.level", "\x1b[31mgreat")).encode(),
    "a field more in a request": json.dumps(changed("trips.0.0.0", {**REQUEST, "url": "http://x"})).encode(),
    "no evidence": json.dumps({**proof(), "evidence": None}).encode(),
    "evidence of another shape": json.dumps({**proof(), "evidence": {"schema": EVIDENCE_SCHEMA}}).encode(),
    "evidence of another release": json.dumps(changed("evidence.schema", 1)).encode(),
    "a fraction in the evidence": json.dumps(changed("evidence.chain_id", 1.5)).encode(),
    "a number without end": text_of(proof(), f'"pools_found": {"9" * 5000}', '"pools_found": 0'),
    "another beginning": json.dumps({**proof(), "begun": {}}).encode(),
}


@pytest.fixture(autouse=True)
def _the_interpreters_own_limit() -> Iterator[None]:
    """As the command line has it; some library under test raises it."""
    with interpreters_recursion_limit():
        yield


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_proof_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(UnreadableProof) as refused:
        read_claim(HOSTILE[name])
    text = str(refused.value)
    assert text.isprintable()
    assert len(text) < 200


# --- the verdict ------------------------------------------------------------------------------------


LIES: dict[str, tuple[str, Any, str]] = {
    "another text": ("verdict.text", "Buy it all.", "The file says|Buy it all"),
    "another code": ("verdict.code", "cannot_sell", "cannot_sell"),
    "another level": ("verdict.level", "warn", "ok, warn"),
    "another address": ("address", "0x" + "99" * 20, "address is 0x99"),
    "another chain": ("chainId", 1, "chainId is 1 in the file and 4663"),
    "another block": ("block.number", 7, "block.number is 7 in the file and 100"),
    "another hash": ("block.hash", "0x" + "00" * 32, "block.hash"),
    "another time": ("block.time", "2020-01-01T00:00:00Z", "block.time is 2020"),
    "another policy": ("policyVersion", "mine", "policyVersion is mine"),
    "less back": ("evidence.venues.0.cells.0.outcome.back_raw", 1, "cannot_sell|danger|heavy|Its evidence"),
    "hidden letters": ("verdict.text", "\x1b[2Jall is well\u202e", "all is well"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_changed_word_is_found_out(name: str) -> None:
    path, value, text = LIES[name]
    held = rejudge(claim(changed(path, value)), POLICY)
    assert held.holds is False
    assert any(one in held.seen for one in text.split("|")), held.seen
    assert held.seen.isprintable()


def test_under_another_policy_both_are_told_and_nothing_is_claimed() -> None:
    stricter = replace(POLICY, version="next", warn_loss_bps=10, danger_loss_bps=20)
    held = rejudge(claim(proof()), stricter)
    assert held.holds is None
    assert f"under policy {POLICY.version}: ok, ok" in held.seen
    assert "Under next, the policy here: " in held.seen
    assert rejudge(claim(proof()), replace(POLICY, version="next")).holds is True


@pytest.mark.parametrize("amount", [0, -1, "1" + "0" * 4000])
@pytest.mark.parametrize(
    "path",
    [
        "evidence.venues.0.cells.0.outcome.paid_raw",
        "evidence.venues.0.cells.0.probe.share_bps",
        "evidence.venues.0.buys.0.outcome.paid_raw",
        "evidence.venues.0.buys.0.outcome.offered_raw",
        "evidence.venues.0.venue.fee_pips",
        "evidence.market.usdg_per_eth_raw",
        "evidence.block.timestamp_s",
        "evidence.environments.0.size_bps",
    ],
)
def test_numbers_that_no_check_has_end_in_a_line(path: str, amount: int | str) -> None:
    read = claim(changed(path, amount))
    assert rejudge(read, POLICY).seen.isprintable()
    find_mismatch(read, CHAIN_ID, CONTRACTS, POLICY)


# --- how it began -----------------------------------------------------------------------------------


EVIL, OTHER_MONEY = address(0xE711), address(0x5A4E)


def describe_mismatch(document: Json, contracts: Contracts = CONTRACTS, chain_id: int = CHAIN_ID) -> str:
    found = find_mismatch(claim(document), chain_id, contracts, POLICY)
    assert found is not None
    return found


@pytest.mark.parametrize("name", [f.name for f in fields(Contracts)])
def test_other_contracts_than_the_readers_prove_nothing(name: str) -> None:
    one = address(0xBAD)
    several = {field.name for field in fields(Contracts) if field.default == ()}
    others = ((one,), (one, one)) if name in several else (one, None)
    for other in others:
        changed_one: dict[str, Any] = {name: other}
        trusted = replace(CONTRACTS, **changed_one)
        assert "so the file proves nothing" in describe_mismatch(proof(), trusted)


def test_another_chain_than_the_readers_is_said() -> None:
    assert describe_mismatch(proof(), chain_id=1).startswith("the proof is for chain 4663")


def test_a_request_that_sends_is_said() -> None:
    text = describe_mismatch(changed("trips.0.0.0.method", "eth_sendRawTransaction"))
    assert text.startswith("the requests include eth_sendRawTransaction")


def _other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, str):
        return "0x" + "12" * (len(value) // 2 - 1)
    if isinstance(value, tuple):
        return (*value, 5)
    return not value if isinstance(value, bool) else value + 1


@pytest.mark.parametrize("field", [f for f in asdict(sound().environments[0]) if f != "coinbase"])
@pytest.mark.parametrize("which", [0, 1])
def test_wallets_that_somebody_chose_are_found_out(field: str, which: int) -> None:
    own = sound()
    environment = own.environments[which]
    chosen_one: dict[str, Any] = {field: _other(getattr(environment, field))}
    chosen = [replace(environment, **chosen_one) if n == which else e for n, e in enumerate(own.environments)]
    assert "not drawn from the seed" in describe_mismatch(proof(replace(own, environments=tuple(chosen))))


@pytest.mark.parametrize(
    "seed", ["", "0x", "0x12", "0x" + "zz" * 32, "0x" + "00" * 32, "0x" + SEED.hex() + "00"]
)
def test_another_seed_is_found_out(seed: str) -> None:
    assert describe_mismatch(proof(seed=seed))


def test_without_wallets_no_check_begins() -> None:
    assert "it has no wallets" in describe_mismatch(proof(replace(sound(), environments=())))


@pytest.mark.parametrize(
    "forged",
    [
        replace(OURS, pool=address(0xBAD)),
        replace(OURS, pool=None),
        replace(OURS, fee_pips=2**24),
        replace(OURS, fee_pips=-1),
        replace(OURS, hook=address(5)),
        replace(OURS, quote="usdg"),
        replace(OURS, quote_address=TOKEN),
        replace(OURS, quote_address=Address("0x")),
        replace(OURS, pool=Address((OURS.pool or "").upper())),
        Venue("launchpad_curve", "eth", ZERO_ADDRESS, address(0xBAD), 0),
        Venue("amm_v4", "eth", ZERO_ADDRESS, None, 3000, 60, None, "0x" + "ab" * 32),
        Venue("launchpad_pool", "eth", ZERO_ADDRESS, None, 0, 200, address(0xBAD), "0x" + "ab" * 32),
    ],
)
def test_venues_that_somebody_made_up_are_found_out(forged: Venue) -> None:
    assert describe_mismatch(proof(venues=(OURS, forged)))


def test_more_venues_than_a_check_asks_are_refused() -> None:
    assert "more venues" in describe_mismatch(proof(venues=(OURS,) * 1000))


def test_every_kind_of_venue_can_be_genuine() -> None:
    launched = replace(sound(), launch=LAUNCH)
    pool = launchpad_pool.candidates(TOKEN, CONTRACTS)[0]
    real = [
        amm_v3.candidates(TOKEN, CONTRACTS)[0],
        amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, 500, 10, address(0x80)),
        pool,
        launchpad_curve.curve(ZERO_ADDRESS, LAUNCH.curve, CONTRACTS),
    ]
    assert {one.kind for one in real} == BY_KIND.keys()
    assert [is_genuine(one, launched, CONTRACTS) for one in real] == [True] * 4
    assert not is_genuine(real[3], sound(), CONTRACTS)
    other = launchpad_curve.curve(ZERO_ADDRESS, address(0xBAD), CONTRACTS)
    assert not is_genuine(other, launched, CONTRACTS)
    assert not is_genuine(other, replace(sound(), launch=NODE), CONTRACTS)


def test_a_pool_against_nobodys_money_is_no_checks() -> None:
    """Anybody can make one against a token of his own, which opens a trap while it is tried."""
    forged = amm_v3.pool(TOKEN, EVIL, 3000, CONTRACTS)
    assert is_genuine(forged, sound(), CONTRACTS)
    assert "not money that a check trades for" in describe_mismatch(proof(venues=(OURS, forged)))
    # What the launchpad says it was launched against is money; that it says so, the answers prove.
    launched = replace(sound(), launch=replace(LAUNCH, quote_address=EVIL))
    assert find_mismatch(claim(proof(launched, venues=(OURS, forged))), CHAIN_ID, CONTRACTS, POLICY) is None


@pytest.mark.parametrize(
    "route",
    [
        (),
        (QuoteHop(EVIL, 3000), QuoteHop(OTHER_MONEY, 3000)),
        (QuoteHop(CONTRACTS.usdg, 100), QuoteHop(CONTRACTS.weth, 500), QuoteHop(OTHER_MONEY, 3000)),
        (QuoteHop(CONTRACTS.usdg, 3000), QuoteHop(OTHER_MONEY, 3000)),
        (QuoteHop(OTHER_MONEY, 3001),),
        (QuoteHop(EVIL, 3000),),
    ],
)
def test_a_way_to_other_money_that_no_check_goes_is_found_out(route: tuple[QuoteHop, ...]) -> None:
    rate = QuoteRate(OTHER_MONEY, 10**18, route, 18)
    market = replace(sound().market, pool_fee_pips=500, rates=(rate,))
    assert "by a route" in describe_mismatch(proof(replace(sound(), market=market)))


@pytest.mark.parametrize(
    "route", [(QuoteHop(OTHER_MONEY, 3000),), (QuoteHop(CONTRACTS.usdg, 500), QuoteHop(OTHER_MONEY, 3000))]
)
def test_a_way_that_a_check_goes_is_none_of_a_liar(route: tuple[QuoteHop, ...]) -> None:
    rate = QuoteRate(OTHER_MONEY, 10**18, route, 18)
    market = replace(sound().market, pool_fee_pips=500, rates=(rate,))
    document = proof(replace(sound(), market=market))
    assert find_mismatch(claim(document), CHAIN_ID, CONTRACTS, POLICY) is None
