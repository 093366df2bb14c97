"""Wallets that may belong to the same person: the same funder, or the same tokens bought together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.holders.wallet_views import code_calls, read_codes
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.figures import format_count, format_duration
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.wallets.linked import MIN_SHARED, Money, SameTokens, is_exchange, score
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import Sentence, WalletParams, says
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed, present_token, reading, when
from roundtrip.store.index import origins, tokens, vitals
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import Label
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import linked
from roundtrip.store.wallets.linked import LOOK_BACK_S, MAX_COUNTED, CoBoughtToken, LinkedPeer
from roundtrip.venues.entry_point import ENTRY_POINTS

ReasonKind = Literal["same_funder", "funded_by", "funded", "same_tokens"]
Standing = Literal["links", "exchange", "contract", "machinery"]


class SharedToken(msgspec.Struct, frozen=True, rename="camel"):
    """A token that both bought in one moment."""

    token: Annotated[TokenNamed, says("The token.")]
    tx: Annotated[str, says("The asked wallet's buy.")]
    other_tx: Annotated[str, says("The linked wallet's buy.")]
    blocks_apart: Annotated[int, says("Blocks between the two.")]
    buyers: Annotated[
        int,
        says(
            "Other wallets that bought it in that moment, the linked one included: the "
            "fewer, the stronger the evidence."
        ),
    ]


class Reason(msgspec.Struct, frozen=True, rename="camel"):
    """One piece of evidence. What does not belong to its kind is null or empty."""

    kind: Annotated[
        ReasonKind,
        says(
            "same_funder: one wallet first sent eth to both. funded_by: the linked wallet "
            "first sent eth to the asked one. funded: the other way round. same_tokens: "
            "both bought the same tokens within ten blocks."
        ),
    ]
    text: Sentence
    funder: Annotated[str | None, says("The wallet that sent the eth. null: same_tokens.")]
    wallets_funded: Annotated[
        int | None, says("Wallets that the funder first sent eth to. null: same_tokens.")
    ]
    seconds_apart: Annotated[int | None, says("Seconds between the two payments. null: not same_funder.")]
    shared: Annotated[int | None, says("Tokens that both bought. null: not same_tokens.")]
    of_tokens: Annotated[
        int | None,
        says("The asked wallet's newest tokens that were compared, at most 100. null: not same_tokens."),
    ]
    other_tokens: Annotated[
        int | None,
        says("Tokens that the linked wallet ever traded, counted up to 2,000. null: not same_tokens."),
    ]
    tokens: Annotated[
        tuple[SharedToken, ...], says("The most telling shared tokens, at most 5; empty: not same_tokens.")
    ]


class LinkedWallet(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that may be the same person's."""

    address: Annotated[str, says("The linked wallet.")]
    score: Annotated[
        int,
        msgspec.Meta(description="Strength of the evidence, 1 to 100. A hint, never a proof.", ge=1, le=100),
    ]
    reasons: Annotated[tuple[Reason, ...], says("The evidence.")]


class FunderStanding(msgspec.Struct, frozen=True, rename="camel"):
    """The asked wallet's funder, and whether it links wallets."""

    address: Annotated[str, says("The funder's wallet.")]
    wallets_funded: Annotated[int, says("Wallets that it first sent eth to; counted up to 501.")]
    standing: Annotated[
        Standing,
        says(
            "Whether a shared funder links wallets. links: yes. exchange: no, it funded over 500 wallets. "
            "contract: no, it has code. machinery: no, a contract that everybody uses."
        ),
    ]


class LinkedWallets(IndexAnswer, frozen=True, rename="camel"):
    """Wallets that share the wallet's funder or trade the same tokens within blocks of it."""

    address: Annotated[str, says("The wallet that was asked about.")]
    funder: Annotated[FunderStanding | None, says("Its funder. null: not known.")]
    tokens_compared: Annotated[int, says("Tokens that it bought in the last 30 days, at most 100.")]
    linked: Annotated[tuple[LinkedWallet, ...], says("Linked wallets, the highest score first, at most 20.")]


@dataclass(frozen=True, slots=True)
class Funder:
    """The wallet's funder: the first to send it eth. ``family``: number of wallets that it funded."""

    address: Address
    family: int
    is_machinery: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A wallet that may be linked, and the evidence for it. ``same``, ``tokens``: of tokens that both bought;
    None, empty: there are none."""

    address: Address
    money: tuple[Money, ...]
    same: SameTokens | None
    tokens: tuple[CoBoughtToken, ...]

    def list_money(self, by_funder: bool) -> tuple[Money, ...]:
        """Its links by money; without ``by_funder`` those through the wallet's own funder are left out."""
        return tuple(piece for piece in self.money if by_funder or piece.kind == "funded")

    def score(self, by_funder: bool) -> int:
        """Likelihood of a link, 0 to 100."""
        return score(self.list_money(by_funder), self.same)


