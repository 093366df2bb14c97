"""A hundred composed tokens and more, of every kind: the verdict is what real wallets meet.

``make long NAME=truth`` tries thousands of others.
"""

from collections import Counter

import pytest

from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from truth.cases import FIELDS, HOOKS, NOT_DRAWN, parse
from truth.composed_cases import CASES, TAXED, read_kept
from truth.reality import SOON_S
from truth.run import table
from truth.trial import Trial, tried

PARTS = 25


_SEEN: list[Trial] = []


@pytest.mark.parametrize("part", range(PARTS))
async def test_the_verdict_is_what_wallets_meet(rpc: SyncRpc, built: Built, part: int) -> None:
    trials = [await tried(rpc, built, case) for case in read_kept()[part::PARTS]]
    _SEEN.extend(trials)
    wrong = [
        t for t in trials if not t.agrees() or t.false_ok() or t.false_trap() or t.wrong_words() or t.unmet
    ]
    assert not wrong, "\n\n".join(trial.story() for trial in wrong)
    otherwise = [trial for trial in trials if trial.cells]
    assert not otherwise, "\n\n".join(trial.story() for trial in otherwise)


def test_the_cases_are_of_every_kind() -> None:
    """Otherwise so many verdicts that agree would prove little."""
    cases = read_kept()
    assert CASES <= len(cases) < CASES + 30
    behaviours = Counter(name for case in cases for name, _ in case.on)
    assert set(behaviours) == {*FIELDS} - {*NOT_DRAWN}
    assert {(p.version, p.quote) for case in cases for p in case.pools} == {
        (3, "weth"), (3, "usdg"), (4, "eth"), (4, "weth"), (4, "usdg"),
    }  # fmt: skip
    assert {len(case.pools) for case in cases} == {1, 2, 3, 4}
    assert {p.hook for case in cases for p in case.pools} == {"", *HOOKS}
    assert {p.hook for case in cases if TAXED & dict(case.on).keys() for p in case.pools} == {"", *HOOKS}
    assert sum(p.tick_spacing not in (None, 60) for case in cases for p in case.pools) > 20
    assert any({bool(p.hook) for p in case.pools} == {True, False} for case in cases)
    assert all(parse(case.text()) == case for case in cases)


def test_the_cases_come_to_every_verdict() -> None:
    if len(_SEEN) < len(read_kept()):
        pytest.skip("only where all of them were tried")
    codes = {trial.said[0] for trial in _SEEN}
    assert codes == {
        "ok", "toll_pool", "thin_pool", "high_fees", "heavy_fees", "cannot_sell", "cannot_buy", "empty_pool",
    }, table(_SEEN)  # fmt: skip
    assert {trial.said[1] for trial in _SEEN if trial.said[0] == "ok"} == {"ok", "warn"}


def test_the_fields_are_those_of_the_contract() -> None:
    source = (PROJECT / "contracts" / "truth" / "composed.vy").read_text()
    struct = source[source.index("struct Behaviours:") : source.index("# 10**27 is one.")]
    names = [line.split(":")[0].strip() for line in struct.splitlines()[1:] if ": uint256" in line]
    assert tuple(names) == FIELDS


