"""Who may be the same person as a wallet: the same funder, or the same tokens in the same moments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.holders.wallet_views import code_calls, read_codes
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.wallets.linked import LEAST_SHARED, Money, SameTokens, is_exchange, score
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed, present_token, reading, when
from roundtrip.services.support.strangers_text import Sentence
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.index import addresses, origins, tokens, vitals
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import Label
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import linked
from roundtrip.store.wallets.linked import LOOK_BACK_S, MOST_COUNTED, CoBoughtToken, LinkedPeer
from roundtrip.venues.entry_point import ENTRY_POINTS

ReasonKind = Literal["same_funder", "funded_by", "funded", "same_tokens"]
Standing = Literal["links", "exchange", "contract", "machinery"]


class SharedToken(msgspec.Struct, frozen=True, rename="camel"):
    """A token that both bought in one moment."""

    token: TokenNamed
    tx: Annotated[str, msgspec.Meta(description="The asked wallet's buy.")]
    other_tx: Annotated[str, msgspec.Meta(description="The linked wallet's buy.")]
    blocks_apart: Annotated[int, msgspec.Meta(description="Blocks between the two.")]
    buyers: Annotated[
        int,
        msgspec.Meta(
            description="How many other wallets bought it in that moment, the linked one among them: "
            "the fewer, the more it says."
        ),
    ]


class Reason(msgspec.Struct, frozen=True, rename="camel"):
    """One piece of evidence. What does not belong to its kind is null or empty."""

    kind: Annotated[
        ReasonKind,
        msgspec.Meta(
            description="same_funder: both got their first eth from one wallet; funded_by: the linked wallet "
            "first sent eth to the asked one; funded: the other way round; same_tokens: both bought the same "
            "tokens within ten blocks of each other."
        ),
    ]
    text: Sentence
    funder: Annotated[str | None, msgspec.Meta(description="Who sent the eth.")]
    wallets_funded: Annotated[
        int | None, msgspec.Meta(description="How many wallets the funder first sent eth to.")
    ]
    seconds_apart: Annotated[
        int | None, msgspec.Meta(description="same_funder: the time between the two payments, in seconds.")
    ]
    shared: Annotated[int | None, msgspec.Meta(description="same_tokens: how many.")]
    of_tokens: Annotated[
        int | None,
        msgspec.Meta(description="same_tokens: of how many of the asked wallet's newest, at most 100."),
    ]
    other_tokens: Annotated[
        int | None,
        msgspec.Meta(description="same_tokens: how many the linked wallet ever traded, counted up to 2,000."),
    ]
    tokens: Annotated[
        tuple[SharedToken, ...], msgspec.Meta(description="same_tokens: the most telling, at most 5.")
    ]


class LinkedWallet(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that may be the same person's."""

    address: str
    score: Annotated[
        int,
        msgspec.Meta(description="1 to 100: how much speaks for it. A hint, never a proof.", ge=1, le=100),
    ]
    reasons: tuple[Reason, ...]


class FunderStanding(msgspec.Struct, frozen=True, rename="camel"):
    """The asked wallet's funder, and whether it links anybody."""

    address: str
    wallets_funded: Annotated[
        int, msgspec.Meta(description="How many wallets it first sent eth to; counted up to 501.")
    ]
    standing: Annotated[
        Standing,
        msgspec.Meta(
            description="links: it does; exchange: it first sent eth to over 500 wallets; contract: it has "
            "code; machinery: a contract of the chain that everybody uses."
        ),
    ]


class LinkedWallets(IndexAnswer, frozen=True, rename="camel"):
    """Wallets that share the wallet's funder or trade the same tokens within blocks of it."""

    address: str
    funder: Annotated[
        FunderStanding | None, msgspec.Meta(description="Null: nobody is known to have sent it eth first.")
    ]
    tokens_compared: Annotated[
        int, msgspec.Meta(description="Tokens that the wallet bought in the last 30 days, at most 100.")
    ]
    linked: Annotated[tuple[LinkedWallet, ...], msgspec.Meta(description="The best first, at most 20.")]


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


MOST_LINKED = 20
MOST_WEIGHED = 40
"""So many of the best are asked for their code, with the funder and without: contracts among them, and a
funder that is one, leave room for others."""


async def linked_wallets(ctx: Context, params: WalletParams) -> UseCaseAnswer[LinkedWallets]:
    """The best links, each with what speaks for it. Raises CallerFault (bad_address), ServiceFull (busy,
    budget_spent), NodeFault: who is a contract cannot be known then, and contracts link nobody."""
    wallet = params.wallet()
    machinery = ctx.contracts.all_addresses() | ENTRY_POINTS | BURN_ADDRESSES
    async with reading(ctx) as (connection, stands):
        gathered = await _read_record(connection, wallet, stands, machinery)
    contracts = await _contracts(ctx, gathered)
    return UseCaseAnswer(present(ctx.chain_id, gathered, contracts, MOST_LINKED), ctx.policy.answer_ttl_ms)


