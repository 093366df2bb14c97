"""The tour walked as its command walks it, over a demo of its own: every tool has something to show, and
docs/tour.md tells of it."""

import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from roundtrip.api.operations.catalog import tools
from roundtrip.cli.tour import TourWalk, make_demo_folder, start_demo, walk_demo
from roundtrip.devnet.world import Built, DevnetFolders
from roundtrip.tour.page import curl_command, heading
from roundtrip.tour.redact import mask, shape, shapes_agree, shorten
from roundtrip.tour.steps import STEPS
from roundtrip.tour.walk import has_something

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tour.md"
TOOLS = [tool.name for tool in tools()]
# The demo starts, a crowd comes, and who won is counted twice a minute.
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
async def walked(places: DevnetFolders, built: Built) -> AsyncIterator[TourWalk]:
    with make_demo_folder(places) as var:
        async with start_demo(var) as running:
            found = await walk_demo(running, built, lambda tool: None)
        yield found


def sections() -> dict[str, str]:
    """What the page has of each tool."""
    parts = re.split(r"(?m)^(?=## )", PAGE.read_text())[1:]
    names = [re.match(r"## .*: `(\w+)`\n", part) for part in parts]
    assert all(names)
    return {name[1]: part for name, part in zip(names, parts, strict=True) if name}


def test_every_tool_has_one_step_and_one_section() -> None:
    counted = Counter(step.tool for step in STEPS)
    assert set(counted.values()) == {1}
    assert set(TOOLS) <= counted.keys()
    assert list(sections()) == [step.tool for step in STEPS if step.tool in TOOLS]
    assert STEPS[0].tool == "check_token"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_answers_and_has_something_to_show(walked: TourWalk, tool: str) -> None:
    (result,) = [one for one in walked.told if one.step.tool == tool]
    assert has_something(result.step, result.answer)
    assert result.text


@pytest.mark.parametrize("tool", TOOLS)
def test_the_page_has_the_call_and_an_answer_of_its_shape(walked: TourWalk, tool: str) -> None:
    (result,) = [one for one in walked.told if one.step.tool == tool]
    section = sections()[tool]
    assert section.startswith(f"{heading(result)}\n\n{result.step.why}\n")
    assert f"```bash\n{curl_command(result, walked.known)}\n```" in section
    (written,) = re.findall(r"(?ms)^```json\n(.*?)^```$", section)
    answer = msgspec.json.decode(written)
    text = re.findall(r"(?ms)^```text\n(.*?)^```$", section)
    assert text
    # What is said above stands in no answer again.
    fresh = shorten(mask(result.answer, walked.known, result.step.varies))
    assert shapes_agree(_without_said(shape(answer)), _without_said(shape(fresh)))


def _without_said(found: object) -> object:
    if isinstance(found, dict):
        return {name: _without_said(one) for name, one in found.items() if name != "text"}
    return [_without_said(one) for one in found] if isinstance(found, list) else found


def test_no_secret_is_on_the_page(walked: TourWalk) -> None:
    for page in (walked.page(), PAGE.read_text()):
        assert not re.search(r"rt_[0-9A-Za-z]{20,}|whsec_[0-9A-Za-z+/=]+", page)
        assert walked.key not in page
    assert len(PAGE.read_text().splitlines()) < 1500
