"""Flags on tokens that were proved right, and of one token those that wait."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.domain.community.flag_calls import By, FlagScore, Kind
from roundtrip.services.check.schema import AddressText
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    TokenNamed,
    eth,
    eth_text,
    present_token,
    quote_token,
    reading,
    when,
)
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.community import flags as calls
from roundtrip.store.community.flags import PublicFlag
from roundtrip.store.index.tokens import Label

SHOWN = 50
_SAID = 3
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3600, 60
_NO_ADVICE = (
    "A flag is what somebody thinks, and one that was right says nothing of the next: hold the accuracy "
    "against the base rate, which chance alone has."
)


class ProvenParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which token."""

    address: Annotated[
        AddressText | None,
        msgspec.Meta(description="The token's address; left out: the latest of all tokens."),
    ] = None

    def token(self) -> Address | None:
        """The address, lower-cased; None: all tokens. Raises CallerFault (bad_address)."""
        return None if self.address is None else WalletParams(self.address).wallet()


class CalledBy(msgspec.Struct, frozen=True, rename="camel"):
    """The account that made a flag, with how its flags went so far."""

    designation: Annotated[str, msgspec.Meta(description="What it is called in public.")]
    agent: Annotated[bool, msgspec.Meta(description="Whether it says that it is a program.")]
    level: Annotated[int, msgspec.Meta(description="1 + floor(log2(1 + proved)).")]
    proved: Annotated[int, msgspec.Meta(description="Its flags that proved right.")]
    decided: Annotated[int, msgspec.Meta(description="Its flags that proved right or wrong.")]
    accuracy: Annotated[float | None, msgspec.Meta(description="proved / decided; null: nothing is decided.")]
    base_rate: Annotated[
        float | None,
        msgspec.Meta(
            description="The same of tokens drawn by chance with its flags; null: none is decided.",
        ),
    ]
    ahead_of_chance: Annotated[
        bool | None,
        msgspec.Meta(
            description="Whether it is right more often than chance, by more than luck makes; null without a "
            "base rate."
        ),
    ]


class FlagReceipt(msgspec.Struct, frozen=True, rename="camel"):
    """What proved a flag."""

    by: Annotated[
        By,
        msgspec.Meta(
            description="price: what a sell of what 0.1 eth had bought paid. liquidity: half of it left the "
            "pool. deployer: he sold half of what he held."
        ),
    ]
    block: Annotated[int, msgspec.Meta(description="In which it was seen.")]
    tx: Annotated[
        str | None, msgspec.Meta(description="The largest transaction of it; null: it was seen by the price.")
    ]
    paid_eth: Annotated[
        float | None, msgspec.Meta(description="What that sell paid, in eth; null: it was not the price.")
    ]


class ProvenCall(msgspec.Struct, frozen=True, rename="camel"):
    """A flag that was proved right."""

    token: TokenNamed
    kind: Kind
    mite: CalledBy
    flagged_at: Annotated[datetime, msgspec.Meta(description="By the chain's clock.")]
    proved_at: Annotated[datetime, msgspec.Meta(description="By the chain's clock.")]
    before_s: Annotated[
        int, msgspec.Meta(description="How many seconds before it came true it was flagged.", ge=0)
    ]
    receipt: FlagReceipt


class WaitingCall(msgspec.Struct, frozen=True, rename="camel"):
    """A flag that is neither proved nor over."""

    token: TokenNamed
    kind: Kind
    mite: CalledBy
    flagged_at: Annotated[datetime, msgspec.Meta(description="By the chain's clock.")]
    ends_at: Annotated[datetime, msgspec.Meta(description="By the chain's clock: then it is wrong.")]


class ProvenCalls(IndexAnswer, frozen=True, rename="camel"):
    """Flags that were proved, the latest first; of one token also those that wait."""

    rows: Annotated[list[ProvenCall], msgspec.Meta(description=f"At most {SHOWN}.")]
    waiting: Annotated[
        list[WaitingCall],
        msgspec.Meta(description=f"Of one token, the latest first, at most {SHOWN}; else empty."),
    ]