_STUCK = '{"on":{"stuck_bps":4000},"pools":[[4,"eth",3000,100000,2400,60,"tenth_by_delta"]]}'
_BURNS_GAS = (
    '{"on":{"gas_burned":900000,"sell_tax_bps":2000},"pools":[[4,"eth",3000,100000,2400,60,"harmless"]]}'
)
_LARGEST_SALE = (
    '{"on":{"max_sell_raw":150000000000000000000000,"sell_tax_bps":2000},'
    '"pools":[[4,"eth",3000,100000,2400,60,"harmless"]]}'
)
_IN_ANOTHER_POOL = (
    '{"on":{"max_sell_raw":4795204795204795063336},'
    '"pools":[[4,"eth",3000,100000,2400,60,"revert_on_sell"],[4,"eth",3000,100000,2400,60,""]]}'
)
_TOLL_IN_A_THIN_POOL = (
    '{"on":{},"pools":[[3,"usdg",10000,1050000,500,null,""],[4,"weth",300000,92,2400,913,""]]}'
)
_COOLDOWN = '{"on":{"cooldown_s":13},"pools":[[4,"eth",191,2000,500,248,""]]}'
_BOMB = '{"on":{"bomb_s":15,"exact_approval":1},"pools":[[4,"eth",15479,1187,2400,180,""]]}'
_SHRINKS = (
    '{"on":{"down_bps":2000,"min_sell_raw":205640423031727401981706},'
    '"pools":[[4,"eth",40000,1602,500,60,"harmless"]]}'
)
_SHRINKS_IN_TWO = (
    '{"on":{"down_bps":2000},"pools":[[4,"eth",8388608,400,2400,60,"fee_jump"],'
    '[4,"eth",53,20000,2400,32767,"harmless"]]}'
)
_BURNS_MUCH_GAS = (
    '{"on":{"exact_approval":1,"gas_burned":12000000},"pools":[[3,"weth",3000,100000,2400,null,""]]}'
)
_BURNS_MUCH_GAS_IN_PIECES = (
    '{"on":{"gas_burned":12000000},"pools":[[4,"eth",8388608,700,500,60,"fee_jump"],'
    '[4,"weth",500,1000000,2400,null,""]]}'
)
_GROWS_PAST_THE_MIN_SALE = (
    '{"on":{"min_sell_raw":1194029850746268692774912,"up_bps":100},'
    '"pools":[[4,"usdg",3000,70000000,2400,null,""]]}'
)
_JUST_ABOVE_THE_LARGEST_SALE = (
    '{"on":{"max_sell_raw":29697030296970306288353},'
    '"pools":[[4,"eth",3000,1000000,3000,60,"allow_list"],[4,"eth",8022,1000000,3000,60,""]]}'
)
_THE_LARGEST_SALE_IS_WHAT_IS_LEFT = (
    '{"on":{"buy_tax_bps":5100,"max_sell_raw":14398560143985603048898},'
    '"pools":[[4,"eth",500,1000000,3000,60,"allow_list"],[4,"weth",500,1000000,3000,60,""]]}'
)
_LARGEST_SALE_ABOVE_ONE_ETH = (
    '{"on":{"max_sell_raw":2997002997002996830699520,"reflected_bps":410},'
    '"pools":[[4,"eth",0,100000,3000,60,"harmless"]]}'
)
_REFLECTS_TO_ALL = (
    '{"on":{"bound":1,"exact_approval":1,"reflected_bps":100,"silent":1},'
    '"pools":[[4,"weth",12721,1000,500,644,""]]}'
)
_DEEP = '"pools":[[4,"eth",3000,100000,2400,60,""]]}'
_SECOND = '"pools":[[3,"weth",500,100000,2400,null,""],[3,"usdg",10000,35000000,240,null,""]]}'
_TOLL_BRINGS_MOST = (
    '"pools":[[3,"weth",3000,100000,1000,null,""],[4,"eth",3000,100000,1200,60,"tenth_by_delta"]]}'
)
_DEEP_V4 = '"pools":[[3,"weth",3000,1000,24,null,""],[4,"eth",500,100000,2400,null,""]]}'
_SHUT_NOW = f'{{"on":{{"shut_hours":14}},{_DEEP}'
_SHUT_A_LITTLE = f'{{"on":{{"shut_hours":8}},{_DEEP}'
_LITTLE_GAS = f'{{"on":{{"most_gas_left":10000000}},{_DEEP}'
_ITS_BUYER_ONLY = f'{{"on":{{"buyers_only":1}},{_DEEP}'
_A_THIRTIETH_A_SALE = f'{{"on":{{"max_sell_raw":7900000000000000000000}},{_DEEP}'
_A_SIXTIETH_A_SALE = f'{{"on":{{"max_sell_raw":3900000000000000000000}},{_DEEP}'
_TOLL_SELLS_WHOLE = (
    '{"on":{"max_sell_raw":80000000000000000000000},'
    '"pools":[[4,"eth",3000,100000,2400,60,""],[4,"eth",990000,100,2,61,""]]}'
)
_TOLL_SELLS_NEARLY_ALL = (
    '{"on":{"max_sell_raw":4054054054054054560635289,"other_pool_tax_bps":9874},'
    '"pools":[[4,"usdg",990000,38500,500,61,""],[4,"weth",9129,106,500,423,""]]}'
)
_REFLECTS_LITTLE = '{"on":{"reflected_bps":1},"pools":[[4,"eth",40757,1000,2400,1,""]]}'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_STUCK, id="what stays in the wallet is no tax"),
        pytest.param(_BURNS_GAS, id="a move may take more gas than an approval"),
        pytest.param(_LARGEST_SALE, id="where all of it may not move a small part does"),
        pytest.param(_IN_ANOTHER_POOL, id="the sentence speaks of where most was sold"),
        pytest.param(_TOLL_IN_A_THIN_POOL, id="after other trades a buy may bring too little to sell"),
        pytest.param(_COOLDOWN, id="a crowd's wallet waits from its own last buy on"),
        pytest.param(_BOMB, id="after others have sold the main wallet is not late"),
        pytest.param(_SHRINKS, id="what is left after a day is not all that sells at once"),
        pytest.param(_SHRINKS_IN_TWO, id="a trip after another sells what is left of it"),
        pytest.param(_BURNS_MUCH_GAS, id="a crowd has the gas that a sell takes"),
        pytest.param(_BURNS_MUCH_GAS_IN_PIECES, id="one whose sale takes too much gas leaves the others"),
        pytest.param(_GROWS_PAST_THE_MIN_SALE, id="another wallet sells what the balance had grown to"),
        pytest.param(_JUST_ABOVE_THE_LARGEST_SALE, id="another wallet sells the part that the main one sold"),
        pytest.param(_THE_LARGEST_SALE_IS_WHAT_IS_LEFT, id="that part to the unit"),
        pytest.param(_LARGEST_SALE_ABOVE_ONE_ETH, id="the largest wallet sells all it has"),
        pytest.param(_REFLECTS_TO_ALL, id="a balance that drifts hides no refusal"),
        pytest.param(_REFLECTS_LITTLE, id="a rounding is no difference"),
        pytest.param(_SHUT_NOW, id="a market may be shut for most of the day"),
        pytest.param(_SHUT_A_LITTLE, id="one sale at the right hour sells more than ten sales"),
        pytest.param(_LITTLE_GAS, id="a sale with much gas may be refused"),
        pytest.param(_ITS_BUYER_ONLY, id="who got it from the buyer may not sell"),
        pytest.param(_A_THIRTIETH_A_SALE, id="fifty sales go where ten do not"),
        pytest.param(_A_SIXTIETH_A_SALE, id="and not where fifty do not"),
        pytest.param(_TOLL_SELLS_WHOLE, id="a stranger's toll sells whole what little it brings"),
        pytest.param(_TOLL_SELLS_NEARLY_ALL, id="or nearly all"),
        pytest.param(
            '{"on":{"move_tax_bps":1919},"pools":[[4,"eth",500,1000000,3000,60,""],[3,"weth",500,1000000,3000,null,'
            '""]]}',
            id="what a receiver meets counts in each of two equal pools",
        ),
        pytest.param(
            '{"on":{"buy_tax_bps":1000,"move_tax_bps":5100},"pools":[[4,"eth",8388608,1000000,3000,60,"fee_jump"],'
            '[4,"eth",5172,1000000,3000,60,""]]}',
            id="and where another pool brings more",
        ),
        pytest.param(
            '{"on":{"gas_burned":12000000,"max_sell_raw":246268656716417906811863},"pools":[[3,"usdg",100,70000000,'
            '500,null,""],[3,"weth",500,20000,2400,null,""]]}',
            id="a sale with too little gas shows no trap",
        ),
    ],
)
async def test_what_was_judged_wrongly_once_is_judged_rightly(rpc: SyncRpc, built: Built, text: str) -> None:
    trial = await tried(rpc, built, parse(text))
    assert trial.agrees(), trial.story()
    assert not trial.overlooked(), trial.story()
    assert not any((trial.unmet, trial.false_ok(), trial.cells)), trial.story()


