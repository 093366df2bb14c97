"""Getting a key: real signatures, the real database, the real chain behind it."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from eth_utils.crypto import keccak

from roundtrip.chain.wallet.signatures import hash_text
from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import AddressAllowance, Allowances, CallAllowance
from roundtrip.domain.base.errors import LimitReached, RoundtripError
from roundtrip.services.runtime.context import Context
from roundtrip.store.accounts import accounts
from support.clocks import Clock
from support.keys import (
    NOW_S,
    ORDER,
    Kept,
    Person,
    account_of_key,
    asked,
    claimed_text,
    code_of,
    kept_of,
    key_for,
    revoke_of,
    text_for,
)


async def test_an_address_makes_a_few_new_accounts_a_day(shop: Context, clock: Clock) -> None:
    """A wallet that has an account already is none; another address, and the next day, have their own."""
    few = replace(ALLOWANCES, address=AddressAllowance(accounts=2))
    here, there = (replace(shop, allowances=few, address=f"address:{name}") for name in ("here", "there"))
    first = Person()
    await key_for(here, first)
    await key_for(here, Person())
    third = Person()
    with pytest.raises(LimitReached) as caught:
        await key_for(here, third)
    assert (caught.value.code, caught.value.status) == ("rate_limited", 429)
    assert 0 < (caught.value.retry_after_s or 0) <= 86_401
    assert (await kept_of(shop, third.address)).live == 0
    await key_for(here, first)
    await key_for(there, Person())
    await key_for(replace(here, address=None), Person())
    clock.now_s += 86_400
    await key_for(here, third)
    async with shop.pool.acquire() as connection:
        rows = await connection.fetch("SELECT address_hash FROM accounts.made_from")
    assert all(b"here" not in row["address_hash"] for row in rows)
    assert len(rows) == 1


ALLOWANCES = Allowances(CallAllowance(10), CallAllowance(60, 20_000), CallAllowance(300, 200_000))

# --- the answers -----------------------------------------------------------------------------------


async def test_a_signature_brings_a_key(shop: Context) -> None:
    person = Person()
    answer = await key_for(shop, person)
    assert answer.keys() == {"key", "shownOnce", "mite", "limits"}
    assert keys.is_key(answer["key"])
    assert answer["shownOnce"] is True
    assert re.fullmatch("mite-[2-9a-z]{4}", answer["mite"]["designation"])
    assert answer["mite"]["wallet"] == person.address
    assert answer["mite"]["agent"] is False
    assert answer["limits"] == {"perMinute": 60, "perDay": 20_000}
    assert await kept_of(shop, person.address) == Kept(1, [answer["key"][:8]], 1)


async def test_the_key_is_its_wallets(shop: Context) -> None:
    person = Person()
    key = (await key_for(shop, person))["key"]
    async with shop.pool.acquire() as connection:
        account = await account_of_key(connection, keys.hash_of(key))
        assert account is not None
        assert account.wallet == person.address
        await revoke_of(shop, person.address, 0)
        assert await account_of_key(connection, keys.hash_of(key)) is None


async def test_limits_are_those_that_are_set(shop: Context) -> None:
    set_ = Allowances(CallAllowance(1), CallAllowance(2, 3), CallAllowance(4, 5))
    answer = await key_for(replace(shop, allowances=set_), Person())
    assert answer["limits"] == {"perMinute": 2, "perDay": 3}


async def test_an_account_may_be_an_agents_and_stays_one(shop: Context) -> None:
    person = Person()
    tagged = await key_for(shop, person, agent=True, name=" My  Bot 9 ", label="a\u202e b\n c")
    again = await key_for(shop, person)
    assert tagged["mite"] == again["mite"]
    assert again["mite"]["agent"] is True
    row, *_ = await shop.pool.fetch(
        "SELECT account.is_agent, account.agent_name, key.label FROM accounts.account AS account "
        "JOIN accounts.key AS key"
        " ON key.account_id = account.id WHERE account.wallet = $1 ORDER BY key.id",
        bytes.fromhex(person.address[2:]),
    )
    assert tuple(row) == (True, "My Bot 9", "a b c")
    await key_for(shop, person, agent=True)
    assert await name_of(shop, person) == "My Bot 9"


async def name_of(shop: Context, person: Person) -> str | None:
    agent_name: str | None = await shop.pool.fetchval(
        "SELECT agent_name FROM accounts.account WHERE wallet = $1", bytes.fromhex(person.address[2:])
    )
    return agent_name


async def test_a_name_counts_for_agents_only(shop: Context) -> None:
    person = Person()
    assert (await key_for(shop, person, name="Bot"))["mite"]["agent"] is False
    assert await name_of(shop, person) is None


async def test_asking_again_within_the_minute_gives_the_same_text(shop: Context, clock: Clock) -> None:
    person = Person()
    first = await text_for(shop, person.address)
    assert await text_for(shop, person.address) == first
    assert await text_for(shop, person.shown) == first
    clock.now_s = NOW_S // 60 * 60 + 59.9
    assert await text_for(shop, person.address) == first
    clock.now_s += 0.1
    assert await text_for(shop, person.address) != first
    assert await text_for(shop, Person().address) != first


async def test_every_asking_gives_a_text_and_a_claim_of_its_own(shop: Context, clock: Clock) -> None:
    person = Person()
    plain = await text_for(shop, person.address)
    asked_for = [await claimed_text(shop, person.address) for _ in range(3)]
    assert len({plain, *(text for text, _ in asked_for)}) == 4
    assert len({claim for _, claim in asked_for}) == 3
    for text, claim in asked_for:
        # They differ from the plain text by the nonce alone, and the claim does not stand in them.
        assert re.sub("Nonce: .*", "", text) == re.sub("Nonce: .*", "", plain)
        assert re.fullmatch("[0-9a-f]{64}", claim)
        assert claim[:16] not in text


async def test_a_wallets_own_key_may_sign_either_text(shop: Context) -> None:
    person = Person()
    text, claim = await claimed_text(shop, person.address)
    _, other_claim = await claimed_text(shop, person.address)
    signature = person.sign(text)
    for shown in (None, other_claim):
        assert await code_of(shop, person.address, signature, claim=shown) == "bad_signature"
    assert await code_of(shop, person.address, signature, claim=claim) == "ok"
    assert await code_of(shop, person.address, signature, claim=claim) == "bad_signature"
    # The plain text needs no claim, and one beside it does no harm.
    plain = person.sign(await text_for(shop, person.address))
    assert await code_of(shop, person.address, plain, claim=claim) == "ok"


async def test_the_name_signed_for_is_the_one_that_is_set(shop: Context) -> None:
    named = replace(shop, public_url="https://roundtrip.example")
    text = await text_for(named, Person().address)
    assert text.startswith("roundtrip.example wants you to sign in with your Ethereum account:\n0x")
    assert "\nURI: https://roundtrip.example\n" in text


# --- what is refused -------------------------------------------------------------------------------

Change = Callable[[str], str]


def line(name: str, value: str) -> Change:
    return lambda text: re.sub(f"(?m)^{name}: .*$", f"{name}: {value}", text)


def without(name: str) -> Change:
    return lambda text: re.sub(f"(?m)^{name}: .*\n?", "", text).rstrip("\n")


OTHER_TEXTS: dict[str, Change] = {
    "another domain": lambda text: text.replace("127.0.0.1:8463 wants", "evil.example wants"),
    "a domain without its port": lambda text: text.replace("127.0.0.1:8463 wants", "127.0.0.1 wants"),
    "a domain with a scheme": lambda text: "http://" + text,
    "another uri": line("URI", "https://evil.example"),
    "a uri with a path": line("URI", "http://127.0.0.1:8463/"),
    "another version": line("Version", "2"),
    "another chain": line("Chain ID", "1"),
    "no chain": without("Chain ID"),
    "another nonce": line("Nonce", "0123456789abcdef0123456789abcdef"),
    "no nonce": without("Nonce"),
    "issued later": line("Issued At", "2025-10-09T08:54:00Z"),
    "issued with an offset": lambda text: text.replace("Z\nExpiration", "+00:00\nExpiration"),
    "a longer life": line("Expiration Time", "2035-10-09T08:53:00Z"),
    "no end": without("Expiration Time"),
    "not before tomorrow": lambda text: text + "\nNot Before: 2025-10-10T00:00:00Z",
    "not before yesterday": lambda text: text + "\nNot Before: 2025-10-08T00:00:00Z",
    "a request id": lambda text: text + "\nRequest ID: 7",
    "resources": lambda text: text + "\nResources:\n- https://evil.example",
    "another statement": lambda text: text.replace("Signing moves nothing", "Signing moves all"),
    "no statement": lambda text: re.sub("\nMake an API key.*\n\n", "\n", text),
    "the wallet in small letters": lambda text: re.sub("0x[0-9a-fA-F]{40}", lambda m: m[0].lower(), text),
    "another wallet": lambda text: re.sub("0x[0-9a-fA-F]{40}", Person().shown, text),
    "an end of line more": lambda text: text + "\n",
    "other ends of lines": lambda text: text.replace("\n", "\r\n"),
    "a blank in front": lambda text: " " + text,
    "nothing": lambda text: "",
}


@pytest.mark.parametrize("change", OTHER_TEXTS.values(), ids=OTHER_TEXTS)
async def test_a_text_that_differs_in_anything_is_refused(shop: Context, change: Change) -> None:
    person = Person()
    text = await text_for(shop, person.address)
    changed = change(text)
    assert changed != text
    assert await code_of(shop, person.address, person.sign(changed)) == "bad_signature"
    assert await code_of(shop, person.address, person.sign(text)) == "ok"


async def test_another_wallets_signature_is_refused(shop: Context) -> None:
    person, thief = Person(), Person()
    text, thiefs = await text_for(shop, person.address), await text_for(shop, thief.address)
    assert await code_of(shop, person.address, thief.sign(text)) == "bad_signature"
    assert await code_of(shop, person.address, thief.sign(thiefs)) == "bad_signature"
    assert await code_of(shop, thief.address, person.sign(text)) == "bad_signature"
    assert await kept_of(shop, thief.address) == Kept(0, [], 0)


async def test_what_was_signed_in_another_way_is_refused(shop: Context) -> None:
    person = Person()
    text = await text_for(shop, person.address)
    hashed = hash_text(text)
    for signature in (
        person.sign_hash(keccak(text=text)), person.sign(hashed.hex()), person.sign("0x" + hashed.hex())
    ):  # fmt: skip
        assert await code_of(shop, person.address, signature) == "bad_signature"
    assert await code_of(shop, person.address, person.sign_hash(hashed)) == "ok"


async def test_a_signature_that_anybody_could_have_made_of_another_is_refused(shop: Context) -> None:
    person = Person()
    signature = person.sign(await text_for(shop, person.address))
    r, s, v = signature[2:66], int(signature[66:130], 16), int(signature[130:], 16)
    twin = f"0x{r}{ORDER - s:064x}{27 + 28 - v:02x}"
    cut = [signature[:128], signature[:-4], "0x", signature + "00", f"0x{r}{s:064x}{v + 35:02x}"]
    for other in (twin, *cut, "0x" + "00" * 65, "0x" + "ff" * 65, f"0x{'0' * 64}{s:064x}{v:02x}"):
        assert await code_of(shop, person.address, other) == "bad_signature"
    # Refusals burn nothing; v may be written in either way, and hex in either case.
    assert await code_of(shop, person.address, f"0x{r.upper()}{s:064X}{v - 27:02x}") == "ok"


@pytest.mark.parametrize(
    ("passed_s", "code"),
    [(0, "ok"), (540, "ok"), (579.9, "ok"), (580, "bad_signature"), (3600, "bad_signature"),
     (-20, "ok"), (-20.1, "bad_signature"), (-3600, "bad_signature")],
)  # fmt: skip
async def test_a_text_is_good_for_ten_minutes_from_its_start_on(
    shop: Context, clock: Clock, passed_s: float, code: str
) -> None:
    person = Person()
    signature = person.sign(await text_for(shop, person.address))
    clock.now_s = NOW_S + passed_s
    assert await code_of(shop, person.address, signature) == code


async def test_a_signature_brings_one_key(shop: Context, clock: Clock) -> None:
    person = Person()
    now = person.sign(await text_for(shop, person.address))
    clock.now_s += 60
    later = person.sign(await text_for(shop, person.address))
    assert await code_of(shop, person.address, later) == "ok"
    # Nor one that was signed before it: of the same count of keys.
    for spent in (later, now):
        assert await code_of(shop, person.address, spent) == "bad_signature"
    # A revoked key does not bring its signature back.
    await revoke_of(shop, person.address, 0)
    assert await code_of(shop, person.address, later) == "bad_signature"
    assert (await kept_of(shop, person.address)).keys_made == 1


async def test_another_service_with_the_same_secret_is_another_name(shop: Context) -> None:
    person = Person()
    other = replace(shop, public_url="https://other.example")
    signature = person.sign(await text_for(other, person.address))
    assert await code_of(shop, person.address, signature) == "bad_signature"
    assert await code_of(replace(other, chain_id=1), person.address, signature) == "bad_signature"
    assert await code_of(other, person.address, signature) == "ok"


@pytest.mark.parametrize(
    "given_",
    [
        {"signature": "00" * 65}, {"signature": "0x0"}, {"signature": "0xzz"}, {"signature": ""},
        {"signature": "0x" + "00" * 8193}, {"signature": "0x00\n"}, {"signature": 7}, {"signature": None},
        {"label": "x" * 65}, {"label": 7}, {"name": "x" * 25}, {"name": ""}, {"name": "  "},
        {"name": "a\n"}, {"name": "Bоt"}, {"agent": "yes"}, {"agent": 1}, {"more": 1},
        {"claim": "11" * 31}, {"claim": "11" * 33}, {"claim": "zz" * 32}, {"claim": "AA" * 32},
        {"claim": "0x" + "11" * 32}, {"claim": "11" * 32 + "\n"}, {"claim": ""}, {"claim": 7},
        {"address": "0x12"}, {"address": "0x" + "1" * 40 + "\n"},
    ],
    ids=str,
)  # fmt: skip
async def test_what_does_not_fit_is_told_before_anything_is_looked_at(
    shop: Context, given_: dict[str, object]
) -> None:
    person = Person()
    text = await text_for(shop, person.address)
    fitting = {"address": person.address, "signature": person.sign(text)}
    with pytest.raises(RoundtripError) as refused:
        await asked(shop, "make_key", **{**fitting, **given_})
    assert refused.value.code == "bad_input"
    assert await code_of(shop, **fitting) == "ok"


async def test_a_label_is_measured_once_it_is_clean(shop: Context) -> None:
    person = Person()
    await key_for(shop, person, label="\u200b" * 100 + "x" * 64 + "   ")
    async with shop.pool.acquire() as connection:
        (key,) = await accounts.every_key(connection, person.address)
    assert key.label == "x" * 64
    text = await text_for(shop, person.address)
    assert await code_of(shop, person.address, person.sign(text), label="x" * 64 + " y") == "bad_input"


@pytest.mark.parametrize("address", ["", "0x", "0x12", "0x" + "g" * 40, "1" * 42, "0x" + "1" * 41, 7, None])
async def test_what_is_no_address_gets_no_text(shop: Context, address: object) -> None:
    with pytest.raises(RoundtripError) as refused:
        await asked(shop, "key_nonce", address=address)
    assert refused.value.code == "bad_address"


async def test_asking_leaves_nothing_behind(shop: Context) -> None:
    before = await shop.pool.fetchval("SELECT count(*) FROM accounts.account")
    person = Person()
    await text_for(shop, person.address)
    assert await code_of(shop, person.address, "0x" + "11" * 65) == "bad_signature"
    assert await shop.pool.fetchval("SELECT count(*) FROM accounts.account") == before
