"""What flags and marks say."""

from datetime import UTC, datetime

import pytest

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.community.flag_calls import By, FlagScore, Kind
from roundtrip.services.community import flag_token, mark_wallet, proven_flags
from roundtrip.services.community.mark_wallet import MarkParams
from roundtrip.store.community.flags import FlagProof, PublicFlag
from roundtrip.store.community.marks import OwnWalletMark

TOKEN, WALLET = Address("0x" + "cd" * 20), Address("0x" + "ab" * 20)
PUBLIC = (
    "A name or mark becomes public once 3 people give it. Their accounts must be seven days old, and their "
    "wallets must have traded."
)


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (OwnWalletMark("Old fox", "bad"), f'You name {WALLET} "Old fox" and mark it as bad.'),
        (OwnWalletMark("Old fox", None), f'You name {WALLET} "Old fox".'),
        (OwnWalletMark(None, "scam"), f"You mark {WALLET} as scam."),
    ],
)
def test_a_mark(mark: OwnWalletMark, expected: str) -> None:
    assert mark_wallet._mark_text(WALLET, mark) == f"{expected} {PUBLIC}"


def test_a_name_that_is_not_allowed() -> None:
    with pytest.raises(CallerFault) as raised:
        MarkParams(WALLET, name="<b>").parsed_name()
    assert (
        raised.value.message == "name must have at most 24 Latin letters, digits and spaces, such as Old fox."
    )


def test_why_no_more_flags_are_taken() -> None:
    assert flag_token._FULL == {
        "same": "You have already flagged this token like this, and that flag is still waiting.",
        "open": "You have 10 flags waiting, the maximum: each ends within a week.",
        "day": "You made 5 flags today, the maximum: flag again after 00:00 UTC.",
    }


def flag(by: By | None) -> PublicFlag:
    made = datetime(2025, 10, 9, tzinfo=UTC)
    proof = None if by is None else FlagProof(by, 9, 1000 + 3 * 3600, wei=3123 * 10**14)
    kind: Kind = "runs" if by == "price" else "drains"
    return PublicFlag(TOKEN, "FRSH", None, kind, 1, "mite-a", False, made, 1000, 2000, proof, None, None)


@pytest.mark.parametrize(
    ("by", "event"),
    [
        ("price", "runs, 3 hours before what 0.1 eth had bought sold for 0.3123 eth."),
        ("liquidity", "drains, 3 hours before half of its liquidity left."),
        ("deployer", "drains, 3 hours before its deployer sold half of what it held."),
    ],
)
def test_a_proved_flag_is_a_line(by: By, event: str) -> None:
    text = proven_flags._text(None, [flag(by)], [], {1: FlagScore(2, 3, 1, 5)})
    assert text.split("\n") == [
        "The latest flag on any token that proved right:",
        f'1. mite-a predicted that "FRSH" ({TOKEN}) {event} 2 of 3 decided flags of that account were right; '
        "by chance 1 of 5.",
        "A flag is an opinion, and one that was right says nothing about the next. Compare accuracy "
        "with baseRate, "
        "which is what chance alone gives.",
    ]


def test_flags_that_wait_are_counted() -> None:
    text = proven_flags._text(TOKEN, [], [flag(None), flag(None)], {1: FlagScore()})
    assert text.startswith(
        f"No flag on {TOKEN} is proved yet.\n2 flags on it are still waiting: 2 drains.\nA flag is an opinion"
    )
