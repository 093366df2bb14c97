"""Linked wallets, from what the index and the node told, for people and programs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from roundtrip.domain.base.types import Address
from roundtrip.domain.wallets.linked import LEAST_SHARED, Money, SameTokens, is_exchange, score
from roundtrip.services.support.index_reader import present_token, when
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import Label
from roundtrip.store.wallets.linked import LOOK_BACK_S, MOST_COUNTED, CoBoughtToken

from .linked_schema import FunderStanding, LinkedWallet, LinkedWallets, Reason, SharedToken, Standing


@dataclass(frozen=True, slots=True)
class Funder:
    """Who first sent the wallet eth; ``family``: as many wallets it did so for."""

    address: Address
    family: int
    is_machinery: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """Somebody who may be linked, and what speaks for it."""

    address: Address
    money: tuple[Money, ...]
    same: SameTokens | None
    tokens: tuple[CoBoughtToken, ...]

    def by(self, by_funder: bool) -> tuple[Money, ...]:
        """Its money; without ``by_funder`` what the asked wallet's funder sent counts for nothing."""
        return tuple(one for one in self.money if by_funder or one.kind == "funded")

    def score(self, by_funder: bool) -> int:
        """Of 100."""
        return score(self.by(by_funder), self.same)


@dataclass(frozen=True, slots=True)
class LinkedRecord:
    """What the index knows. ``is_machinery``: the wallet is a contract that everybody uses; ``is_met``: it
    stands in some fact; ``is_exchange``: it first sent eth to so many that it is taken for one.
    ``followed_s``: since when the chain is followed."""

    stands: Cursor
    wallet: Address
    followed_s: int = 0
    is_machinery: bool = False
    is_met: bool = False
    is_exchange: bool = False
    funder: Funder | None = None
    tokens_compared: int = 0
    candidates: tuple[Candidate, ...] = ()
    labels: Mapping[int, Label] = field(default_factory=dict)


def present(
    chain_id: int, gathered: LinkedRecord, contracts: Mapping[Address, bool | None], most: int
) -> LinkedWallets:
    """The answer. ``contracts``: who is one; None: not known, and then it is left out."""
    block, funder = gathered.stands.block, gathered.funder
    standing = None if funder is None else standing_of(funder, contracts[funder.address] is not False)
    linked: list[LinkedWallet] = []
    if not contracts[gathered.wallet]:
        wallets = [one for one in gathered.candidates if contracts[one.address] is False]
        linked = _present_linked(gathered, wallets, standing == "links")[:most]
    return LinkedWallets(
        text=" ".join(_text(gathered, contracts[gathered.wallet] is not False, standing, linked)),
        chain_id=chain_id,
        block=block.number,
        block_time=when(block.timestamp_s),
        address=gathered.wallet,
        funder=None
        if funder is None or standing is None
        else FunderStanding(funder.address, funder.family, standing),
        tokens_compared=gathered.tokens_compared,
        linked=tuple(linked),
    )


def standing_of(funder: Funder, is_contract: bool) -> Standing:
    """Whether a funder links whom it funded, and why not."""
    if funder.is_machinery:
        return "machinery"
    if is_exchange(funder.family):
        return "exchange"
    return "contract" if is_contract else "links"


def _present_linked(gathered: LinkedRecord, wallets: list[Candidate], by_funder: bool) -> list[LinkedWallet]:
    found = []
    for one in wallets:
        reached = one.score(by_funder)
        if reached:
            found.append(LinkedWallet(one.address, reached, tuple(_reasons(gathered, one, by_funder))))
    return sorted(found, key=lambda linked: (-linked.score, linked.address))


def _reasons(gathered: LinkedRecord, one: Candidate, by_funder: bool) -> list[Reason]:
    money = one.by(by_funder)
    found = [_money_reason(gathered, one, piece) for piece in money]
    same = one.same
    if same is not None and (same.shared >= LEAST_SHARED or money):
        found.append(_tokens_reason(gathered, same, one.tokens))
    return found


