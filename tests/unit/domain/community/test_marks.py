"""Which names and marks are public: by how many people, whoever prepared how many wallets."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address
from roundtrip.domain.community.marks import (
    PEOPLE,
    Mark,
    MarkCount,
    PublicMarks,
    WalletMark,
    name_key,
    public_marks,
)
from roundtrip.domain.market.fairness import WalletOrigin, WalletOrigins
from unit.venues.network import address

AT_S, DAY_S = 1_760_000_000, 86_400
OLD_S, YOUNG_S = AT_S - 30 * DAY_S, AT_S - 60
TARGET = address(0x7A)
WALLETS = tuple(address(0xA0 + n) for n in range(6))
FUNDER = address(0xF0)


def purses(origins: Mapping[Address, WalletOrigin[Address]]) -> WalletOrigins[Address]:
    funders = [origin.funder for origin in origins.values() if origin.funder is not None]
    return WalletOrigins(origins, Counter(funders))


def strangers(first_s: int = OLD_S) -> WalletOrigins[Address]:
    """Each of nobody's making."""
    return purses({wallet: WalletOrigin(first_s, None) for wallet in (*WALLETS, TARGET, FUNDER)})


def mark_by(*names: str | None, mark: Mark | None = None) -> list[WalletMark]:
    return [WalletMark(TARGET, wallet, name, mark) for wallet, name in zip(WALLETS, names, strict=False)]


def test_three_strangers_make_a_name_public() -> None:
    found = public_marks(mark_by("Fox", "Fox", "Fox"), strangers(), AT_S)
    assert found == [PublicMarks(TARGET, (MarkCount("Fox", 3),), ())]
    assert public_marks(mark_by("Fox", "Fox"), strangers(), AT_S) == []


def test_three_strangers_make_a_mark_public_whatever_they_call_it() -> None:
    found = public_marks(mark_by("Fox", "Wolf", None, mark="scam"), strangers(), AT_S)
    assert found == [PublicMarks(TARGET, (), (MarkCount("scam", 3),))]


def test_a_name_is_shown_as_most_wrote_it() -> None:
    found = public_marks(mark_by("Old fox", "OLD FOX", "Old fox", "oldfox"), strangers(), AT_S)
    assert found == [PublicMarks(TARGET, (MarkCount("Old fox", 4),), ())]
    assert name_key(" Old  FOX") == name_key("oldfox")


def test_people_may_contradict_each_other() -> None:
    given = mark_by(None, None, None, mark="good")
    given += [WalletMark(TARGET, wallet, None, "bad") for wallet in WALLETS[3:]]
    assert public_marks(given, strangers(), AT_S)[0].marks == (MarkCount("bad", 3), MarkCount("good", 3))


def test_three_wallets_of_one_funder_are_one() -> None:
    origins = {wallet: WalletOrigin(OLD_S, FUNDER, OLD_S) for wallet in WALLETS} | {
        FUNDER: WalletOrigin(OLD_S, None)
    }
    assert public_marks(mark_by("Fox", "Fox", "Fox", "Fox"), purses(origins), AT_S) == []
    origins |= {wallet: WalletOrigin(OLD_S, None) for wallet in WALLETS[:2]}
    assert public_marks(mark_by("Fox", "Fox", "Fox", "Fox"), purses(origins), AT_S)[0].names == (
        MarkCount("Fox", 3),
    )


def test_young_wallets_are_one() -> None:
    assert public_marks(mark_by("Fox", "Fox", "Fox"), strangers(YOUNG_S), AT_S) == []


def test_wallets_that_nobody_met_are_one() -> None:
    assert public_marks(mark_by("Fox", "Fox", "Fox"), purses({}), AT_S) == []


def test_nobody_counts_for_his_own_wallet() -> None:
    own = [*mark_by("Fox", "Fox"), WalletMark(TARGET, TARGET, "Fox", None)]
    assert public_marks(own, strangers(), AT_S) == []


def test_kin_of_the_marked_wallet_do_not_count() -> None:
    for origins in (
        {WALLETS[0]: WalletOrigin(OLD_S, TARGET, OLD_S)},
        {TARGET: WalletOrigin(OLD_S, WALLETS[0], OLD_S)},
        {TARGET: WalletOrigin(OLD_S, FUNDER, OLD_S), WALLETS[0]: WalletOrigin(OLD_S, FUNDER, OLD_S)},
    ):
        known = {**strangers().origins, **origins}
        assert public_marks(mark_by("Fox", "Fox", "Fox"), purses(known), AT_S) == []
        assert len(public_marks(mark_by("Fox", "Fox", "Fox", "Fox"), purses(known), AT_S)) == 1


NOBODY = (None, FUNDER, *WALLETS[:2])


@given(
    funders=st.lists(st.sampled_from(NOBODY), min_size=6, max_size=6),
    times=st.lists(st.sampled_from((OLD_S, YOUNG_S)), min_size=6, max_size=6),
)
def test_nothing_is_public_of_fewer_purses(funders: list[Address | None], times: list[int]) -> None:
    """However the wallets were paid: counted in another way than it is done."""
    origins = {
        wallet: WalletOrigin(at_s, None if funder == wallet else funder, at_s)
        for wallet, funder, at_s in zip(WALLETS, funders, times, strict=True)
    } | {FUNDER: WalletOrigin(OLD_S, None)}
    known = purses(origins)
    people = set()
    for wallet in WALLETS:
        funder, is_old = origins[wallet].funder, origins[wallet].first_s == OLD_S
        if funder is None:
            people.add(wallet if is_old else None)
        else:
            people.add(funder if origins[funder].first_s == OLD_S else None)
    found = public_marks(mark_by(*["Fox"] * 6), known, AT_S)
    assert [one.names[0].people for one in found] == ([len(people)] if len(people) >= PEOPLE else [])
