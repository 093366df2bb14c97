"""The page of the holders, as it shows an answer."""

import re
from dataclasses import replace

from msgspec import structs

from roundtrip.console.support.render import Templates
from roundtrip.services.holder_record.findings import HolderRecord
from roundtrip.services.holders.growth import present_growth
from roundtrip.services.holders.launch_bundle import present_launch_bundle
from roundtrip.services.holders.present import present
from roundtrip.services.holders.text import large_buy_text
from unit.domain.holding import AT_S, DEPLOYER, launch
from unit.services.holding import SUPPLY_RAW, A, B, gathered, the_told


def shown(record: HolderRecord, wallets: int | None = None) -> str:
    """The page; as if so many wallets held the token."""
    held, launched, grown = present(record), present_launch_bundle(record), present_growth(record)
    if wallets is not None and held.holders is not None:
        held = structs.replace(held, holders=structs.replace(held.holders, count=wallets))
    return Templates({}).render(
        "holders_piece.html", held=held, launched=launched, grown=grown, graphs=[], ties=None, lines={},
        large_buy=" ".join(large_buy_text(record)),
    )  # fmt: skip


def words(page: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", page).split())


def test_every_wallet_of_the_deployers_purse_is_tagged_and_he_is_counted_once() -> None:
    known = the_told()
    paid = {one: replace(known.wallets[A], funded_s=AT_S) for one in (A, DEPLOYER)}
    page = shown(gathered(inputs=replace(known, wallets={**known.wallets, **paid})), wallets=5)
    assert page.count(">deployer’s purse<") == 2
    text = words(page)
    assert "Deployer’s purse (4 wallets, itself included) 3.90 %" in text
    assert "biggest wallets, 3 belong to 1 purse; of 1 no tie is known. The largest purse has 3.90 %." in text
    assert "We looked into 4 wallets that hold it" in text
    assert "4 wallets, the deployer included, bought 6.50 % of the supply" in text
    assert "Without him, 3 snipers bought 6.00 % and hold 3.50 %; 1 sold out." in text


def test_a_column_of_nothing_is_left_out_and_a_partial_answer_says_so_first() -> None:
    known = the_told(wallets={})
    page = shown(gathered(inputs=known, status="partial", why=("venues_unread",)))
    assert '<th scope="col" class="n">Age</th>' not in page
    assert "How old these wallets are is not known." in page
    assert page.index("Incomplete: every count is a minimum.") < page.index("Ten biggest wallets")
    assert '<th scope="col" class="n">Age</th>' in shown(gathered())


def test_a_small_share_has_no_colour_of_danger() -> None:
    page = shown(gathered(), wallets=5)
    assert "ten biggest 13.90\xa0%" in page
    assert "s-danger" not in page.split('<ul class="legend">')[0]


def test_of_few_wallets_the_table_says_it_all() -> None:
    page = shown(gathered(), wallets=4)
    assert "Of the supply: ten biggest holders" not in page
    assert "By purse" not in page
    assert "Ten biggest wallets 13.90" in words(page)


def test_a_large_buy_after_the_launch_is_told_of_and_not_as_the_launch() -> None:
    later = launch((A, SUPPLY_RAW // 80), (B, 1))
    text = words(shown(gathered(large_buy=replace(later, block_number=1_784))))
    message = "The first large buy came later, in block 1,784: 2 wallets bought 1.25 % within 30 blocks."
    assert f"Later {message}" in text
    assert "Later" not in words(shown(gathered()))


def test_a_deployer_of_whom_too_little_is_known_is_not_passed_over() -> None:
    text = "What the deployer received, and where that went, is not certain."
    assert text in words(
        shown(gathered(inputs=the_told(drifts=True, maker=None), status="partial", why=("drifts",)))
    )
    assert text not in words(shown(gathered()))