_WARN, _TRAP = ("ok", "warn"), ("cannot_sell", "danger")


@pytest.mark.parametrize(
    ("on", "pools", "said"),
    [
        pytest.param('"sale_gap_s":9700', _DEEP, _WARN, id="ten sales may be too many in a day"),
        pytest.param('"buy_gap_blocks":8', _DEEP, _WARN, id="a wait may be in blocks"),
        pytest.param('"sales_a_block":2', _DEEP, _WARN, id="a block may take some sales only"),
        pytest.param('"sales_a_block":50', _DEEP, ("ok", "ok"), id="and takes more than a crowd makes"),
        pytest.param('"code_refused":1', _DEEP, _WARN, id="a wallet with code may not sell"),
        pytest.param('"code_refused":2', _DEEP, _TRAP, id="nor one without"),
        pytest.param('"code_tax_bps":3000', _DEEP, _WARN, id="a tax may be on wallets with code"),
        pytest.param('"no_code_tax_bps":3000', _DEEP, ("high_fees", "warn"), id="or without"),
        pytest.param('"shut_pool":1', _SECOND, _WARN, id="the deepest pool may take no sales"),
        pytest.param('"shut_pool":2', _SECOND, ("ok", "ok"), id="a dearer pool counts for no buyer"),
        pytest.param('"other_pool_tax_bps":3000', _SECOND, ("ok", "ok"), id="nor what is taxed there"),
        pytest.param('"opens_blocks":8', _DEEP, _WARN, id="it may open some blocks after its launch"),
        pytest.param('"closes_blocks":8', _DEEP, _TRAP, id="or close"),
        pytest.param(
            '"cooldown_s":86400,"sales_a_block":1', _DEEP, _WARN, id="a day may count from the last buy"
        ),
    ],
)
async def test_each_limit_of_pace_code_pool_and_blocks(
    rpc: SyncRpc, built: Built, on: str, pools: str, said: tuple[str, str]
) -> None:
    trial = await tried(rpc, built, parse(f'{{"on":{{{on}}},{pools}'))
    assert trial.agrees(), trial.story()
    assert trial.said == said, trial.story()
    assert not any((trial.unmet, trial.cells)), trial.story()


