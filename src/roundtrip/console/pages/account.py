"""The account's pages: its rooms, and the forms in them."""

import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from starlette.responses import Response

from roundtrip.console.support.account_page import AccountForm, Room
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import CallerFault, RoundtripError

from .account_sections import bag, channels, inbox, keys, marks, overview, practice, unlocks, watch
from .account_sections.inbox import tell_alert

_SECTIONS = (bag, inbox, watch, channels, practice, unlocks, marks, keys, overview)
ROOMS: tuple[Room, ...] = tuple(section.ROOM for section in _SECTIONS)
ACTS: tuple[AccountForm, ...] = tuple(act for section in _SECTIONS for act in section.ACTS)
_ROOMS: Mapping[str, Room] = MappingProxyType({room.name: room for room in ROOMS})
_WITHOUT_ROOM = ("bad_key", "internal")
"""Errors after which no room can be shown: signed out, or a failure of this service."""
_ACTS: Mapping[str, AccountForm] = MappingProxyType({act.operation.name: act for act in ACTS})


async def show_first_room(visit: Visit) -> Response:
    """GET /account: the settings."""
    return await _render_room(visit, overview.ROOM)


async def show_room(visit: Visit) -> Response:
    """GET /account/{room}."""
    room = _ROOMS.get(visit.subject)
    if room is None:
        raise CallerFault("not_found", f"There is no such page. Your account has: {', '.join(_ROOMS)}.")
    return await _render_room(visit, room)


async def submit_form(visit: Visit) -> Response:
    """POST /account/do/{tool}: calls the form's operation, and shows its room again with the result."""
    account_form = _ACTS.get(visit.subject)
    if account_form is None:
        raise CallerFault(
            "not_found", "There is no such form. Open your account's page again and send the form from there."
        )
    name = account_form.operation.name
    if account_form.parse is not None:
        visit.form = account_form.parse(visit.form)
    try:
        await _check_fingerprint(account_form, visit)
        done = await visit.ask(account_form.operation, _read_params(account_form, visit))
    except RoundtripError as fault:
        if fault.code in _WITHOUT_ROOM:
            raise
        if account_form.piece is not None and visit.is_piece():
            return visit.show(account_form.piece, done=None, fault=fault, tell_alert=tell_alert)
        # The error is shown beside the form, which keeps the visitor's input.
        room = _ROOMS[account_form.room]
        return await _render_room(visit, room, act=name, fault=fault, status=fault.status)
    if account_form.piece is not None and visit.is_piece():
        return visit.show(account_form.piece, done=done, fault=None, tell_alert=tell_alert)
    return await _render_room(visit, _ROOMS[account_form.room], act=name, done=done)


async def _check_fingerprint(account_form: AccountForm, visit: Visit) -> None:
    """Raises CallerFault (bad_input): the state that the visitor saw beside the form has changed since."""
    if account_form.fingerprint and visit.form.get("seen") != await account_form.fingerprint(visit):
        raise CallerFault(
            "bad_input",
            "Nothing was changed: you sent this form before, or your channels changed since you opened "
            "the page. Check the list, and send the form again if you still want it.",
        )


def _read_params(account_form: AccountForm, visit: Visit) -> dict[str, object]:
    """What the visitor wrote; and the session, for operations that take it: it never comes from a form."""
    params: dict[str, object] = {}
    for name in account_form.fields:
        text = visit.form.get(name, "").strip()
        if text:
            params[name] = _parse_number(text) if name in account_form.numbers else text
    if "session" in account_form.operation.params.__struct_fields__:
        params["session"] = visit.session
    return params


def _parse_number(text: str) -> int | float | str:
    """A plain decimal as a number; other text unchanged, which the operation then refuses."""
    if not _PLAIN.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


_PLAIN = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


async def _render_room(
    visit: Visit,
    room: Room,
    act: str | None = None,
    done: msgspec.Struct | None = None,
    fault: RoundtripError | None = None,
    status: int = 200,
) -> Response:
    try:
        values = await room.read(visit)
    except RoundtripError as error:
        if error.code in (*_WITHOUT_ROOM, "rate_limited"):
            raise
        return visit.show("account/away.html", error.status, room=room, rooms=ROOMS, fault=error, done=done)
    return visit.show(
        room.template,
        status,
        room=room,
        rooms=ROOMS,
        act=act,
        done=done,
        fault=fault,
        form=visit.form,
        tell_alert=tell_alert,
        **values,
    )
