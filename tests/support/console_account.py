"""Somebody who is signed in to the pages, without a browser: what a page says, and what a form does."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie

import aiohttp

from roundtrip.console.support.page_request import COOKIE
from roundtrip.services.runtime.context import Context
from support.keys import Person

_BROWSER = {"accept": "text/html"}


@dataclass(frozen=True, slots=True)
class Account:
    """``session``: as the cookie carries it. ``csrf``: of its forms."""

    ctx: Context
    url: str
    person: Person
    session: str
    csrf: str
    account_id: int

    async def page(self, path: str) -> tuple[int, str]:
        return await _sent("GET", self.url + path, None, self.session)

    async def get(self, path: str) -> str:
        """A page that answers."""
        status, page = await self.page(path)
        assert status == 200, page
        return page

    async def do(self, tool: str, **form: str) -> tuple[int, str]:
        """Sends a form."""
        return await self._do(tool, form, {})

    async def piece(self, tool: str, **form: str) -> tuple[int, str]:
        """Sends a form as the page's script does."""
        return await self._do(tool, form, {"hx-request": "true"})

    async def _do(self, tool: str, form: Mapping[str, str], more: Mapping[str, str]) -> tuple[int, str]:
        filled = {"csrf": self.csrf, **form}
        return await _sent("POST", f"{self.url}/account/do/{tool}", filled, self.session, more)


async def signed_in(ctx: Context, url: str) -> Account:
    """A new account, by a signature."""
    person = Person()
    async with aiohttp.ClientSession(headers=_BROWSER) as browser:
        async with browser.post(f"{url}/sign-in/text", data={"address": person.address}) as response:
            text = (await response.json())["message"]
        given = {"address": person.address, "signature": person.sign(text)}
        async with browser.post(f"{url}/sign-in", data=given, allow_redirects=False) as response:
            session = str(SimpleCookie(response.headers["set-cookie"])[COOKIE].value)
    _, page = await _sent("GET", f"{url}/account/watch", None, session)
    csrf = re.search('name="csrf" value="([0-9a-f]{64})"', page)
    assert csrf is not None
    wallet = bytes.fromhex(person.address[2:])
    account_id: int = await ctx.pool.fetchval("SELECT id FROM accounts.account WHERE wallet = $1", wallet)
    return Account(ctx, url, person, session, csrf.group(1), account_id)


async def _sent(
    method: str, url: str, form: dict[str, str] | None, session: str, more: Mapping[str, str] | None = None
) -> tuple[int, str]:
    headers = {**_BROWSER, "cookie": f"{COOKIE}={session}", **(more or {})}
    async with (
        aiohttp.ClientSession(headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as browser,
        browser.request(method, url, data=form, allow_redirects=False) as response,
    ):
        return response.status, await response.text()
