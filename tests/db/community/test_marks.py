"""Names and marks of wallets over a database: which of them everybody is told."""

import pytest

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.community.marks import MAX_MARKS
from roundtrip.services.accounts.profile import my_mite
from roundtrip.services.lookup.look_up import find
from roundtrip.services.lookup.look_up_answer import LookUpParams
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.wallets.names import wallet_names
from roundtrip.store.community.public_names import MAX_SAID
from support.flagged import FLAGGER, HIS_KIN, HIS_PURSE, LP, OTHER, TOKENS, FlagGround, burns
from support.marking import STRANGERS, TARGET, all_say, marked, read_names
from support.told_winners import BUYERS, buys, pays
from unit.venues.network import address

# --- what is public --------------------------------------------------------------------------------


async def test_three_people_name_a_wallet(ground: FlagGround) -> None:
    await all_say(ground, *STRANGERS[:2], name="Old fox", mark="good")
    found = await read_names(ground)
    assert found.rows == []
    assert "No wallet has a name" in found.text
    await all_say(ground, STRANGERS[2], name="old FOX")
    found = await read_names(ground)
    (row,) = found.rows
    assert row.wallet == TARGET
    assert [(one.name, one.people) for one in row.names] == [("Old fox", 3)]
    assert row.marks == []
    assert found.text.startswith("1 wallet has a name or a mark that enough people gave:\n1. ")
    assert f'\n1. {TARGET} is called "Old fox" by 3 people.\n' in found.text
    assert "strangers' words" in found.text
    assert (found.block, found.block_time.timestamp()) == (ground.at.number, ground.at.timestamp_s)


async def test_three_people_mark_a_wallet_and_others_contradict(ground: FlagGround) -> None:
    await all_say(ground, *STRANGERS, mark="scam")
    await all_say(ground, *BUYERS[3:7], mark="good")
    (row,) = (await read_names(ground)).rows
    assert [(one.mark, one.people) for one in row.marks] == [("good", 4), ("scam", 3)]


async def test_what_most_say_comes_first(ground: FlagGround) -> None:
    await all_say(ground, *BUYERS[:3], about=BUYERS[10], mark="bad")
    await all_say(ground, *BUYERS[3:7], about=BUYERS[11], mark="bad")
    assert [row.wallet for row in (await read_names(ground)).rows] == [BUYERS[11], BUYERS[10]]


async def test_accounts_of_one_purse_push_nobody_out(ground: FlagGround) -> None:
    """However many there are: three hundred wallets, each marked and named by four of them."""
    own = [address(0xD00 + n) for n in range(4)]
    await ground.block(*(pays(HIS_PURSE, one) for one in own))
    await ground.block(*(buys(one, 0.1, OTHER) for one in own), after_s=86_401)
    for n, one in enumerate(own):
        account = await ground.account(one, f"mite-own-{n}")
        await ground.index.execute(
            "INSERT INTO accounts.mark (account_id, wallet, name, name_key, mark, made_at) SELECT $1,"
            " decode(lpad(to_hex(n), 40, '0'), 'hex'), 'Old fox', 'oldfox', 'good', now()"
            " FROM generate_series(1, 300) AS n",
            account.id,
        )
    await all_say(ground, *STRANGERS, name="Old fox", mark="bad")
    assert [row.wallet for row in (await read_names(ground)).rows] == [TARGET]
    found = (await find(ground.ctx, LookUpParams("Old Fox"))).answer
    assert (found.kind, found.address) == ("wallet", TARGET)
    assert "more" not in found.text


async def test_of_a_wallet_with_many_names_those_are_shown_that_most_gave(ground: FlagGround) -> None:
    for n in range(MAX_SAID + 3):
        await ground.index.execute(
            "INSERT INTO accounts.public_name VALUES (decode($1, 'hex'), 'name', $2, $2, $3, $4)",
            TARGET[2:],
            f"n{n:02}",
            3 + n,
            n == MAX_SAID + 2,
        )
    (row,) = (await wallet_names(ground.ctx, Nothing())).answer.rows
    assert [one.name for one in row.names] == [f"n{n:02}" for n in range(MAX_SAID + 2, 2, -1)]


