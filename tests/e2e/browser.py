"""A browser that tells on the pages: what they complain of, ask of others or leave unanswered is a fault."""

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Response,
    async_playwright,
    expect,
)

from roundtrip.console.support.page_request import COOKIE
from support.keys import Person

PHONE, SMALL_PHONE, DESKTOP = (390, 844), (360, 740), (1280, 900)
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
HOW_TO_GET = (
    "Chromium is missing: apt-get install chromium gets it, or CHROMIUM=/path/to/it says where it is."
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The program. Raises OSError where none is found."""
    answer = os.environ.get("CHROMIUM")
    found = shutil.which(answer) if answer else next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise OSError(HOW_TO_GET)
    return found


def is_there() -> None:
    """Ends the program in one sentence where there is no browser."""
    try:
        chromium()
    except OSError as error:
        sys.exit(str(error))


@contextlib.asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """The browser, until the block ends."""
    async with async_playwright() as playwright:
        # A container's user may be root, and its shared memory small.
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = await playwright.chromium.launch(executable_path=chromium(), args=flags)
        yield browser
        await browser.close()


@dataclass
class Visitor:
    """Somebody with a browser of his own. ``faults``: what the pages did wrong. ``expected``: parts of
    messages that a test brings about on purpose. ``came``: all that was answered."""

    url: str
    context: BrowserContext
    page: Page
    faults: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    came: list[Response] = field(default_factory=list)

    async def open(self, path: str) -> int:
        """Goes there and waits until its pieces are there; the status."""
        response = await self.page.goto(self.url + path)
        await self.settled()
        assert response is not None
        return response.status

    async def settled(self) -> None:
        """Until no piece is on its way."""
        await self.page.wait_for_load_state("load")
        await expect(self.page.locator(".htmx-request")).to_have_count(0, timeout=20_000)

    async def send(self, button: str) -> None:
        """Presses the first button whose name begins so, and waits for the page that comes of it."""
        named = re.compile(rf"^{re.escape(button)}\b")
        async with self.page.expect_navigation():
            await self.page.get_by_role("main").get_by_role("button", name=named).first.click()
        await self.settled()

    async def is_wide(self) -> bool:
        """Whether the page itself scrolls sideways."""
        return bool(
            await self.page.evaluate("() => document.scrollingElement.scrollWidth > window.innerWidth")
        )

    async def cookie(self) -> dict[str, Any] | None:
        """The session's."""
        found = [one for one in await self.context.cookies() if one.get("name") == COOKIE]
        return dict(found[0]) if found else None

    def watch(self) -> None:
        """From here on faults are written down."""
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("response", lambda response: self.came.append(response))
        self.context.on("request", self._asked)
        self.context.on("requestfailed", self._failed)

    async def _dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(part in message.text for part in self.expected):
            self.faults.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.url + "/", "data:")):
            self.faults.append(f"asks somebody else: {request.url}")

    def _failed(self, request: Request) -> None:
        # What is left behind by going elsewhere is no failure.
        if "ERR_ABORTED" not in (request.failure or ""):
            self.faults.append(f"failed: {request.url} {request.failure}")


@contextlib.asynccontextmanager
async def visiting(
    browser: Browser, url: str, size: tuple[int, int] = DESKTOP, **more: Any
) -> AsyncIterator[Visitor]:
    """A visitor whom nobody knows. At the end the pages did nothing wrong."""
    viewport = {"width": size[0], "height": size[1]}
    context = await browser.new_context(viewport=viewport, locale="en-GB", timezone_id="UTC", **more)  # type: ignore[arg-type]
    try:
        visitor = Visitor(url, context, await context.new_page())
        visitor.watch()
        yield visitor
        assert not visitor.faults, "\n".join(visitor.faults)
    finally:
        await context.close()


# --- wallets ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnnouncedWallet:
    """One that announces itself. ``person``: whose account it says it is. ``signs``: who signs in truth;
    None: he refuses."""

    name: str
    person: Person
    signs: Person | None


async def install(visitor: Visitor, *wallets: AnnouncedWallet) -> None:
    """Puts wallets into the browser, as extensions do it (EIP-6963, EIP-1193). They sign here."""

    async def sign(number: int, text_hex: str) -> str | None:
        signs = wallets[number].signs
        return None if signs is None else signs.sign(bytes.fromhex(text_hex.removeprefix("0x")).decode())

    await visitor.context.expose_function("e2eSign", sign)
    for number, wallet in enumerate(wallets):
        answer = {"number": number, "name": wallet.name, "address": wallet.person.shown}
        await visitor.context.add_init_script(_ANNOUNCE.replace("TOLD", json.dumps(answer)))


_ANNOUNCE = """(() => {
  const told = TOLD;
  const refused = () => Object.assign(new Error("User rejected the request."), { code: 4001 });
  const provider = {
    async request({ method, params }) {
      if (method === "eth_requestAccounts") return [told.address];
      if (method !== "personal_sign") throw Object.assign(new Error("Unsupported method"), { code: 4200 });
      const signature = await window.e2eSign(told.number, params[0]);
      if (signature === null) throw refused();
      return signature;
    },
  };
  const info = Object.freeze({
    uuid: `00000000-0000-4000-8000-00000000000${told.number}`, name: told.name,
    icon: "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E", rdns: "org.example.wallet",
  });
  const detail = Object.freeze({ info, provider });
  const announce = () =>
    window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
  window.addEventListener("eip6963:requestProvider", announce);
  announce();
})();"""


async def sign_in(visitor: Visitor, person: Person) -> None:
    """By a wallet of his; the page is his account."""
    await install(visitor, AnnouncedWallet("Test wallet", person, person))
    await visitor.open("/sign-in")
    await visitor.page.get_by_role("button", name="Sign in with Test wallet").click()
    await visitor.page.wait_for_url("**/account")
    await visitor.settled()


async def furnish(member: Visitor, watched: str, followed: str, practised: str) -> None:
    """Rooms with something in them: a rule about a token, a wallet, and a trade of another token."""
    page = member.page
    await member.open("/account/watch")
    await page.get_by_label("Alert me about").fill(f"any buying on {watched}")
    await member.send("Set the rule")
    await page.get_by_label("Wallet’s address").fill(followed)
    await page.get_by_label("Name (optional)").fill("Buyer")
    await member.send("Follow")
    await member.open("/account/practice")
    await page.get_by_label("Token’s address").fill(practised)
    await member.send("Buy with pretend eth")
