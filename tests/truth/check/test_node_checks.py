"""Which fields of two answers differ, and medians of costs."""

from roundtrip.chain.simulate.request import GAS_POOL_SPENT
from truth.geth_table import GethRow, sum_geth_rows
from truth.node_checks import CountedCheck, NodeCosts, differences, median_costs

OK = {"verdict": {"code": "ok", "level": "ok"}, "flags": [], "trade": {"roundTripLossBps": 60}}
COSTS = NodeCosts(7, 43, 600_000, 800_000, 40.0)


def test_every_field_that_differs_is_named_with_both_values() -> None:
    assert differences(OK, OK) == {}
    other = {**OK, "flags": ["tax"], "trade": {"roundTripLossBps": 61}}
    assert differences(OK, other) == {"flags": ([], ["tax"]), "trade.roundTripLossBps": (60, 61)}
    assert differences(OK, {**OK, "trade": None}) == {"trade": (OK["trade"], None)}
    assert differences({}, {"launchpad": 1}) == {"launchpad": (None, 1)}


def test_a_median_is_of_each_figure_alone() -> None:
    costs = [COSTS, NodeCosts(9, 40, 1, 2, 3.0), NodeCosts(8, 50, 700_000, 1, 41.0)]
    assert median_costs(costs) == NodeCosts(8, 43, 600_000, 2, 40.0)


def test_a_cell_that_geth_had_too_little_gas_for_contradicts_nothing() -> None:
    sold = {"pools": {"1": {"nearly": {"gas": 941_940, "why": None}, "half": {"why": None}}}}
    spent = {"pools": {"1": {"nearly": {"gas": None, "why": GAS_POOL_SPENT.why}, "half": {"why": None}}}}
    row = GethRow("burner", CountedCheck(OK | sold, COSTS), CountedCheck(OK | spent, COSTS))
    assert "less gas" in row.text()
    assert sum_geth_rows([row])[:2] == [
        "0 of 1 answers are equal (none differ)",
        "geth's gas was too little for a cell of burner",
    ]
    other = {"verdict": {"code": "unproven", "level": "unknown"}}
    contradicted = GethRow("burner", CountedCheck(OK | sold, COSTS), CountedCheck(OK | spent | other, COSTS))
    assert set(contradicted.contradicting()) == {"verdict.code", "verdict.level"}


def test_a_row_says_what_differs_and_the_sum_names_it() -> None:
    other = CountedCheck({**OK, "flags": ["tax"]}, COSTS)
    rows = [GethRow("plain", CountedCheck(OK, COSTS), CountedCheck(OK, COSTS))]
    rows += [GethRow("odd", CountedCheck(OK, COSTS), other)]
    assert "equal" in rows[0].text()
    assert rows[1].text().splitlines()[1:] == ["  flags: [] on anvil, ['tax'] on geth"]
    assert sum_geth_rows(rows)[0] == "1 of 2 answers are equal (odd differ)"
