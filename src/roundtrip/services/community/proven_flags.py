"""Lists flags that were proved right; for one token also its waiting flags."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated

import msgspec

from roundtrip.domain.base.figures import format_count, format_duration, format_eth
from roundtrip.domain.base.types import Address
from roundtrip.domain.community.flag_calls import By, FlagScore, Kind
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import AddressText, WalletParams, says
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    TokenNamed,
    eth,
    present_token,
    quote_token,
    reading,
    when,
)
from roundtrip.store.community import flags as store
from roundtrip.store.community.flags import PublicFlag
from roundtrip.store.index.tokens import Label

SHOWN = 50
_QUOTED = 3
"""The most proved flags that the text describes."""
_PREDICTED: Mapping[Kind, str] = MappingProxyType({"runs": "runs", "drains": "drains", "dead": "dies"})
_NO_ADVICE = (
    "A flag is an opinion, and one that was right says nothing about the next. Compare accuracy with "
    "baseRate, which is what chance alone gives."
)


class ProvenParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which token."""

    address: Annotated[
        AddressText | None, says("The token's address. Left out: the latest flags of all tokens.")
    ] = None

    def token(self) -> Address | None:
        """The address, lower-cased; None: all tokens. Raises CallerFault (bad_address)."""
        return None if self.address is None else WalletParams(self.address).wallet()


class CalledBy(msgspec.Struct, frozen=True, rename="camel"):
    """The account that made a flag, with how its flags went so far."""

    designation: Annotated[str, says("The account's public name.")]
    agent: Annotated[bool, says("Whether the account carries the agent tag.")]
    level: Annotated[int, says("Level by flags that proved right: 1 + floor(log2(1 + proved)).")]
    proved: Annotated[int, says("Its flags that proved right.")]
    decided: Annotated[int, says("Its flags that proved right or wrong.")]
    accuracy: Annotated[float | None, says("proved divided by decided, 0 to 1. null: none is decided.")]
    base_rate: Annotated[
        float | None,
        says("The same share for tokens drawn at random, one for each flag. null: none is decided."),
    ]
    ahead_of_chance: Annotated[
        bool | None,
        says("Whether its flags are right more often than luck explains. null: there is no base rate."),
    ]


class FlagReceipt(msgspec.Struct, frozen=True, rename="camel"):
    """What proved a flag."""

    by: Annotated[
        By,
        says(
            "price: a sell of what 0.1 eth had bought. liquidity: half of it left the "
            "pool. deployer: the deployer sold half of what it held."
        ),
    ]
    block: Annotated[int, says("Block of the proof.")]
    tx: Annotated[str | None, says("Its largest transaction. null: proved by price.")]
    paid_eth: Annotated[float | None, says("What that sell paid, in eth. null: not proved by price.")]


class ProvenCall(msgspec.Struct, frozen=True, rename="camel"):
    """A flag that was proved right."""

    token: Annotated[TokenNamed, says("The token that was flagged.")]
    kind: Annotated[Kind, says("Whether the flag says that the token runs (triples), drains or is dead.")]
    mite: Annotated[CalledBy, says("The account that made the flag.")]
    flagged_at: Annotated[datetime, says("When the flag was made, by the chain's clock.")]
    proved_at: Annotated[datetime, says("When it came true, by the chain's clock.")]
    before_s: Annotated[int, msgspec.Meta(description="Seconds between the flag and its proof.", ge=0)]
    receipt: Annotated[FlagReceipt, says("What proved the flag.")]


class WaitingCall(msgspec.Struct, frozen=True, rename="camel"):
    """A flag that is neither proved nor over."""

    token: Annotated[TokenNamed, says("The token that was flagged.")]
    kind: Annotated[Kind, says("Whether the flag says that the token runs (triples), drains or is dead.")]
    mite: Annotated[CalledBy, says("The account that made the flag.")]
    flagged_at: Annotated[datetime, says("When the flag was made, by the chain's clock.")]
    ends_at: Annotated[
        datetime, says("When the flag counts as wrong unless it is proved before, by the chain's clock.")
    ]


class ProvenCalls(IndexAnswer, frozen=True, rename="camel"):
    """Flags that were proved, the latest first; of one token also those that wait."""

    rows: Annotated[list[ProvenCall], says("Flags that proved right, the latest first, at most 50.")]
    waiting: Annotated[
        list[WaitingCall],
        says(
            "With an address: its flags that are not decided yet, the latest first, at most 50. Else empty."
        ),
    ]