# --- found by name ---------------------------------------------------------------------------------


async def test_a_wallet_is_found_by_its_name(ground: FlagGround) -> None:
    await all_say(ground, *STRANGERS, name="Old fox")
    await all_say(ground, *BUYERS[3:7], about=BUYERS[10], name="oldfox")
    await all_say(ground, *BUYERS[7:9], about=BUYERS[11], name="Wolf")
    await read_names(ground)
    found = (await find(ground.ctx, LookUpParams("OLD FOX"))).answer
    assert (found.kind, found.address) == ("wallet", BUYERS[10])
    assert (
        f'4 people call the wallet {BUYERS[10]} "OLD FOX". Strangers call it that: it does not prove'
        in found.text
    )
    assert "1 more wallet has that name from enough people." in found.text
    assert (await find(ground.ctx, LookUpParams("Wolf"))).answer.kind == "nothing"


@pytest.mark.parametrize("name", ["usdg", "WETH", "eth", "0xabc"])
async def test_no_wallet_is_taken_for_money_or_an_address(ground: FlagGround, name: str) -> None:
    await all_say(ground, *STRANGERS, name=name)
    assert len((await read_names(ground)).rows) == 1
    assert (await find(ground.ctx, LookUpParams(name))).answer.kind == "nothing"


# --- farming ---------------------------------------------------------------------------------------


async def test_three_fresh_accounts_name_nobody(ground: FlagGround) -> None:
    await all_say(ground, *STRANGERS, days_old=6.9, name="Thief", mark="scam")
    assert (await read_names(ground)).rows == []
    for _ in range(2):
        await ground.block(after_s=86_400)
    assert len((await read_names(ground)).rows) == 1


async def test_three_fresh_wallets_of_old_accounts_name_nobody(ground: FlagGround) -> None:
    fresh = [address(0xE00 + n) for n in range(3)]
    await ground.block(*(pays(address(0xE80 + n), one) for n, one in enumerate(fresh)))
    await ground.block(*(buys(one, 0.1, OTHER) for one in fresh))
    await all_say(ground, *fresh, mark="scam")
    assert (await read_names(ground)).rows == []


async def test_wallets_that_never_traded_name_nobody(ground: FlagGround) -> None:
    idle = [address(0xE00 + n) for n in range(3)]
    await ground.block(*(pays(address(0xE80 + n), one) for n, one in enumerate(idle)))
    await ground.block(after_s=2 * 86_400)
    await all_say(ground, *idle, mark="scam")
    assert (await read_names(ground)).rows == []
    await ground.block(*(buys(one, 0.1, OTHER) for one in idle))
    assert len((await read_names(ground)).rows) == 1


async def test_three_old_wallets_of_one_funder_name_nobody(ground: FlagGround) -> None:
    own = [FLAGGER, HIS_KIN, address(0xD1)]
    await ground.block(pays(HIS_PURSE, own[2]))
    await ground.block(*(buys(one, 0.1, OTHER) for one in own), after_s=2 * 86_400)
    await all_say(ground, *own, name="Thief")
    assert (await read_names(ground)).rows == []
    await all_say(ground, *STRANGERS[:2], name="Thief")
    assert [one.people for one in (await read_names(ground)).rows[0].names] == [3]


async def test_nobody_names_himself(ground: FlagGround) -> None:
    await all_say(ground, *STRANGERS[:2], name="Saint")
    own = await ground.account(TARGET, "mite-self")
    with pytest.raises(CallerFault, match="your own wallet") as raised:
        await marked(ground, own, name="Saint")
    assert raised.value.code == "bad_input"
    # Even if it stood there.
    await ground.index.execute(
        "INSERT INTO accounts.mark SELECT $1, wallet, name, name_key, mark, made_at FROM accounts.mark"
        " LIMIT 1",
        own.id,
    )
    assert (await read_names(ground)).rows == []


