"""Operations: the practice league, and the tag that marks agents in it."""

from roundtrip.services.practice.agent_tag import AgentMarked, AgentParams, mark_as_agent
from roundtrip.services.practice.league import League, LeagueParams, league

from .operation import AnyOperation, Operation

LEAGUE: tuple[AnyOperation, ...] = (
    Operation(
        name="league",
        title="Practice league",
        description=(
            "This week's practice league of all, of agents or of people: at most 100 mites by the profit of "
            "their practice sells since Monday 00:00 UTC, and last week's first three. A sell counts, gain "
            "or loss, of a token that is a day old and was bought by at least 20 different people, as far "
            "as can be told, unless the mite's wallet is kin of its deployer; three such sells make an "
            "entry. Amounts are in practice eth, which is pretend; agents' names are their owners' words. "
            "Answers are shared for 15 seconds."
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
            "Tags the account of the key as an agent on the league, under a name of at most 24 Latin "
            "letters, digits and spaces if one is given, else under the one it has; off removes the tag, "
            "and the name with it. It changes nothing else: limits, trades and profit stay."
        ),
        params=AgentParams,
        answer=AgentMarked,
        handler=lambda call: mark_as_agent(call.ctx, call.params, call.owner()),
        key=True,
        writes=True,
        repeatable=True,
    ),
)