async def proven_calls(ctx: Context, params: ProvenParams) -> UseCaseAnswer[ProvenCalls]:
    """Of one token, or the latest of all. Raises CallerFault (bad_address), ServiceFull."""
    token = params.token()
    async with reading(ctx) as (connection, stands):
        proved = await calls.list_proved(connection, token, SHOWN)
        waiting = [] if token is None else await calls.still_waiting(connection, token, SHOWN)
        scores = await calls.scores(connection, {one.account_id for one in (*proved, *waiting)})
    answer = ProvenCalls(
        text=_text(token, proved, waiting, scores),
        chain_id=ctx.chain_id,
        block=stands.block.number,
        block_time=when(stands.block.timestamp_s),
        rows=[_proven(one, scores[one.account_id]) for one in proved],
        waiting=[_waiting(one, scores[one.account_id]) for one in waiting],
    )
    return UseCaseAnswer(answer, ctx.policy.answer_ttl_ms)


def _label(one: PublicFlag) -> Label:
    return Label(one.token, one.symbol, one.name, None, None)


def _proven(one: PublicFlag, score: FlagScore) -> ProvenCall:
    proof = one.proof
    assert proof is not None
    return ProvenCall(
        token=present_token(_label(one)),
        kind=one.kind,
        mite=_account(one, score),
        flagged_at=when(one.at_s),
        proved_at=when(proof.at_s),
        before_s=max(0, proof.at_s - one.at_s),
        receipt=FlagReceipt(
            proof.by, proof.block_number, proof.tx_hash, None if proof.wei is None else eth(proof.wei)
        ),
    )


def _waiting(one: PublicFlag, score: FlagScore) -> WaitingCall:
    return WaitingCall(
        present_token(_label(one)), one.kind, _account(one, score), when(one.at_s), when(one.ends_s)
    )


def _account(one: PublicFlag, score: FlagScore) -> CalledBy:
    return CalledBy(
        one.designation,
        one.is_agent,
        score.level,
        score.proved,
        score.decided,
        score.accuracy,
        score.base_rate,
        score.is_ahead,
    )


# --- in words --------------------------------------------------------------------------------------


def _text(
    token: Address | None, proved: list[PublicFlag], waiting: list[PublicFlag], scores: dict[int, FlagScore]
) -> str:
    whose = "any token" if token is None else str(token)
    if not proved:
        said = [f"No flag on {whose} was proved yet."]
    else:
        many = f"The latest {len(proved)} flags" if len(proved) > 1 else "One flag"
        said = [f"{many} on {whose} proved right."] if token is None else []
        said += [_line(one, scores[one.account_id]) for one in proved[:_SAID]]
        if len(proved) > _SAID:
            said.append(f"{len(proved) - _SAID} more are in the rows.")
    if waiting:
        said.append(f"{_count(len(waiting))} still waiting: {_kinds(waiting)}.")
    return " ".join([*said, _NO_ADVICE])


def _count(flags: int) -> str:
    return "1 flag on it is" if flags == 1 else f"{flags} flags on it are"


def _kinds(waiting: list[PublicFlag]) -> str:
    kinds = [one.kind for one in waiting]
    return ", ".join(f"{kind} {kinds.count(kind)}" for kind in dict.fromkeys(kinds))


def _line(one: PublicFlag, score: FlagScore) -> str:
    proof = one.proof
    assert proof is not None
    how = {
        "price": f"what 0.1 eth had bought sold for {eth_text(proof.wei or 0)}",
        "liquidity": "half of its liquidity left",
        "deployer": "its deployer sold half of what he held",
    }[proof.by]
    return (
        f"{one.designation} flagged {quote_token(_label(one))} {one.kind}"
        f" {_long(proof.at_s - one.at_s)} before "
        f"{how} ({score.proved} of {score.decided} proved right{_by_chance(score)})."
    )


def _by_chance(score: FlagScore) -> str:
    return f"; chance {score.by_chance} of {score.drawn}" if score.drawn else ""


def _long(seconds: int) -> str:
    """A span of time in its largest whole unit."""
    for unit_s, unit in ((_DAY_S, "day"), (_HOUR_S, "hour"), (_MINUTE_S, "minute")):
        if seconds >= unit_s:
            count = seconds // unit_s
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{max(0, seconds)} seconds"
