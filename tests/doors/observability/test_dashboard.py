"""The dashboard, the rules for alerts and the table in the documentation name what is really told."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import aiohttp
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from roundtrip.api.dispatch import Door
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.chain.rpc.client import READ_METHODS, SORTS, Budget, Node
from roundtrip.config.settings import Settings
from roundtrip.devnet.node import free_port
from roundtrip.domain.base.errors import STATUS_BY_CODE
from roundtrip.domain.base.metrics import Measures
from roundtrip.observability import prometheus
from roundtrip.services.runtime.context import Context
from support.serving import service

DOCS = Path(__file__).resolve().parents[3] / "docs"
_SELECTED = re.compile(r"\b((?:roundtrip|process)_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_ENDS = ("made", "shared", "refused", "failed", "answered", "left", "done", "lost", "lent", "sent")
_VALUES: Mapping[str, set[str]] = {
    "door": set(get_args(Door)),
    "code": set(STATUS_BY_CODE),
    "name": {*(row.name for row in OPERATIONS), *SORTS},
    "method": set(READ_METHODS),
    "ended": set(_ENDS),
    "of": {
        "under_way",
        "allowed",
        "most",
        "open",
        "idle",
        "leads",
        "block",
        "calls",
        "credits",
        "spent",
        "day",
    },
}
"""What may stand in a label that is selected by."""


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "grafana" / "roundtrip.json").read_text())
    return found


@pytest.fixture(scope="module")
def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DOCS / "grafana" / "alerts.yml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels(dashboard: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in dashboard["panels"] if one["type"] != "row"]


def asked(dashboard: Mapping[str, Any]) -> Iterator[str]:
    """Every expression of the dashboard."""
    for panel in panels(dashboard):
        yield from (target["expr"] for target in panel["targets"])


def named(expressions: Iterator[str] | list[str]) -> dict[str, set[tuple[str, str]]]:
    """The metrics in them, and by which labels each is selected."""
    found: dict[str, set[tuple[str, str]]] = {}
    for expression in expressions:
        for name, selected in _SELECTED.findall(expression):
            matchers = {(label, value) for label, _, value in _MATCHER.findall(selected)}
            found.setdefault(name, set()).update(matchers)
    return found


async def scrape_metrics(ctx: Context) -> dict[str, set[str]]:
    """Every metric of a page of a service, by its names as they are asked for, with its labels."""
    measures = Measures()
    assert isinstance(ctx.node, Node)
    node = replace(ctx.node, measures=measures, budget=Budget(calls_per_day=10**6))
    ctx = replace(ctx, measures=measures, node=node)
    settings = Settings(metrics_port=free_port(), anon_per_minute=1000)
    async with (
        service(ctx, settings) as url,
        prometheus.serve_metrics(settings, measures, prometheus.service_metrics(ctx)),
        aiohttp.ClientSession() as session,
    ):
        for path in ("/v1/health", "/v1/check/0x12"):
            await (await session.get(url + path)).read()
        page = f"http://127.0.0.1:{settings.metrics_port}/metrics"
        async with session.get(page) as response:
            text = await response.text()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        plain = family.name
        names = {"counter": (f"{plain}_total",), "histogram": (f"{plain}_bucket", f"{plain}_count")}
        for name in names.get(family.type, (plain,)):
            found[name] = set().union(*(one.labels for one in family.samples))
    for what in prometheus.DURATIONS:
        found[f"roundtrip_{what}_seconds_bucket"] |= {"name", "ended", "le"}
        found[f"roundtrip_{what}_seconds_count"] |= {"name", "ended"}
    for what, (labels, _) in prometheus.COUNTERS.items():
        found[f"roundtrip_{what}_total"] |= set(labels)
    for what in prometheus.GAUGES:
        found[f"roundtrip_{what}"] |= {"of"}
    return found


def family(name: str) -> str:
    """Of a histogram's parts the whole."""
    return re.sub("_seconds_(bucket|count|sum)$", "_seconds", name)


async def test_what_is_asked_for_is_told_and_all_that_is_told_is_shown(
    indexed: Context, dashboard: dict[str, Any], rules: list[dict[str, Any]]
) -> None:
    there = await scrape_metrics(indexed)
    shown, watched = named(asked(dashboard)), named([rule["expr"] for rule in rules])
    for name, selected in [*shown.items(), *watched.items()]:
        assert name in there, f"{name} is not told"
        for label, value in selected:
            if (label, value) == ("instance", "$instance"):
                continue
            assert label in there[name], f"{name} has no label {label}"
            assert value in _VALUES[label], f"{name} is never of {label} {value}"
    ours = {family(name) for name in there if name.startswith("roundtrip_")}
    assert ours == {family(name) for name in shown if name.startswith("roundtrip_")}


async def test_the_documentation_has_every_metric(indexed: Context) -> None:
    there = {family(name) for name in await scrape_metrics(indexed) if name.startswith("roundtrip_")}
    section = (DOCS / "monitoring.md").read_text().split("## Metrics")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `roundtrip_")]
    assert {name for row in rows for name in re.findall(r"roundtrip_\w+", row.split(" | ")[0])} == there


def test_the_dashboard_is_one_that_can_be_loaded(dashboard: dict[str, Any]) -> None:
    """As far as can be told without one who loads it."""
    assert dashboard["uid"] == "roundtrip"
    assert dashboard["schemaVersion"] >= 36
    variables = {one["name"] for one in dashboard["templating"]["list"]}
    assert variables == {"datasource", "instance"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert all(0 <= x < 24 for x, _ in cells)
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in panels(dashboard):
        assert panel["type"] in ("timeseries", "stat")
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        refs = [target["refId"] for target in panel["targets"]]
        assert refs
        assert len(set(refs)) == len(refs)
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert {one for text in asked(dashboard) for one in re.findall(r"\$\w+", text)} == {
        "$__rate_interval", "$instance",
    }  # fmt: skip


def test_every_alert_says_what_is_wrong_and_what_to_look_at(rules: list[dict[str, Any]]) -> None:
    names = [rule["alert"] for rule in rules]
    assert len(set(names)) == len(names) > 10
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert re.fullmatch("[0-9]+[smh]", rule.get("for", "0s"))
        assert set(rule["annotations"]) == {"summary", "what"}


def test_parentheses_close(dashboard: dict[str, Any], rules: list[dict[str, Any]]) -> None:
    for text in [*asked(dashboard), *(rule["expr"] for rule in rules)]:
        plain = re.sub(r'"[^"]*"', "", text)
        for opening, closing in ("()", "{}", "[]"):
            assert plain.count(opening) == plain.count(closing), text