async def proven_calls(ctx: Context, params: ProvenParams) -> UseCaseAnswer[ProvenCalls]:
    """The proved flags on one token, or the latest on all. Raises CallerFault (bad_address), ServiceFull."""
    token = params.token()
    async with reading(ctx) as (connection, indexed):
        proved = await store.list_proved(connection, token, SHOWN)
        waiting = [] if token is None else await store.list_waiting(connection, token, SHOWN)
        scores = await store.scores(connection, {flag.account_id for flag in (*proved, *waiting)})
    answer = ProvenCalls(
        text=_text(token, proved, waiting, scores),
        chain_id=ctx.chain_id,
        block=indexed.block.number,
        block_time=when(indexed.block.timestamp_s),
        rows=[_present_proved(flag, scores[flag.account_id]) for flag in proved],
        waiting=[_present_waiting(flag, scores[flag.account_id]) for flag in waiting],
    )
    return UseCaseAnswer(answer, ctx.policy.answer_ttl_ms)


def _label(flag: PublicFlag) -> Label:
    return Label(flag.token, flag.symbol, flag.name, None, None)


def _present_proved(flag: PublicFlag, score: FlagScore) -> ProvenCall:
    proof = flag.proof
    assert proof is not None
    return ProvenCall(
        token=present_token(_label(flag)),
        kind=flag.kind,
        mite=_present_account(flag, score),
        flagged_at=when(flag.at_s),
        proved_at=when(proof.at_s),
        before_s=max(0, proof.at_s - flag.at_s),
        receipt=FlagReceipt(
            proof.by, proof.block_number, proof.tx_hash, None if proof.wei is None else eth(proof.wei)
        ),
    )


def _present_waiting(flag: PublicFlag, score: FlagScore) -> WaitingCall:
    return WaitingCall(
        present_token(_label(flag)),
        flag.kind,
        _present_account(flag, score),
        when(flag.at_s),
        when(flag.ends_s),
    )


def _present_account(flag: PublicFlag, score: FlagScore) -> CalledBy:
    return CalledBy(
        flag.designation,
        flag.is_agent,
        score.level,
        score.proved,
        score.decided,
        score.accuracy,
        score.base_rate,
        score.is_ahead,
    )


# --- text ------------------------------------------------------------------------------------------


def _text(
    token: Address | None, proved: list[PublicFlag], waiting: list[PublicFlag], scores: dict[int, FlagScore]
) -> str:
    subject = "any token" if token is None else str(token)
    if not proved:
        lines = [f"No flag on {subject} is proved yet."]
    else:
        latest = "The latest flag" if len(proved) == 1 else f"The latest {len(proved)} flags"
        lines = [f"{latest} on {subject} that proved right:"]
        for number, flag in enumerate(proved[:_QUOTED], 1):
            lines.append(f"{number}. {_sentence(flag, scores[flag.account_id])}")
        if len(proved) > _QUOTED:
            lines.append(f"The rows hold {len(proved) - _QUOTED} more.")
    if waiting:
        kinds = [flag.kind for flag in waiting]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        are = "is" if len(waiting) == 1 else "are"
        lines.append(f"{format_count(len(waiting), 'flag')} on it {are} still waiting: {counts}.")
    return "\n".join([*lines, _NO_ADVICE])


def _sentence(flag: PublicFlag, score: FlagScore) -> str:
    proof = flag.proof
    assert proof is not None
    event = {
        "price": f"what 0.1 eth had bought sold for {format_eth(proof.wei or 0)}",
        "liquidity": "half of its liquidity left",
        "deployer": "its deployer sold half of what it held",
    }[proof.by]
    return (
        f"{flag.designation} predicted that {quote_token(_label(flag))} {_PREDICTED[flag.kind]}, "
        f"{format_duration(proof.at_s - flag.at_s)} before {event}. "
        f"{score.proved:,} of {format_count(score.decided, 'decided flag')} of that account "
        f"{'was' if score.proved == 1 else 'were'} right{_chance_text(score)}."
    )


def _chance_text(score: FlagScore) -> str:
    return f"; by chance {score.by_chance:,} of {score.drawn:,}" if score.drawn else ""
