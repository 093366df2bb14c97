"""What a page draws of a rule that is tried: its hits by time, of the same replay."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import when

from .rule_backtest import tested_and_times
from .schema import RuleParams, RuleTested

STEPS_S = (300, 3600, 21_600)
MOST_BARS = 48


class RuleBar(msgspec.Struct, frozen=True):
    """``hits`` from ``at`` on, for one step."""

    at: datetime
    hits: int


class RuleDrawn(RuleTested, frozen=True, rename="camel", kw_only=True):
    """What a rule would have told, and when."""

    step_s: int
    bars: Annotated[
        list[RuleBar],
        msgspec.Meta(description="The oldest first, empty steps too; where atLeast, the uncounted left out."),
    ]


async def draw_rule(ctx: Context, params: RuleParams, account: Account) -> UseCaseAnswer[RuleDrawn]:
    """As ``test_rule``, with the hits by time. Raises CallerFault (bad_input), ServiceFull."""
    tested, hits_s = await tested_and_times(ctx, params, account)
    from_s, to_s = int(tested.from_time.timestamp()), int(tested.to_time.timestamp())
    step_s = step_of(to_s - from_s)
    if tested.at_least:
        # Of the step in which counting ended not all were counted.
        from_s = hits_s[-1] // step_s * step_s + step_s
    bars = bars_of(hits_s, from_s, to_s, step_s)
    return UseCaseAnswer(RuleDrawn(**msgspec.structs.asdict(tested), step_s=step_s, bars=bars))


def step_of(span_s: int) -> int:
    """The finest step, in seconds, by which ``span_s`` is no more than MOST_BARS."""
    return next((step_s for step_s in STEPS_S if span_s <= step_s * MOST_BARS), STEPS_S[-1])


def bars_of(hits_s: Sequence[int], from_s: int, to_s: int, step_s: int) -> list[RuleBar]:
    """Hits by steps of the clock, from the one that has ``from_s`` to the one that has ``to_s``."""
    counted = Counter(at_s // step_s for at_s in hits_s)
    steps = range(from_s // step_s, to_s // step_s + 1)
    return [RuleBar(when(step * step_s), counted[step]) for step in steps]
