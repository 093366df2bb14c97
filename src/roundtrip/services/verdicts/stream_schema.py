"""The event stream's parameters and events."""

from datetime import datetime
from typing import Annotated, Literal, get_args

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.verdicts.stream_position import StreamPosition, parse_position
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.alert_rows import AlertRow
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.removals import RemovalRow
from roundtrip.services.support.strangers_text import Sentence
from roundtrip.services.support.verdict_fields import CodeText, LevelText
from roundtrip.services.support.wallet_params import read_address

MAX_TOKENS = 50
Kind = Literal["verdict", "launch", "graduation", "removal", "alert"]
Notice = Literal["reorg", "gap", "cut"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class StreamParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which events, and from where on."""

    tokens: Annotated[
        str,
        says(
            f"Addresses of 1 to {MAX_TOKENS} tokens, separated by commas: only their verdicts, "
            "launches, graduations and removals. Left out: of all tokens. Alerts are always all of yours."
        ),
    ] = ""
    events: Annotated[
        str, says(f"Kinds of events, separated by commas: {', '.join(KINDS)}. Left out: all of them.")
    ] = ""
    last_event_id: Annotated[
        str,
        says(
            "The id of the last event that you have: the stream resumes after it, up to an hour "
            "later. The header Last-Event-ID, which browsers send, comes first. Left out: from now on."
        ),
    ] = ""

    def wanted_tokens(self) -> frozenset[Address] | None:
        """The tokens; None: all. Raises CallerFault (bad_input, bad_address)."""
        if not self.tokens:
            return None
        addresses = self.tokens.split(",", MAX_TOKENS)
        if len(addresses) > MAX_TOKENS:
            raise CallerFault("bad_input", f"tokens may name at most {MAX_TOKENS} addresses.")
        return frozenset(read_address(address, "Each of tokens") for address in addresses)

    def wanted_kinds(self) -> frozenset[Kind]:
        """The kinds of events. Raises CallerFault (bad_input)."""
        if not self.events:
            return frozenset(KINDS)
        names = self.events.split(",", len(KINDS))
        kinds = frozenset(kind for kind in KINDS if kind in names)
        if not kinds.issuperset(names):
            raise CallerFault(
                "bad_input", f"events must be some of {', '.join(KINDS)}, such as verdict,launch."
            )
        return kinds

    def resumes_after(self) -> StreamPosition | None:
        """The position of the last event; None: from now on. Raises CallerFault (bad_input)."""
        try:
            return parse_position(self.last_event_id) if self.last_event_id else None
        except ValueError:
            raise CallerFault(
                "bad_input",
                "Last-Event-ID is no id of an event of this stream. Leave it out to start from now on.",
            ) from None


class VerdictState(msgspec.Struct, frozen=True, rename="camel"):
    """A verdict without its text."""

    code: Annotated[CodeText, says("The verdict's code.")]
    level: Annotated[LevelText, says("The verdict's level.")]
    round_trip_loss_bps: Annotated[
        int | None, says("Loss of the round trip, in hundredths of a percent. null: not measured.")
    ]


class StreamEvent(msgspec.Struct, frozen=True):
    """The data of one event. What does not apply to its kind is null."""

    kind: Annotated[
        Kind | Notice,
        says(
            "verdict: a check found another verdict than the one before, or is the token's "
            "first; launch, graduation: of a launchpad's token; removal: a wallet took much active liquidity "
            "out of a pool of the token; alert: one of yours; reorg: launches, graduations, removals and "
            "alerts above its block were taken back; gap: events are missing; cut: the stream ends here."
        ),
    ]
    text: Sentence
    at: Annotated[datetime, says("When it happened.")]
    token: Annotated[str | None, says("The token's address. null: no token.")] = None
    block: Annotated[int | None, says("Its block. null: of no block.")] = None
    wallet: Annotated[
        str | None,
        says("The token's deployer; of a removal, who made it. null: none of launch, graduation, removal."),
    ] = None
    verdict: Annotated[VerdictState | None, says("The new verdict. null: not about a verdict.")] = None
    before: Annotated[
        VerdictState | None,
        says("The verdict before. null: not about a verdict, or the token's first check."),
    ] = None
    alert: Annotated[AlertRow | None, says("The alert, as in the inbox. null: none.")] = None
    removal: Annotated[RemovalRow | None, says("The removal. null: not about a removal.")] = None


class StreamPlan(msgspec.Struct, frozen=True):
    """What a stream sends, and to whom."""

    account_id: Annotated[int, says("Id of the account.")]
    tokens: Annotated[list[str] | None, says("The tokens. null: all.")]
    kinds: Annotated[list[Kind], says("The kinds of events.")]
    after: Annotated[str | None, says("The last event's id. null: from now on.")]


async def plan_stream(ctx: Context, params: StreamParams, account: Account) -> UseCaseAnswer[StreamPlan]:
    """Reads what a stream is to send. Raises CallerFault (bad_input, bad_address)."""
    tokens, after = params.wanted_tokens(), params.resumes_after()
    return UseCaseAnswer(
        StreamPlan(
            account.id,
            None if tokens is None else sorted(tokens),
            sorted(params.wanted_kinds()),
            None if after is None else str(after),
        )
    )