async def _read_record(
    connection: Connection, wallet: Address, stands: Cursor, machinery: frozenset[Address]
) -> LinkedRecord:
    """All that the index knows of it, and of whoever may be linked to it."""
    followed_s = await vitals.followed_from_s(connection, stands)
    found = LinkedRecord(stands, wallet, followed_s, is_machinery=wallet in machinery)
    wallet_id = await addresses.id_of(connection, wallet)
    if found.is_machinery or wallet_id is None:
        return found
    given = await linked.funded_by(connection, wallet_id)
    found = replace(found, is_met=True, is_exchange=is_exchange(len(given)))
    if found.is_exchange:
        return found
    money: dict[int, list[Money]] = {}
    for one in given:
        money.setdefault(one.wallet_id, []).append(Money("funded", len(given)))
    funder = await _funder(connection, wallet, wallet_id, machinery, money)
    money.pop(wallet_id, None)
    buys = await linked.newest_buys(connection, wallet_id, stands.block.timestamp_s)
    beside = await linked.beside(connection, wallet_id, buys, money)
    traded = await linked.tokens_traded(connection, [wallet_id, *beside])
    same = {
        other: SameTokens(one.shared, len(buys), traded[wallet_id], traded[other], one.weight_bps)
        for other, one in beside.items()
    }
    shown = await _best_candidates(connection, money, same, beside, machinery | {wallet})
    token_ids = {shared.token_id for one in shown for shared in one.tokens}
    labels = await tokens.labels(connection, token_ids)
    return replace(found, funder=funder, tokens_compared=len(buys), candidates=shown, labels=labels)


async def _funder(
    connection: Connection,
    wallet: Address,
    wallet_id: int,
    machinery: frozenset[Address],
    money: dict[int, list[Money]],
) -> Funder | None:
    """Who first sent the wallet eth; into ``money`` goes whom that may link."""
    own = await linked.funding(connection, wallet_id)
    older = await origins.older(connection, wallet)
    funder_id, funded_s = (None, None) if own is None else (own.funder_id, own.funded_s)
    if older is not None and older.found is not None and older.found.funder is not None:
        older_id = await addresses.id_of(connection, older.found.funder)
        if older_id is None:
            # No wallet that the index knows had its first eth of it.
            return Funder(older.found.funder, 0, older.found.funder in machinery)
        # When it sent it is not known where that is not what the sync saw, too.
        funder_id, funded_s = older_id, funded_s if older_id == funder_id else None
    if funder_id is None:
        return None
    (address,) = (await addresses.addresses_of(connection, [funder_id])).values()
    given = await linked.funded_by(connection, funder_id)
    found = Funder(address, len(given), address in machinery)
    if found.is_machinery or is_exchange(found.family):
        return found
    money.setdefault(funder_id, []).append(Money("funded_by", found.family))
    for one in given:
        apart_s = None if funded_s is None else abs(one.funded_s - funded_s)
        money.setdefault(one.wallet_id, []).append(Money("same_funder", found.family, apart_s))
    return found


async def _best_candidates(
    connection: Connection,
    money: Mapping[int, list[Money]],
    same: Mapping[int, SameTokens],
    beside: Mapping[int, LinkedPeer],
    never: Iterable[Address],
) -> tuple[Candidate, ...]:
    """The best of them, with the funder and without; exchanges and ``never`` left out."""
    known = await addresses.addresses_of(connection, money.keys() | same.keys())
    left_out = set(never)
    found = {
        wallet_id: Candidate(
            address,
            tuple(money.get(wallet_id, ())),
            same.get(wallet_id),
            beside[wallet_id].tokens if wallet_id in beside else (),
        )
        for wallet_id, address in known.items()
        if address not in left_out
    }
    best: dict[int, Candidate] = {}
    for by_funder in (True, False):
        scored = [(one.score(by_funder), one.address, wallet_id) for wallet_id, one in found.items()]
        ranked = sorted((one for one in scored if one[0]), key=lambda one: (-one[0], one[1]))
        best |= {wallet_id: found[wallet_id] for *_, wallet_id in ranked[:MOST_WEIGHED]}
    crowds = await linked.families(connection, best)
    return tuple(one for wallet_id, one in best.items() if not is_exchange(crowds[wallet_id]))


async def _contracts(ctx: Context, gathered: LinkedRecord) -> dict[Address, bool | None]:
    """Which of all that are spoken of are contracts, at the head. Raises NodeFault where that is not known
    of the wallet or its funder."""
    sure = [gathered.wallet, *([gathered.funder.address] if gathered.funder else [])]
    asked = list(dict.fromkeys([*sure, *(one.address for one in gathered.candidates)]))
    calls = code_calls(asked, ctx.heads.current().block)
    found = read_codes(await ctx.node.batch(calls), asked, ctx.chain_id)
    if any(found[address] is None for address in sure):
        raise NodeFault("it told no code")
    return found
