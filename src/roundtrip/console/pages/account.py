"""An account's own rooms: what it is told, what it watches, where it is told, its keys and calls."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from starlette.responses import Response

from roundtrip.api.operations.operation import AnyOperation, Operation
from roundtrip.console.support.account_page import AccountForm, Room
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import CallerFault, RoundtripError

from .account_sections import bag, channels, inbox, keys, marks, overview, practice, watch

_HOUSE = (overview, inbox, watch, channels, bag, practice, marks, keys)
ROOMS: tuple[Room, ...] = tuple(one.ROOM for one in _HOUSE)
ACTS: tuple[AccountForm, ...] = tuple(act for one in _HOUSE for act in one.ACTS)
_ROOMS: Mapping[str, Room] = MappingProxyType({room.name: room for room in ROOMS})
_NO_ROOM = ("bad_key", "internal")
"""Faults after which no room is shown: of nobody, or ours."""
_ACTS: Mapping[str, AccountForm] = MappingProxyType({act.name: act for act in ACTS})


async def account(visit: Visit) -> Response:
    """The first room."""
    return await _show_room(visit, ROOMS[0])


async def room(visit: Visit) -> Response:
    """One of them."""
    found = _ROOMS.get(visit.path["room"])
    if found is None:
        raise CallerFault("not_found", "There is no such page.")
    return await _show_room(visit, found)


async def act(visit: Visit) -> Response:
    """What a form asks for, and the room again with what came of it."""
    found = _ACTS.get(visit.path["tool"])
    if found is None:
        raise CallerFault("not_found", "There is no such form.")
    if found.reads is not None:
        visit.form = found.reads(visit.form)
    try:
        await _must_be_new(found, visit)
        done = await visit.ask(
            found.operation, **_params(found, visit.form), **_session(found.operation, visit)
        )
    except RoundtripError as fault:
        if fault.code in _NO_ROOM:
            raise
        # What the visitor wrote is put right beside the form, not on a page of its own.
        return await _show_room(visit, _ROOMS[found.room], act=found.name, fault=fault, status=fault.status)
    return await _show_room(visit, _ROOMS[found.room], act=found.name, done=done)


async def _must_be_new(found: AccountForm, visit: Visit) -> None:
    """Raises CallerFault where the page that the form stood on saw something else than there is now."""
    if found.seen is not None:
        tool, told = found.seen
        if visit.form.get("seen") != told(await visit.ask(tool)):
            raise CallerFault(
                "bad_input", "This was sent already, or something came between: look, and send it again."
            )


def _params(found: AccountForm, form: Mapping[str, str]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for name in found.fields:
        text = form.get(name, "").strip()
        if text:
            params[name] = _number(text) if name in found.numbers else text
    return params


def _session(operation: str | AnyOperation, visit: Visit) -> dict[str, Any]:
    """For what asks which session it is: never by a form."""
    asks = isinstance(operation, Operation) and "session" in operation.params.__struct_fields__
    return {"session": visit.session} if asks else {}


def _number(text: str) -> int | float | str:
    """A plain decimal as JSON has it; anything else as it is, to be refused where it is read."""
    if not _PLAIN.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


_PLAIN = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


async def _show_room(
    visit: Visit,
    one: Room,
    act: str | None = None,
    done: Mapping[str, Any] | None = None,
    fault: RoundtripError | None = None,
    status: int = 200,
) -> Response:
    answers = {name: await visit.ask(tool, **_session(tool, visit)) for name, tool in one.shows.items()}
    also = {} if one.also is None else one.also(answers, visit.query)
    return visit.show(
        one.template,
        status,
        room=one,
        rooms=ROOMS,
        act=act,
        done=done,
        fault=fault,
        form=visit.form,
        **answers,
        **also,
    )