@dataclass(frozen=True, slots=True)
class LinkedRecord:
    """What the index knows. ``is_machinery``: the wallet is an address that all wallets use (one of the
    network's contracts, an entry point, a burn address); ``is_met``: the index knows its address;
    ``is_exchange``: it funded so many wallets that it counts as one. ``followed_s``: since when the chain is
    followed."""

    index_cursor: Cursor
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
    chain_id: int, record: LinkedRecord, contracts: Mapping[Address, bool | None], most: int
) -> LinkedWallets:
    """The answer. ``contracts``: whether an address is a contract; None (not known) leaves it out."""
    block, funder = record.index_cursor.block, record.funder
    standing = None if funder is None else _judge_funder(funder, contracts[funder.address] is not False)
    linked: list[LinkedWallet] = []
    if not contracts[record.wallet]:
        wallets = [candidate for candidate in record.candidates if contracts[candidate.address] is False]
        linked = _present_linked(record, wallets, standing == "links")[:most]
    return LinkedWallets(
        text=" ".join(_describe(record, contracts[record.wallet] is not False, standing, linked)),
        chain_id=chain_id,
        block=block.number,
        block_time=when(block.timestamp_s),
        address=record.wallet,
        funder=None
        if funder is None or standing is None
        else FunderStanding(funder.address, funder.family, standing),
        tokens_compared=record.tokens_compared,
        linked=tuple(linked),
    )


def _judge_funder(funder: Funder, is_contract: bool) -> Standing:
    """Whether a funder links the wallets that it funded, or the reason why not."""
    if funder.is_machinery:
        return "machinery"
    if is_exchange(funder.family):
        return "exchange"
    return "contract" if is_contract else "links"


def _present_linked(record: LinkedRecord, wallets: list[Candidate], by_funder: bool) -> list[LinkedWallet]:
    rows = []
    for candidate in wallets:
        points = candidate.score(by_funder)
        if points:
            rows.append(
                LinkedWallet(candidate.address, points, tuple(_explain(record, candidate, by_funder)))
            )
    return sorted(rows, key=lambda linked: (-linked.score, linked.address))


def _explain(record: LinkedRecord, candidate: Candidate, by_funder: bool) -> list[Reason]:
    money = candidate.list_money(by_funder)
    reasons = [_explain_money(record, candidate, piece) for piece in money]
    same = candidate.same
    if same is not None and (same.shared >= MIN_SHARED or money):
        reasons.append(_explain_tokens(record, same, candidate.tokens))
    return reasons


def _explain_money(record: LinkedRecord, candidate: Candidate, money: Money) -> Reason:
    if money.kind == "funded":
        sentence = "The wallet that you asked about sent it its first eth."
        return _build_reason(money, sentence, record.wallet)
    if money.kind == "funded_by":
        sentence = "It sent the wallet that you asked about its first eth."
        return _build_reason(money, sentence, candidate.address)
    funder = record.funder.address if record.funder else None
    apart = "" if money.apart_s is None else f", {format_duration(money.apart_s)} apart"
    family = format_count(money.family, "wallet")
    sentence = f"Both got their first eth from {funder}{apart}, as did {family} in all."
    return _build_reason(money, sentence, funder)


def _build_reason(money: Money, sentence: str, funder: str | None) -> Reason:
    return Reason(money.kind, sentence, funder, money.family, money.apart_s, None, None, None, ())


def _explain_tokens(record: LinkedRecord, same: SameTokens, tokens: tuple[CoBoughtToken, ...]) -> Reason:
    at_least = "at least " if same.other_tokens >= MAX_COUNTED else ""
    sentence = (
        f"Both bought {same.shared} of the {format_count(same.of_tokens, 'token')} compared, within ten "
        f"blocks of each other. It traded {at_least}{format_count(same.other_tokens, 'token')} in all."
    )
    shown = tuple(
        SharedToken(
            present_token(record.labels[shared.token_id]),
            shared.own_tx,
            shared.other_tx,
            shared.blocks_apart,
            shared.others,
        )
        for shared in tokens
    )
    counts = same.shared, same.of_tokens, same.other_tokens
    return Reason("same_tokens", sentence, None, None, None, *counts, shown)


