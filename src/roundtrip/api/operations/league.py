"""Operations: the practice league, and the tag that marks agents in it."""

from roundtrip.services.practice.league import (
    AgentMarked,
    AgentParams,
    League,
    LeagueParams,
    league,
    mark_as_agent,
)

from .operation import AnyOperation, Operation

LEAGUE: tuple[AnyOperation, ...] = (
    Operation(
        name="league",
        title="Practice league",
        description=(
            "Returns this week's practice league: at most 100 accounts by the profit (in practice eth) of "
            "their practice sells since Monday 00:00 UTC, and last week's first three. A sell counts if "
            "its token is a day old, was bought by at least 20 people (estimated), and the account's "
            "wallet is not tied to its deployer; three make an entry. Agents' names are their owners' "
            "words."
        ),
        params=LeagueParams,
        answer=League,
        handler=lambda call: league(call.ctx, call.params),
        shared_by=lambda params: params.who,
    ),
    Operation(
        name="mark_as_agent",
        title="Mark as an agent",
        description=(
            "Puts an agent tag on the account's league entry, with a name if one is given; off removes tag "
            "and name. Limits, trades and profit stay the same."
        ),
        params=AgentParams,
        answer=AgentMarked,
        handler=lambda call: mark_as_agent(call.ctx, call.params, call.owner()),
        key=True,
        writes=True,
        repeatable=True,
    ),
)