async def test_a_tax_in_the_pool_that_brings_most_is_warned_of(rpc: SyncRpc, built: Built) -> None:
    trial = await tried(rpc, built, parse(f'{{"on":{{"other_pool_tax_bps":9000}},{_DEEP_V4}'))
    small, deep = trial.met
    assert deep.brought_raw > small.brought_raw
    sale = deep.sells[SOON_S]
    assert sale is not None
    assert sale.loss_bps() > 9000
    assert (trial.said, trial.best) == (("ok", "warn"), small.pool), trial.story()
    assert "; the token takes 89." in trial.text, trial.story()
    assert trial.agrees(), trial.story()


@pytest.mark.parametrize(("on", "said"), [('"tied":1', ("toll_pool", "warn")), ("", ("ok", "ok"))])
async def test_a_toll_where_a_buy_brings_most_counts_if_the_token_binds_its_buyers(
    rpc: SyncRpc, built: Built, on: str, said: tuple[str, str]
) -> None:
    """A toll alone is a stranger's: who bought there sells in the fair pool."""
    trial = await tried(rpc, built, parse(f'{{"on":{{{on}}},{_TOLL_BRINGS_MOST}'))
    fair, toll = trial.met
    assert toll.brought_raw > fair.brought_raw
    best = toll if on else fair
    assert (trial.said, trial.best) == (said, best.pool), trial.story()
    assert trial.agrees(), trial.story()


@pytest.mark.parametrize("on", ['"sale_gap_s":1700', '"sale_gap_blocks":2', '"buy_gap_blocks":2'])
async def test_a_short_gap_is_warned_of_though_single_wallets_sell(
    rpc: SyncRpc, built: Built, on: str
) -> None:
    """Why no case is drawn with it: the crowd's sales are nearer together than those of a wallet alone."""
    trial = await tried(rpc, built, parse(f'{{"on":{{{on}}},{_DEEP}'))
    assert trial.said == ("ok", "warn"), trial.story()
    assert "1 of 27 test wallets could not sell" in trial.text, trial.story()
    assert not trial.cells, trial.story()


@pytest.mark.parametrize(
    ("again_tax_bps", "said"), [(200, ("ok", "ok")), (2000, ("ok", "warn")), (6000, ("high_fees", "warn"))]
)
async def test_a_tax_on_a_second_buy_is_a_tax_and_no_trap(
    rpc: SyncRpc, built: Built, again_tax_bps: int, said: tuple[str, str]
) -> None:
    """Less arrives than the crowd plans with: its wallets sell what they have."""
    case = parse(f'{{"on":{{"again_tax_bps":{again_tax_bps}}},{_DEEP}')
    trial = await tried(rpc, built, case)
    assert trial.said == said, trial.story()
    assert not trial.cells, trial.story()
