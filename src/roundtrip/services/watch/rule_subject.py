"""Whom a rule is about: the deployer or the creator of a token is looked up once, when it is set."""

import asyncpg

from roundtrip.domain.base.errors import CallerFault, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.rules import Rule
from roundtrip.store.index.addresses import id_of
from roundtrip.store.index.cursor import cursor
from roundtrip.store.index.deployers import LaunchSpot, launch_of


async def wallet_of(connection: asyncpg.Connection, rule: Rule) -> Address | None:
    """The one wallet that it is about; None: whoever, or the followed. Raises CallerFault (bad_input) where
    it can never hit, ServiceFull (busy) where that is not known yet."""
    if rule.verb == "moving" and rule.token is not None:
        await _launch(connection, rule.token, "Transfers are followed of launchpad tokens only.")
    who = rule.who
    if who.kind == "wallet":
        return who.address
    if who.address is None:
        return None
    launch = await _launch(connection, who.address, f"It has no {who.kind} that is known.")
    if who.kind == "deployer":
        return launch.deployer
    if launch.sender is None:
        raise CallerFault(
            "bad_input",
            f"Who sent the launch of {who.address} is not known: it is older than what was followed here. "
            f"Its deployer is: deployer:{who.address}.",
        )
    return launch.sender


async def unseen_text(connection: asyncpg.Connection, rule: Rule) -> str:
    """What to say of a token that stands in no fact: its address may be mistyped."""
    if rule.token is None or await id_of(connection, rule.token) is not None:
        return ""
    return f"Nothing was ever seen of {rule.token}: look whether that address is right."


async def _launch(connection: asyncpg.Connection, token: Address, why: str) -> LaunchSpot:
    found = await launch_of(connection, token)
    if found is not None:
        return found
    stands = await cursor(connection)
    if stands is None or not stands.is_whole():
        raise ServiceFull(
            "busy", f"No launch of {token} is known yet: launches of the past are still being read.", 60
        )
    raise CallerFault("bad_input", f"No launchpad launched {token}. {why}")