async def test_kin_of_the_wallet_do_not_name_it(ground: FlagGround) -> None:
    await ground.block(buys(HIS_KIN, 0.1, OTHER), after_s=86_401)
    await all_say(ground, *STRANGERS[:2], HIS_KIN, about=FLAGGER, mark="good")
    assert (await read_names(ground)).rows == []


# --- the act ---------------------------------------------------------------------------------------


async def test_a_name_and_a_mark_are_given_and_taken_back(ground: FlagGround) -> None:
    account = await ground.account()
    first = await marked(ground, account, name="  Old   fox ")
    assert (first.name, first.mark, first.wallets) == ("Old fox", None, 1)
    both = await marked(ground, account, mark="bad")
    assert (both.name, both.mark, both.wallets) == ("Old fox", "bad", 1)
    assert f'You name {TARGET} "Old fox" and mark it as bad.' in both.text
    assert (await marked(ground, account, name="Wolf")).name == "Wolf"
    gone = await marked(ground, account, off=True)
    assert (gone.name, gone.mark, gone.wallets) == (None, None, 0)
    assert "no longer" in gone.text
    assert "had not" in (await marked(ground, account, off=True)).text


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"name": "x", "off": True},
        {"mark": "bad", "off": True},
        {"name": ""},
        {"name": " "},
        {"name": "x" * 25},
        {"name": "f\u043ex"},
        {"name": "a\u202eb"},
        {"name": "<b>"},
    ],
)
async def test_what_is_no_name_is_refused(ground: FlagGround, expected: dict[str, object]) -> None:
    account = await ground.account()
    with pytest.raises(CallerFault) as raised:
        await marked(ground, account, TARGET, **expected)
    assert raised.value.code == "bad_input"
    assert "such as " in raised.value.message
    with pytest.raises(CallerFault) as raised:
        await marked(ground, account, Address("0x12"), mark="bad")
    assert raised.value.code == "bad_address"


async def test_an_account_marks_so_many_wallets(ground: FlagGround) -> None:
    account = await ground.account()
    await ground.index.execute(
        "INSERT INTO accounts.mark (account_id, wallet, mark, made_at)"
        " SELECT $1, decode(lpad(to_hex(n), 40, '0'), 'hex'), 'bad', now() FROM generate_series(1, $2) AS n",
        account.id,
        MAX_MARKS,
    )
    with pytest.raises(CallerFault, match="the maximum: remove one first"):
        await marked(ground, account, mark="bad")
    assert (await marked(ground, account, address(1), mark="good")).wallets == MAX_MARKS


# --- what an account knows of itself ---------------------------------------------------------------


async def test_an_account_knows_how_its_flags_went(ground: FlagGround) -> None:
    account = await ground.account()
    await ground.flag(account, "drains")
    await ground.flag(account, "drains", OTHER)
    await ground.flag(account, "drains", TOKENS[2])
    await ground.index.execute("DELETE FROM accounts.flag WHERE control_of IS NOT NULL")
    await ground.block(burns(LP, 600))
    await ground.to_the_end()
    found = (await my_mite(ground.ctx, Nothing(), account)).answer
    assert (found.proved, found.decided, found.accuracy) == (1, 3, 1 / 3)
    assert (found.base_rate, found.level) == (None, 2)
    assert "1 of your 3 decided flags proved right." in found.text


async def test_beside_it_stands_what_chance_proved(ground: FlagGround) -> None:
    account = await ground.account()
    flag = await ground.flag(account, "drains")
    await ground.index.execute(
        "UPDATE accounts.flag SET token = decode($2, 'hex'), pool = NULL, liquidity = NULL,"
        " deployer_raw = 1 WHERE control_of = $1",
        flag,
        OTHER[2:],
    )
    await ground.block(burns(LP, 600))
    await ground.to_the_end()
    found = (await my_mite(ground.ctx, Nothing(), account)).answer
    assert (found.proved, found.decided, found.base_rate, found.level) == (1, 1, 0.0, 2)
    assert "1 of your 1 decided flag proved right; for random tokens the share is 0%." in found.text
