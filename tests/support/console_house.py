"""The pages as a browser gets them, without one: cookies are shown by hand."""

import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

import aiohttp

from roundtrip.config.settings import Settings
from roundtrip.console.support.page_request import COOKIE
from roundtrip.services.runtime.context import Context
from support.clocks import Clock
from support.keys import Person
from support.serving import service
from support.watching import SETTINGS

BROWSER = {"accept": "text/html", "accept-encoding": "gzip"}


@dataclass
class ConsoleHouse:
    """A service, its clock, and a browser without a jar: cookies are shown by hand."""

    ctx: Context
    clock: Clock
    url: str
    browser: aiohttp.ClientSession

    async def get(self, path: str, cookie: str | None = None, **headers: str) -> tuple[int, str, Any]:
        return await self._sent("GET", path, None, cookie, headers)

    async def post(
        self, path: str, form: dict[str, str], cookie: str | None = None, **headers: str
    ) -> tuple[int, str, Any]:
        return await self._sent("POST", path, form, cookie, headers)

    async def _sent(
        self, method: str, path: str, form: dict[str, str] | None, cookie: str | None, headers: dict[str, str]
    ) -> tuple[int, str, Any]:
        shown = {} if cookie is None else {"cookie": f"{COOKIE}={cookie}"}
        shown |= {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.browser.request(
            method, self.url + path, data=form, headers=BROWSER | shown, allow_redirects=False
        ) as response:
            return response.status, await response.text(), response.headers

    async def signed_in(self, person: Person) -> str:
        """The session's key, as the cookie carries it."""
        text = await self.text(person)
        status, _, headers = await self.post(
            "/sign-in", {"address": person.address, "signature": person.sign(text)}
        )
        assert (status, headers["location"]) == (303, "/account")
        return str(SimpleCookie(headers["set-cookie"])[COOKIE].value)

    async def text(self, person: Person) -> str:
        async with self.browser.post(
            f"{self.url}/sign-in/text", data={"address": person.address}, headers=BROWSER
        ) as response:
            assert response.status == 200
            return str((await response.json())["message"])

    async def csrf(self, cookie: str) -> str:
        _, page, _ = await self.get("/account/watch", cookie)
        found = re.search('name="csrf" value="([0-9a-f]{64})"', page)
        assert found is not None
        return found.group(1)


@contextlib.asynccontextmanager
async def house_of(ctx: Context, clock: Clock, settings: Settings = SETTINGS) -> AsyncIterator[ConsoleHouse]:
    jar = aiohttp.DummyCookieJar()
    async with service(ctx, settings) as url, aiohttp.ClientSession(cookie_jar=jar) as browser:
        yield ConsoleHouse(ctx, clock, url, browser)
