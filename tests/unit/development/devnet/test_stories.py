"""The samples' table: what a reader is told, and what the contracts can hold."""

from pathlib import Path

import pytest

from roundtrip_development.devnet.hook_tokens import FLAGS, HOOKED, ODD_TIER
from roundtrip_development.devnet.launch_samples import LAUNCHES, LaunchStory
from roundtrip_development.devnet.launchpad_v1 import FIRST, FirstStory
from roundtrip_development.devnet.stories import STORIES, Story

CONTRACTS = Path(__file__).resolve().parents[4] / "contracts"
ALL = (*STORIES, *HOOKED)
TOLD: tuple[Story | LaunchStory | FirstStory, ...] = (*ALL, *LAUNCHES, *FIRST)
EACH = pytest.mark.parametrize("story", ALL, ids=lambda story: story.key)
EVERY_LINE = pytest.mark.parametrize("story", TOLD, ids=lambda story: story.key)


def test_keys_are_unique_words() -> None:
    keys = [story.key for story in TOLD]
    assert len(set(keys)) == len(keys)
    assert all(key.replace("_", "").isalnum() and key == key.lower() for key in keys)


def test_five_samples_are_offered_and_the_first_is_honest() -> None:
    samples = [story.key for story in STORIES if story.sample]
    assert len(samples) == 5
    assert samples[0] == "plain"


@EVERY_LINE
def test_a_storys_line_is_one_short_sentence(story: Story | LaunchStory | FirstStory) -> None:
    assert story.line[0].isupper()
    assert story.line.endswith(".")
    assert not any(end in story.line[:-1] for end in (". ", "! ", "? ", "\n"))
    assert len(story.line) < 100


def test_no_two_stories_are_told_with_the_same_line() -> None:
    lines = [story.line for story in TOLD]
    assert len(set(lines)) == len(lines)


@EACH
def test_a_story_has_its_source(story: Story) -> None:
    assert (CONTRACTS / story.source).is_file()


@EACH
def test_a_story_fits_what_its_contract_holds(story: Story) -> None:
    assert len(story.name.encode()) <= 64
    assert len(story.symbol.encode()) <= 32
    assert 0 <= story.decimals < 256
    assert len(story.extra_types) == len(story.extra_values)
    assert story.constructor in ("named", "words", "supply", "none")


@EACH
def test_a_storys_pools_share_one_supply(story: Story) -> None:
    assert sum(pool.supply_bps for pool in story.pools) <= 10_000
    assert len({(pool.version, pool.quote, pool.fee_pips) for pool in story.pools}) == len(story.pools)
    for pool in story.pools:
        assert pool.quote in {3: ("weth", "usdg"), 4: ("eth", "weth", "usdg")}[pool.version]
        assert pool.fee_pips in (100, 500, 3000, 10_000, ODD_TIER[0])
        assert (pool.quote_milli == 0) is (pool.supply_bps == 0)


@EACH
def test_only_v4_pools_have_hooks_and_every_hook_its_source(story: Story) -> None:
    for pool in story.pools:
        special = (pool.hook, pool.tick_spacing, pool.dynamic_fee)
        assert pool.version == 4 or special == ("", None, False)
        assert pool.version == 3 or not pool.one_sided
        assert not pool.hook or (CONTRACTS / f"zoo/hooks/{pool.hook}.vy").is_file()
        assert not pool.hook or pool.hook in FLAGS
        assert pool.hook or not pool.dynamic_fee


@pytest.mark.parametrize("story", LAUNCHES, ids=lambda story: story.key)
def test_a_launchs_phase_can_be_reached(story: LaunchStory) -> None:
    assert story.quote in ("eth", "usdg", "share")
    assert story.phase in ("curve", "swept", "pooled", "rescued")
    assert sum(story.buys_bps) < 10_000
    if story.phase in ("swept", "pooled"):
        assert story.left_raw == 0
