"""``make write NAME=pictures``: the README's verdict card, light and dark, into docs/pictures."""

import asyncio
from pathlib import Path

from e2e.browser import browsing, is_there, visiting
from roundtrip_development.commands import tour
from roundtrip_development.devnet import world

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "docs" / "pictures"
TOKEN = "blacklist_after_buy"
"""The story that is shown: whoever buys it is put on a list of who cannot sell."""
SIZE = (780, 900)
PIXELS = 1.5
"""Of a picture, for one of the page: letters stay sharp, and a picture below 80 KB."""


async def main() -> None:
    """Takes both."""
    at = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(at, print)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tour.make_demo_folder(at) as var:
        async with (
            tour.start_demo(var) as running,
            browsing() as browser,
            visiting(browser, running.place.url, SIZE, device_scale_factor=PIXELS) as visitor,
        ):
            await visitor.open(f"/token/{built.tokens[TOKEN]}")
            card = visitor.page.locator("article.hero")
            for scheme in ("light", "dark"):
                await visitor.page.emulate_media(color_scheme=scheme)
                await card.screenshot(path=FOLDER / f"verdict.{scheme}.png", animations="disabled")
    for file in sorted(FOLDER.iterdir()):
        print(f"{file.relative_to(PROJECT)}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    is_there()
    asyncio.run(main())
