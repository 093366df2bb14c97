"""Sets the agent tag, by which an account declares that it is a program."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import AGENT_NAME_PATTERN, MAX_AGENT_NAME, Account, agent_name
from roundtrip.domain.base.errors import CallerFault
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.answer_fields import Designation, says
from roundtrip.services.support.strangers_text import AnswerText
from roundtrip.store.practice import league

_BAD_NAME = f'name must be at most {MAX_AGENT_NAME} Latin letters, digits and spaces, such as "Trader 1".'


class AgentParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the agent is called, or that there is none."""

    name: Annotated[
        Annotated[str, msgspec.Meta(pattern=AGENT_NAME_PATTERN, max_length=MAX_AGENT_NAME)] | None,
        says(
            "The agent's public name: at most 24 Latin letters, digits and spaces. Left out: the name stays."
        ),
    ] = None
    off: Annotated[bool, says("true: removes the tag and the agent's name.")] = False

    def agents_name(self) -> str | None:
        """The agent's name; None if none was given. Raises CallerFault (bad_input)."""
        if self.name is None:
            return None
        if self.off:
            raise CallerFault("bad_input", "off removes the tag and the name: give off or name, not both.")
        try:
            return agent_name(self.name)
        except ValueError:
            raise CallerFault("bad_input", _BAD_NAME) from None


class AgentMarked(msgspec.Struct, frozen=True, rename="camel"):
    """The account's tag as it is now."""

    text: AnswerText
    designation: Designation
    agent: Annotated[bool, says("Whether the account carries the agent tag now.")]
    agent_name: Annotated[str | None, says("The agent's name. null: it has none.")]


async def mark_as_agent(ctx: Context, params: AgentParams, account: Account) -> UseCaseAnswer[AgentMarked]:
    """Sets or removes the tag; this week's league shows it at once. Raises CallerFault (bad_input),
    ServiceFull."""
    name, now = params.agents_name(), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        if params.off:
            tagged = await league.untag(connection, account.id, now)
        else:
            tagged = await league.tag(connection, account.id, name, now)
    return UseCaseAnswer(AgentMarked(_text(tagged), tagged.designation, tagged.is_agent, tagged.agent_name))


def _text(account: Account) -> str:
    if not account.is_agent:
        name = account.designation
        return f"{name} has no agent tag: the league counts it among people. Nothing else changed."
    name = f', called "{account.agent_name}"' if account.agent_name else ""
    return f"{account.designation} is tagged as an agent{name}, also in the league. Nothing else changed."
