"""A contract's functions that change something, read from its bytecode, the most hostile first."""

import re
from dataclasses import dataclass
from functools import lru_cache

from . import selectors
from .known_setters import HOLDERS, KNOWN, UPGRADES, Manner
from .state_changing import changing

_MOST_NAME = 60
_PLAIN = re.compile(r"(address|bool|bytes|string|u?int\d{0,3}|bytes\d{1,2})(\[\])?")
_NUMBER = re.compile(r"(u?int|bytes)(\d{1,3})")


@dataclass(frozen=True, slots=True)
class Setter:
    """A function by its ``0x`` selector, with its arguments' types. ``name``: from this service's own table,
    else the selector. ``first``: how it is called first."""

    selector: str
    types: tuple[str, ...]
    name: str
    first: Manner

    def upgrades(self) -> bool:
        """True for what puts other code in the contract's place."""
        return self.selector in UPGRADES

    def manners(self) -> tuple[Manner, ...]:
        """Every way to call it, the most hostile first."""
        parts = {part.removesuffix("[]") for part in self.types}
        numbers = [part for part in self.types if is_number(part)]
        found: tuple[Manner, ...] = ("bare",)
        if self.upgrades():
            found = ("code",)
        elif "bool" in parts:
            found = ("on", "off") if "address" in parts else ("off", "on")
        elif "address" in parts:
            found = ("each", "code", "zero") if numbers else ("each", "code")
        elif numbers:
            found = ("up", "down", *(("last",) if len(numbers) > 1 else ()), "zero")
        return (self.first, *(m for m in found if m != self.first)) if self.first in found else found


@dataclass(frozen=True, slots=True)
class OwnerSetters:
    """Functions in the order of their hostility. ``unread``: so many more whose arguments are not known."""

    setters: tuple[Setter, ...]
    unread: int = 0


def is_number(part: str) -> bool:
    """True for a number, or so many bytes that stand in one word; an array of them too."""
    return _NUMBER.fullmatch(part.removesuffix("[]")) is not None


def bits(part: str) -> int:
    """How many bits a number's type has."""
    found = _NUMBER.fullmatch(part.removesuffix("[]"))
    assert found is not None
    return int(found[2]) * (8 if found[1] == "bytes" else 1)


def find(*codes: bytes) -> OwnerSetters:
    """What these codes, a proxy's and its implementation's, can be called with. Blocks while it reads; raises
    ``functions.Unreadable``."""
    setters: dict[str, Setter] = {}
    unread: set[str] = set()
    for code in codes:
        own = _of_code(code)
        for setter in own.setters:
            setters.setdefault(setter.selector, setter)
        unread |= own.unread
    ordered = sorted(setters.values(), key=_hostility)
    return OwnerSetters(tuple(ordered), len(unread - setters.keys()))


@dataclass(frozen=True, slots=True)
class _OwnSetters:
    setters: tuple[Setter, ...]
    unread: frozenset[str]


def _of_code(code: bytes) -> _OwnSetters:
    """Of one code. What was cut short, perhaps because the machine had much to do, is read again."""
    try:
        return _read_whole(code)
    except selectors.ArgumentsUnread as short:
        return _own_setters(code, short.told)


@lru_cache(maxsize=128)
def _read_whole(code: bytes) -> _OwnSetters:
    """Tokens often share their code, and reading it takes a process."""
    return _own_setters(code, selectors.read(code) if code else ())


def _own_setters(code: bytes, told: tuple[selectors.Function, ...]) -> _OwnSetters:
    writes = changing(code, [one.offset for one in told])
    found = [_setter(one.selector, one.arguments) for one in told if one.offset in writes]
    # A proxy may look at its upgrade's selector outside of what tells its functions apart.
    found += [_setter(one, None) for one in sorted(UPGRADES) if b"\x63" + bytes.fromhex(one[2:]) in code]
    setters = tuple(one for one in found if isinstance(one, Setter))
    return _OwnSetters(
        setters, frozenset(one for one in found if isinstance(one, str) and one not in HOLDERS)
    )


def _setter(selector: str, arguments: str | None) -> Setter | str:
    """The function; its selector where it is not the owner's, or cannot be called because its arguments are
    not known or not plain."""
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
    return Setter(selector, types, name if len(name) <= _MOST_NAME else selector, "bare")


def _plain(part: str) -> bool:
    return _PLAIN.fullmatch(part) is not None and (not is_number(part) or 0 < bits(part) <= 256)


def _hostility(setter: Setter) -> tuple[int, int, str]:
    """Names that stop sells, then names that nobody knows, then those that are harmless as a rule."""
    known = KNOWN.get(setter.selector)
    if known is None:
        return 1, 0 if setter.types else 1, setter.selector
    return 0 if known.stopping else 2, known.place, setter.selector