def _money_reason(gathered: LinkedRecord, one: Candidate, money: Money) -> Reason:
    if money.kind == "funded":
        said = "The asked wallet sent it its first eth."
        return _of_money(money, said, gathered.wallet)
    if money.kind == "funded_by":
        said = "It sent the asked wallet its first eth."
        return _of_money(money, said, one.address)
    funder = gathered.funder.address if gathered.funder else None
    apart = "" if money.apart_s is None else f", {_span(money.apart_s)} apart"
    said = f"Both got their first eth from {funder}{apart}; so did {money.family:,} wallets in all."
    return _of_money(money, said, funder)


def _of_money(money: Money, said: str, funder: str | None) -> Reason:
    return Reason(money.kind, said, funder, money.family, money.apart_s, None, None, None, ())


def _span(seconds: int) -> str:
    for unit_s, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit_s:
            count = seconds // unit_s
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def _tokens_reason(gathered: LinkedRecord, same: SameTokens, tokens: tuple[CoBoughtToken, ...]) -> Reason:
    least = "at least " if same.other_tokens >= MOST_COUNTED else ""
    said = (
        f"Within ten blocks of each other both bought {same.shared} of the {same.of_tokens} tokens compared; "
        f"it traded {least}{same.other_tokens:,} in all."
    )
    shown = tuple(
        SharedToken(
            present_token(gathered.labels[one.token_id]),
            one.own_tx,
            one.other_tx,
            one.blocks_apart,
            one.others,
        )
        for one in tokens
    )
    counts = same.shared, same.of_tokens, same.other_tokens
    return Reason("same_tokens", said, None, None, None, *counts, shown)


# --- in words --------------------------------------------------------------------------------------

_FUNDER_TEXT: dict[Standing, str] = {
    "links": "Its first eth came from {funder}.",
    "exchange": "Its first eth came from {funder}, who sent it to over 500 wallets: probably an exchange, "
    "and no link.",
    "contract": "Its first eth came from {funder}, a contract: that links nobody.",
    "machinery": "Its first eth came from {funder}, a contract that everybody uses: that links nobody.",
}


def _text(
    gathered: LinkedRecord, is_contract: bool, standing: Standing | None, linked: list[LinkedWallet]
) -> list[str]:
    if gathered.is_machinery:
        return ["This is an address that everybody uses, and nobody's wallet: it is linked to nobody."]
    if is_contract:
        return ["This address is a contract, and no wallet: contracts are linked to nobody."]
    if gathered.is_exchange:
        return [
            "This wallet first sent eth to over 500 others: probably an exchange, which is linked to nobody."
        ]
    if not gathered.is_met:
        return ["The index never met this wallet, so nothing is known that could link it to another."]
    said = [_linked_text(linked)]
    if gathered.funder is None or standing is None:
        said.append("Who sent it its first eth is not known.")
    else:
        said.append(_FUNDER_TEXT[standing].format(funder=gathered.funder.address))
    if gathered.tokens_compared:
        tokens = "token" if gathered.tokens_compared == 1 else "tokens"
        said.append(f"{gathered.tokens_compared} {tokens} that it bought in the last 30 days were compared.")
    elif _is_young(gathered):
        since = f"{when(gathered.followed_s):%Y-%m-%d %H:%M}"
        said.append(
            f"The chain is followed only since {since} UTC, and it bought nothing since then: there were no "
            "tokens to compare."
        )
    else:
        said.append("It bought nothing in the last 30 days, so there were no tokens to compare.")
    return said


def _is_young(gathered: LinkedRecord) -> bool:
    """Whether there may have been more in the days that are compared, before the chain was followed."""
    stands = gathered.stands
    return stands.start_number > 0 and gathered.followed_s > stands.block.timestamp_s - LOOK_BACK_S


def _linked_text(linked: list[LinkedWallet]) -> str:
    if not linked:
        return "No other wallet was found that is linked to it."
    wallets = "wallet" if len(linked) == 1 else "wallets"
    best = linked[0]
    why = " ".join(reason.text for reason in best.reasons)
    return (
        f"{len(linked)} other {wallets} may be linked to it; the most likely to be the same person's is "
        f"{best.address}, with {best.score} of 100. Why: {why} That is a hint and no proof: an employer, a "
        "friend or a faucet pays people, too, and anybody may buy what others buy."
    )
