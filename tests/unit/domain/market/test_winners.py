"""Who counts as a winner: one exclusion a test."""

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.market.fairness import WalletOrigin
from roundtrip.domain.market.winners import MAX_WINNERS
from support.winner_rules import ClosedToken, TokenStart, Wallets, board

DAY_S = 86_400
BORN_S = 1_760_000_000
NOW_S = BORN_S + DAY_S


def wallet(number: int) -> Address:
    return Address(f"0x{number:040x}")


DEPLOYER, HIS_FUNDER, EXCHANGE = wallet(0xD), wallet(0xF), wallet(0xE)
BUYERS = [wallet(100 + n) for n in range(20)]
OLD, YOUNG = WalletOrigin(BORN_S - DAY_S, None), WalletOrigin(BORN_S - DAY_S + 1, None)


def known(
    origins: dict[Address, WalletOrigin[Address]] | None = None, funded: dict[Address, int] | None = None
) -> Wallets:
    """Twenty old buyers, whom nobody is known to have funded, but for these; any funder is old, too."""
    given = origins or {}
    givers = [one.funder for one in given.values() if one.funder is not None]
    return Wallets({**dict.fromkeys([*BUYERS, *givers], OLD), **given}, funded or {})


def is_fair(wallets: Wallets, buyers: list[Address] = BUYERS, at_s: int = NOW_S) -> bool:
    return wallets.is_fair(TokenStart(BORN_S, DEPLOYER), buyers, at_s)


def paid(funder: Address, *those: Address) -> dict[Address, WalletOrigin[Address]]:
    return {one: WalletOrigin(BORN_S, funder) for one in those}


# --- fair tokens -----------------------------------------------------------------------------------


def test_a_token_is_fair_with_twenty_buyers_after_a_day() -> None:
    assert is_fair(known())
    assert not is_fair(known(), BUYERS[1:])
    assert not is_fair(known(), at_s=NOW_S - 1)


def test_buyers_of_one_funder_are_one() -> None:
    assert not is_fair(known(paid(wallet(7), *BUYERS[:2])))
    assert is_fair(known(paid(wallet(7), BUYERS[0])))
    each = {one: WalletOrigin(BORN_S, wallet(1000 + n)) for n, one in enumerate(BUYERS)}
    assert is_fair(known(each))


def test_a_funder_who_buys_is_one_with_whom_he_funded() -> None:
    assert not is_fair(known(paid(BUYERS[0], BUYERS[1])))


def test_fresh_funders_of_fresh_buyers_are_one() -> None:
    """Paying twenty wallets through twenty others costs nothing."""
    each = {one: WalletOrigin(BORN_S, wallet(1000 + n)) for n, one in enumerate(BUYERS)}
    fresh = {wallet(1000 + n): YOUNG for n in range(len(BUYERS))}
    assert not is_fair(known({**each, **fresh}))
    assert is_fair(known({**each, wallet(1000): YOUNG}))
    assert not is_fair(known({**each, wallet(1000): YOUNG, wallet(1001): YOUNG}))


def test_young_wallets_that_nobody_is_known_to_have_funded_are_one() -> None:
    assert is_fair(known({BUYERS[0]: YOUNG}))
    assert not is_fair(known({BUYERS[0]: YOUNG, BUYERS[1]: YOUNG}))
    never_met = Wallets(dict.fromkeys(BUYERS[2:], OLD), {})
    assert not is_fair(never_met)


def test_old_customers_of_an_exchange_are_themselves() -> None:
    origins = {one: WalletOrigin(BORN_S - DAY_S, EXCHANGE) for one in BUYERS}
    assert is_fair(known(origins, {EXCHANGE: 501}))
    assert not is_fair(known(origins, {EXCHANGE: 500}))


def test_young_customers_of_an_exchange_are_one() -> None:
    """Anybody can pay 501 wallets, and have twenty of them buy."""
    assert not is_fair(known(paid(EXCHANGE, *BUYERS), {EXCHANGE: 501}))
    assert is_fair(known(paid(EXCHANGE, BUYERS[0]), {EXCHANGE: 501}))
    assert not is_fair(known(paid(EXCHANGE, *BUYERS[:2]), {EXCHANGE: 501}))


def test_the_deployer_and_his_kin_are_no_buyers() -> None:
    him = {DEPLOYER: WalletOrigin(0, HIS_FUNDER)}
    assert is_fair(known(him))
    assert is_fair(known(him), [*BUYERS, DEPLOYER])
    assert not is_fair(known({**him, DEPLOYER: OLD}), [*BUYERS[1:], DEPLOYER])
    assert not is_fair(known({**him, HIS_FUNDER: OLD}), [*BUYERS[1:], HIS_FUNDER])
    assert not is_fair(known({**him, **paid(DEPLOYER, BUYERS[0])}))
    assert not is_fair(known({**him, **paid(HIS_FUNDER, BUYERS[0])}))


