"""``make write NAME=screenshots``: every page, light and dark, small and large, into var/screenshots."""

import asyncio
import shutil
from pathlib import Path

from playwright.async_api import Browser

from e2e.browser import DESKTOP, PHONE, browsing, furnish, is_there, sign_in, visiting
from e2e.ground import BrowserGround, standing
from e2e.places import WHOLE, examples, is_whole
from roundtrip_development.devnet import world
from support.keys import Person

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "var" / "screenshots"


async def main() -> None:
    """Takes them all."""
    at = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(at, print)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    async with standing(at, built) as ground, browsing() as browser:
        for device, size in (("phone", PHONE), ("desktop", DESKTOP)):
            await _take(browser, ground, device, size)
    print(f"{len(list(FOLDER.iterdir()))} screenshots are in {FOLDER.relative_to(PROJECT)}")


async def _take(browser: Browser, ground: BrowserGround, device: str, size: tuple[int, int]) -> None:
    async with visiting(browser, ground.url, size) as member, visiting(browser, ground.url, size) as newcomer:
        await sign_in(member, Person())
        await furnish(member, ground.fair, ground.buyer, ground.strange["script"].token)
        session = await member.cookie()
        assert session is not None
        cookie = f"{session['name']}={session['value']}"
        for example in examples(ground):
            if example.pattern not in WHOLE or not await is_whole(ground.url, example, cookie):
                continue
            visitor = member if example.signed_in else newcomer
            await visitor.open(example.path)
            for scheme in ("light", "dark"):
                await visitor.page.emulate_media(color_scheme=scheme)
                file = FOLDER / f"{example.name}.{device}.{scheme}.png"
                await visitor.page.screenshot(path=file, full_page=True)


if __name__ == "__main__":
    is_there()
    asyncio.run(main())
