"""Finds a contract's state-changing functions in its bytecode, the most hostile first."""

import re
from dataclasses import dataclass
from functools import lru_cache

from roundtrip.venues.erc20 import TRANSFER, TRANSFER_FROM

from . import selectors
from .known_setters import HOLDERS, KNOWN, UPGRADES, Manner
from .state_changing import find_calling, find_changing

_MAX_NAME = 60
_PLAIN = re.compile(r"(address|bool|bytes|string|u?int\d{0,3}|bytes\d{1,2})(\[\])?")
_NUMBER = re.compile(r"(u?int|bytes)(\d{1,3})")


@dataclass(frozen=True, slots=True)
class Setter:
    """A function. ``selector``: ``0x`` hex. ``types``: of its arguments. ``name``: from the table of known
    functions, else the selector with plain types. ``first``: how it is called first."""

    selector: str
    types: tuple[str, ...]
    name: str
    first: Manner

    def upgrades(self) -> bool:
        """Whether it replaces the contract's code."""
        return self.selector in UPGRADES

    def manners(self) -> tuple[Manner, ...]:
        """Every way to call it, the most hostile first."""
        parts = {part.removesuffix("[]") for part in self.types}
        numbers = [part for part in self.types if is_number(part)]
        manners: tuple[Manner, ...] = ("bare",)
        if self.upgrades():
            manners = ("code",)
        elif "bool" in parts:
            manners = ("on", "off") if "address" in parts else ("off", "on")
        elif "address" in parts:
            manners = ("each", "code", "zero") if numbers else ("each", "code")
        elif numbers:
            manners = ("up", "down", *(("last",) if len(numbers) > 1 else ()), "zero")
        return (self.first, *(m for m in manners if m != self.first)) if self.first in manners else manners


@dataclass(frozen=True, slots=True)
class OwnerSetters:
    """Functions, the most hostile first. ``unread``: how many more have unknown arguments. ``calls_out``:
    transfers may call other contracts, or are in no code that was read."""

    setters: tuple[Setter, ...]
    unread: int = 0
    calls_out: bool = False


def is_number(part: str) -> bool:
    """Whether a type is a number or fixed bytes of one word, or an array of them."""
    return _NUMBER.fullmatch(part.removesuffix("[]")) is not None


def bits(part: str) -> int:
    """The number of bits of a number's type."""
    match = _NUMBER.fullmatch(part.removesuffix("[]"))
    assert match is not None
    return int(match[2]) * (8 if match[1] == "bytes" else 1)


def find(*codes: bytes) -> OwnerSetters:
    """The owner's functions in these codes, a proxy's and its implementation's. Blocks while it reads. Raises
    ``selectors.UnreadableCode``."""
    setters: dict[str, Setter] = {}
    unread: set[str] = set()
    transfers: list[bool] = []
    for code in codes:
        code_setters = _read_code(code)
        transfers += [] if code_setters.calls_out is None else [code_setters.calls_out]
        for setter in code_setters.setters:
            setters.setdefault(setter.selector, setter)
        unread |= code_setters.unread
    ordered = sorted(setters.values(), key=_hostility)
    return OwnerSetters(tuple(ordered), len(unread - setters.keys()), any(transfers) or not transfers)


def list_changing(code: bytes) -> tuple[Setter, ...]:
    """Every function that may change state and has plain arguments, in no order of hostility; its name is the
    selector with its types. Blocks while it reads. Raises ``selectors.UnreadableCode``."""
    try:
        functions = _list_functions(code)
    except selectors.ArgumentsUnread as partial:
        functions = partial.functions
    changing = find_changing(code, [function.offset for function in functions])
    setters = []
    for function in functions:
        types = tuple(function.arguments.split(",")) if function.arguments else ()
        if function.offset in changing and function.arguments is not None and all(map(_plain, types)):
            known = KNOWN.get(function.selector)
            name = known.signature if known else f"{function.selector}({','.join(types)})"
            setters.append(Setter(function.selector, types, name, "bare"))
    return tuple(setters)


@lru_cache(maxsize=128)
def _list_functions(code: bytes) -> tuple[selectors.Function, ...]:
    return selectors.read(code) if code else ()


@dataclass(frozen=True, slots=True)
class _CodeSetters:
    """``calls_out``: of its transfers; None: it has none."""

    setters: tuple[Setter, ...]
    unread: frozenset[str]
    calls_out: bool | None


def _read_code(code: bytes) -> _CodeSetters:
    """The functions of one code. A partial reading, perhaps because the machine was busy, is not cached."""
    try:
        return _read_whole(code)
    except selectors.ArgumentsUnread as partial:
        return _select_setters(code, partial.functions)


@lru_cache(maxsize=128)
def _read_whole(code: bytes) -> _CodeSetters:
    """The functions of one code, cached: tokens often share code, and reading it starts a process."""
    return _select_setters(code, selectors.read(code) if code else ())


def _select_setters(code: bytes, functions: tuple[selectors.Function, ...]) -> _CodeSetters:
    changing = find_changing(code, [function.offset for function in functions])
    setters = [
        _setter(function.selector, function.arguments)
        for function in functions
        if function.offset in changing
    ]
    # A proxy may compare the selector of its upgrade function outside of the dispatcher.
    setters += [
        _setter(selector, None)
        for selector in sorted(UPGRADES)
        if b"\x63" + bytes.fromhex(selector[2:]) in code
    ]
    moving = [function.offset for function in functions if function.selector in (TRANSFER, TRANSFER_FROM)]
    return _CodeSetters(
        tuple(setter for setter in setters if isinstance(setter, Setter)),
        frozenset(setter for setter in setters if isinstance(setter, str) and setter not in HOLDERS),
        bool(find_calling(code, moving)) if moving else None,
    )


def _setter(selector: str, arguments: str | None) -> Setter | str:
    """The function; only its selector where it is not the owner's, or its arguments are unknown or not
    plain."""
    if selector in HOLDERS:
        return selector
    known = KNOWN.get(selector)
    if known is not None:
        return Setter(selector, known.types(), known.signature, known.first)
    if arguments is None:
        return selector
    types = tuple(arguments.split(",")) if arguments else ()
    if not all(map(_plain, types)):
        return selector
    name = f"{selector}({','.join(types)})"
    return Setter(selector, types, name if len(name) <= _MAX_NAME else selector, "bare")


def _plain(part: str) -> bool:
    return _PLAIN.fullmatch(part) is not None and (not is_number(part) or 0 < bits(part) <= 256)


def _hostility(setter: Setter) -> tuple[int, int, str]:
    """The sort key: functions that stop sells, then unknown ones, then usually harmless ones."""
    known = KNOWN.get(setter.selector)
    if known is None:
        return 1, 0 if setter.types else 1, setter.selector
    return 0 if known.stopping else 2, known.place, setter.selector