def test_where_nobody_knows_who_made_a_token_nobody_is_kin() -> None:
    assert known().is_fair(TokenStart(BORN_S, None), BUYERS, NOW_S)


# --- kin -------------------------------------------------------------------------------------------


def test_kin_is_the_deployer_whom_he_paid_and_who_shares_his_funder() -> None:
    him = {DEPLOYER: WalletOrigin(0, HIS_FUNDER)}
    wallets = known({**him, **paid(DEPLOYER, BUYERS[0]), **paid(HIS_FUNDER, BUYERS[1])})
    for one in (DEPLOYER, HIS_FUNDER, BUYERS[0], BUYERS[1]):
        assert wallets.is_kin(one, DEPLOYER), one
    assert not wallets.is_kin(BUYERS[2], DEPLOYER)
    assert not wallets.is_kin(DEPLOYER, None)


def test_two_that_nobody_funded_are_not_kin() -> None:
    assert not known({DEPLOYER: OLD}).is_kin(BUYERS[0], DEPLOYER)


def test_an_exchange_makes_those_kin_that_it_paid_within_a_day() -> None:
    """Whoever pays the deployer and the winner may pay 501 others, too."""
    for apart_s, kin in ((0, True), (DAY_S, True), (-DAY_S, True), (DAY_S + 1, False), (-DAY_S - 1, False)):
        origins = {
            DEPLOYER: WalletOrigin(0, EXCHANGE, BORN_S),
            BUYERS[0]: WalletOrigin(0, EXCHANGE, BORN_S + apart_s),
        }
        assert known(origins, {EXCHANGE: 501}).is_kin(BUYERS[0], DEPLOYER) is kin
        assert known(origins, {EXCHANGE: 500}).is_kin(BUYERS[0], DEPLOYER)


def test_an_exchange_makes_nobody_kin_and_a_deployer_who_pays_crowds_is_none() -> None:
    origins = {DEPLOYER: WalletOrigin(0, EXCHANGE), **paid(EXCHANGE, BUYERS[0]), **paid(DEPLOYER, BUYERS[1])}
    wallets = known(origins, {EXCHANGE: 501, DEPLOYER: 10_000})
    assert not wallets.is_kin(BUYERS[0], DEPLOYER)
    assert wallets.is_kin(BUYERS[1], DEPLOYER)
    assert wallets.is_kin(EXCHANGE, DEPLOYER)
    assert known(origins, {EXCHANGE: 500}).is_kin(BUYERS[0], DEPLOYER)


# --- boards ----------------------------------------------------------------------------------------


def closed(who: int, spent_wei: int, got_wei: int, number: int = 1, token: int = 0x70CE) -> ClosedToken:
    spot = Spot(number, 0, NOW_S, TxHash(""))
    return ClosedToken(spot, wallet(who), wallet(token), spent_wei, got_wei)


def ranked(*closings: ClosedToken) -> list[int]:
    return [int(one.wallet, 16) for one in board(closings, lambda _: True)]


def test_losses_are_taken_off_and_who_lost_is_no_winner() -> None:
    (first,) = board(
        [closed(1, 10, 30), closed(1, 10, 5), closed(2, 10, 10), closed(3, 10, 9)], lambda _: True
    )
    assert (first.wallet, first.profit_wei, first.spent_wei, first.closed, first.won) == (
        wallet(1),
        15,
        20,
        2,
        1,
    )


def test_most_profit_first_then_fewer_closings_then_the_lower_address() -> None:
    assert ranked(closed(1, 0, 5), closed(2, 0, 9)) == [2, 1]
    assert ranked(closed(1, 0, 5), closed(1, 0, 4), closed(2, 0, 9)) == [2, 1]
    assert ranked(closed(3, 0, 5), closed(2, 0, 5)) == [2, 3]


def test_only_what_counts_counts() -> None:
    closings = [closed(1, 0, 5, token=7), closed(1, 0, 90, token=8)]
    (first,) = board(closings, lambda one: one.token == wallet(7))
    assert (first.profit_wei, first.best) == (5, closings[0])


def test_the_best_is_what_made_most_and_of_equals_the_earliest() -> None:
    closings = [closed(1, 0, 5, 3), closed(1, 0, 9, 2), closed(1, 1, 10, 1)]
    assert board(closings, lambda _: True)[0].best == closings[2]


def test_a_board_has_a_hundred_ranks() -> None:
    everybody = board([closed(n, 0, n) for n in range(1, 130)], lambda _: True)
    assert [int(one.wallet, 16) for one in everybody] == list(range(129, 29, -1))
    assert MAX_WINNERS == 100