# --- in words --------------------------------------------------------------------------------------

_FUNDER_TEXT: dict[Standing, str] = {
    "links": "Its first eth came from {funder}.",
    "exchange": "Its first eth came from {funder}, which sent over 500 wallets their first eth: probably an "
    "exchange, and not a link.",
    "contract": "Its first eth came from {funder}, a contract: that links no wallets.",
    "machinery": "Its first eth came from {funder}, a contract that everyone uses: that links no wallets.",
}


def _describe(
    record: LinkedRecord, is_contract: bool, standing: Standing | None, linked: list[LinkedWallet]
) -> list[str]:
    if record.is_machinery:
        return ["This is an address that everyone uses, not a person's wallet: we link it to no wallet."]
    if is_contract:
        return ["This address is a contract, not a wallet: we link contracts to no wallet."]
    if record.is_exchange:
        return [
            "This wallet sent over 500 others their first eth: it is probably an exchange, which we link to "
            "no wallet."
        ]
    if not record.is_met:
        return ["The index does not know this wallet, so it knows nothing that could link it to another."]
    sentences = [_describe_linked(linked)]
    if record.funder is None or standing is None:
        sentences.append("We do not know who sent it its first eth.")
    else:
        sentences.append(_FUNDER_TEXT[standing].format(funder=record.funder.address))
    if record.tokens_compared:
        compared = format_count(record.tokens_compared, "token")
        sentences.append(f"We compared {compared} that it bought in the last 30 days.")
    elif _is_young(record):
        since = f"{when(record.followed_s):%Y-%m-%d %H:%M}"
        sentences.append(
            f"We have followed the chain only since {since} UTC, and it bought nothing since then: there "
            "were no tokens to compare."
        )
    else:
        sentences.append("It bought nothing in the last 30 days, so there were no tokens to compare.")
    return sentences


def _is_young(record: LinkedRecord) -> bool:
    """Whether the days that are compared began before the chain was followed, so buys may be missing."""
    index_cursor = record.index_cursor
    return index_cursor.start_number > 0 and record.followed_s > index_cursor.block.timestamp_s - LOOK_BACK_S


def _describe_linked(linked: list[LinkedWallet]) -> str:
    if not linked:
        return "We found no other wallet that is linked to it."
    best = linked[0]
    why = " ".join(reason.text for reason in best.reasons)
    return (
        f"{format_count(len(linked), 'other wallet')} may be linked to it. The most likely to belong to the "
        f"same person is {best.address}, with a score of {best.score} of 100. Why: {why} This is a hint, not "
        "proof: an employer, a friend or a faucet also pays people, and anyone can buy what others buy."
    )


MAX_LINKED = 20
MAX_WEIGHED = 40
"""So many of the best candidates have their code read, ranked once with the funder and once without. The
surplus makes up for candidates, and a funder, that turn out to be contracts."""


async def linked_wallets(ctx: Context, params: WalletParams) -> UseCaseAnswer[LinkedWallets]:
    """The best links, each with its evidence. Raises CallerFault (bad_address), ServiceFull (busy,
    budget_spent), and NodeFault when the node cannot say which addresses are contracts, which link no
    wallets."""
    wallet = params.wallet()
    machinery = ctx.contracts.all_addresses() | ENTRY_POINTS | BURN_ADDRESSES
    async with reading(ctx) as (connection, index_cursor):
        record = await _read_record(connection, wallet, index_cursor, machinery)
    contracts = await _find_contracts(ctx, record)
    return UseCaseAnswer(present(ctx.chain_id, record, contracts, MAX_LINKED), ctx.policy.answer_ttl_ms)


