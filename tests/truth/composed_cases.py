"""The composed tokens that ``test_composed`` tries: drawn once and kept, so that each run tries the same.

``python -m truth.composed_cases`` draws others, and writes them; best called by ``make write NAME=cases``.
"""

from support.fixtures import PROJECT
from truth.cases import FIELDS, HOOKS, NOT_DRAWN, Case, drawn, parse

KEPT = PROJECT / "tests" / "truth" / "composed_cases.txt"
"""One case a line."""
CASES = 100
_DRAWN, _SEED, _MOST_DRAWS = 300, 4663, 5
TAXED = {"buy_tax_bps", "sell_tax_bps", "reflected_bps"}


def read_kept() -> list[Case]:
    """The kept cases."""
    return [parse(line) for line in KEPT.read_text().splitlines()]


def draw_cases() -> list[Case]:
    """The first ``CASES`` of the drawn ones, and of the others each that brings a trait that none has yet.
    More are drawn until every trait is there: what a seed draws depends on the library, and on the source."""
    cases, traits = list[Case](), set[object]()
    for number in range(_MOST_DRAWS):
        for case in drawn(_DRAWN, _SEED + number):
            if len(cases) < CASES or _traits(case) - traits:
                cases.append(case)
                traits |= _traits(case)
        if traits >= {*FIELDS, *(("taxed", hook) for hook in HOOKS)} - {*NOT_DRAWN}:
            break
    return cases


def _traits(case: Case) -> set[object]:
    """Its behaviours, its venues, the number of its pools, whether all are empty, and their hooks: beside a
    tax, too."""
    hooks = {pool.hook for pool in case.pools}
    beside_tax = hooks if TAXED & dict(case.on).keys() else set[str]()
    venues = {(pool.version, pool.quote) for pool in case.pools}
    is_empty = ("empty", all(pool.quote_milli == 0 for pool in case.pools))
    return {*dict(case.on), *venues, len(case.pools), *hooks, is_empty, *(("taxed", h) for h in beside_tax)}


if __name__ == "__main__":
    KEPT.write_text("".join(f"{case.text()}\n" for case in draw_cases()))