async def _read_record(
    connection: Connection, wallet: Address, index_cursor: Cursor, machinery: frozenset[Address]
) -> LinkedRecord:
    """Reads what the index knows of the wallet and of wallets that may be linked to it."""
    followed_s = await vitals.followed_from_s(connection, index_cursor)
    record = LinkedRecord(index_cursor, wallet, followed_s, is_machinery=wallet in machinery)
    wallet_id = await tokens.id_of(connection, wallet)
    if record.is_machinery or wallet_id is None:
        return record
    funded = await linked.funded_by(connection, wallet_id)
    record = replace(record, is_met=True, is_exchange=is_exchange(len(funded)))
    if record.is_exchange:
        return record
    money: dict[int, list[Money]] = {}
    for recipient in funded:
        money.setdefault(recipient.wallet_id, []).append(Money("funded", len(funded)))
    funder = await _find_funder(connection, wallet, wallet_id, machinery, money)
    money.pop(wallet_id, None)
    buys = await linked.newest_buys(connection, wallet_id, index_cursor.block.timestamp_s)
    peers = await linked.find_co_buyers(connection, wallet_id, buys, money)
    traded = await linked.tokens_traded(connection, [wallet_id, *peers])
    same = {
        other: SameTokens(peer.shared, len(buys), traded[wallet_id], traded[other], peer.weight_bps)
        for other, peer in peers.items()
    }
    shown = await _select_candidates(connection, money, same, peers, machinery | {wallet})
    token_ids = {token.token_id for candidate in shown for token in candidate.tokens}
    labels = await tokens.labels(connection, token_ids)
    return replace(record, funder=funder, tokens_compared=len(buys), candidates=shown, labels=labels)


async def _find_funder(
    connection: Connection,
    wallet: Address,
    wallet_id: int,
    machinery: frozenset[Address],
    money: dict[int, list[Money]],
) -> Funder | None:
    """The wallet's funder. Adds to ``money`` the wallets that the funder may link."""
    funding = await linked.funding(connection, wallet_id)
    search = await origins.read_archive_search(connection, wallet)
    funder_id, funded_s = (None, None) if funding is None else (funding.funder_id, funding.funded_s)
    if search is not None and search.found is not None and search.found.funder is not None:
        older_id = await tokens.id_of(connection, search.found.funder)
        if older_id is None:
            # The index knows no wallet that it funded.
            return Funder(search.found.funder, 0, search.found.funder in machinery)
        # The time of the payment is known only if the index has the same funder.
        funder_id, funded_s = older_id, funded_s if older_id == funder_id else None
    if funder_id is None:
        return None
    (address,) = (await tokens.addresses_of(connection, [funder_id])).values()
    funded = await linked.funded_by(connection, funder_id)
    funder = Funder(address, len(funded), address in machinery)
    if funder.is_machinery or is_exchange(funder.family):
        return funder
    money.setdefault(funder_id, []).append(Money("funded_by", funder.family))
    for recipient in funded:
        apart_s = None if funded_s is None else abs(recipient.funded_s - funded_s)
        money.setdefault(recipient.wallet_id, []).append(Money("same_funder", funder.family, apart_s))
    return funder


async def _select_candidates(
    connection: Connection,
    money: Mapping[int, list[Money]],
    same: Mapping[int, SameTokens],
    peers: Mapping[int, LinkedPeer],
    excluded: Iterable[Address],
) -> tuple[Candidate, ...]:
    """The best candidates, ranked once with the funder and once without, less exchanges and ``excluded``."""
    peer_addresses = await tokens.addresses_of(connection, money.keys() | same.keys())
    left_out = set(excluded)
    candidates = {
        wallet_id: Candidate(
            address,
            tuple(money.get(wallet_id, ())),
            same.get(wallet_id),
            peers[wallet_id].tokens if wallet_id in peers else (),
        )
        for wallet_id, address in peer_addresses.items()
        if address not in left_out
    }
    best: dict[int, Candidate] = {}
    for by_funder in (True, False):
        scored = [
            (candidate.score(by_funder), candidate.address, wallet_id)
            for wallet_id, candidate in candidates.items()
        ]
        ranked = sorted(
            (candidate for candidate in scored if candidate[0]),
            key=lambda candidate: (-candidate[0], candidate[1]),
        )
        best |= {wallet_id: candidates[wallet_id] for *_, wallet_id in ranked[:MAX_WEIGHED]}
    family_sizes = await linked.count_funded(connection, best)
    return tuple(
        candidate for wallet_id, candidate in best.items() if not is_exchange(family_sizes[wallet_id])
    )


async def _find_contracts(ctx: Context, record: LinkedRecord) -> dict[Address, bool | None]:
    """Whether the wallet, its funder and the candidates are contracts, at the head. Raises NodeFault when
    that is not known of the wallet or its funder."""
    required = [record.wallet, *([record.funder.address] if record.funder else [])]
    wallets = list(dict.fromkeys([*required, *(candidate.address for candidate in record.candidates)]))
    calls = code_calls(wallets, ctx.heads.current().block)
    contracts = read_codes(await ctx.node.batch(calls), wallets, ctx.chain_id)
    if any(contracts[address] is None for address in required):
        raise NodeFault("the code of the wallet or its funder not returned")
    return contracts
