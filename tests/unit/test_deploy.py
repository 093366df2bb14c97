"""What runs it as a service says nothing that the service does not know. Nobody runs these files here: the
tools of those who do look at them by make write NAME=deploy."""

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from deploy import bill
from deploy.lint import UNITS
from packaging.requirements import Requirement

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.server.drain import drain_mark
from roundtrip.cli import main
from roundtrip.config.settings import Settings
from roundtrip_development.devnet.artifacts import PACKAGES

PROJECT = Path(__file__).resolve().parents[2]
DEPLOY = PROJECT / "deploy"
NAMED = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
SECRETS = (DEPLOY / "secrets.env.example").read_text()
EXAMPLE = (DEPLOY / "roundtrip.env.example").read_text() + SECRETS
SECRET = {"ROUNDTRIP_SECRET_KEY", "ROUNDTRIP_TELEGRAM_TOKEN"}
WITH_SECRETS, WITHOUT = ("serve", "work", "backup"), ("sync", "migrate")
LOCAL_ONLY = {"rpc_port", "webhook_loopback"}
"""Settings of the local chain and of tests, which nobody needs who runs a service."""
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
OURS = {name: run for name, run in COMPOSE["services"].items() if run["image"].startswith("roundtrip")}
"""The services of the compose file that run our image, by name."""
SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
LONG = ("serve", "sync", "work")


def parsed(arguments: list[str]) -> dict[str, Any]:
    """The parameters that a command of ours reads from these words. Raises click.UsageError."""
    command = main.command(arguments[0])
    return command.make_context(arguments[0], arguments[1:]).params


def settings_in(text: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the settings that lines of an environment file set; their values are valid."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        monkeypatch.setenv(name, value)
    Settings()
    return {line.partition("=")[0].removeprefix("ROUNDTRIP_").lower() for line in text.splitlines()}


def unit(name: str) -> dict[str, list[str]]:
    """The values that a unit sets, by key, in order."""
    values: dict[str, list[str]] = {}
    for line in (UNITS / name).read_text().splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            values.setdefault(key, []).append(value)
    return values


# --- settings ---------------------------------------------------------------------------------------


def test_the_example_has_every_setting_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = re.findall(r"^#?(ROUNDTRIP_\w+=.*)$", EXAMPLE, re.M)
    key = "ROUNDTRIP_SECRET_KEY="
    assert key in lines
    # One node or several, not both.
    single_node = [line for line in lines if line.startswith("ROUNDTRIP_RPC_URL=")]
    text = "\n".join(
        line + "A" * 43 + "=" if line == key else line for line in lines if line not in single_node
    )
    names = settings_in(text, monkeypatch)
    assert names | {"rpc_url"} == set(Settings.model_fields) - LOCAL_ONLY
    assert len(single_node) == 1


def test_what_the_example_calls_left_out_is_what_holds_then() -> None:
    plain = Settings()
    for name, value in re.findall(r"^#ROUNDTRIP_(\w+)=(\d+)$", EXAMPLE, re.M):
        if name not in ("SYNC_FROM", "SYNC_EVERY_MS", "METRICS_PORT"):
            assert getattr(plain, name.lower()) == int(value), name


def test_nobody_starts_with_the_secrets_left_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUNDTRIP_SECRET_KEY", "")
    with pytest.raises(ValueError, match="32 bytes"):
        Settings()


def test_only_the_roles_that_need_secrets_see_them() -> None:
    assert set(re.findall(r"^#?(ROUNDTRIP_\w+)=", SECRETS, re.M)) == SECRET
    for name in WITH_SECRETS:
        files = unit(f"roundtrip-{name}.service")["EnvironmentFile"]
        assert "/etc/roundtrip/secrets.env" in files
        if name in OURS:
            assert OURS[name]["env_file"] == ["roundtrip.env", "secrets.env"]
    for name in WITHOUT:
        files = unit(f"roundtrip-{name}.service")["EnvironmentFile"]
        assert not any("secrets" in file for file in files)
        assert "secrets.env" not in str(OURS[name].get("env_file"))
    # Nodes' URLs may hold keys, and a migration asks no node.
    assert "env_file" not in OURS["migrate"]
    assert not any("roundtrip.env" in file for file in unit("roundtrip-migrate.service")["EnvironmentFile"])


# --- compose ----------------------------------------------------------------------------------------


def test_compose_runs_what_there_is() -> None:
    assert {name: service["command"][0] for name, service in OURS.items()} == {
        name: name for name in ("migrate", *LONG)
    }
    assert parsed(OURS["serve"]["command"])["process_count"] == 2
    for service in OURS.values():
        assert parsed(service["command"]) is not None
        assert service["image"] == f"roundtrip:{NAMED['version']}"


def test_compose_sets_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = {json.dumps(service["environment"]) for service in OURS.values()}
    lines = "\n".join(f"{name}={value}" for name, value in json.loads(text).items())
    lines = re.sub(r"\$\{DATABASE_PASSWORD:[^}]*\}", "abc", lines)
    measured = {"metrics_host", "metrics_port"}
    answer = settings_in(lines, monkeypatch) - measured
    assert answer == {"host", "var", "database_url", "redis_url", "trusted_proxies"}
    settings = Settings()
    # A port that is published is the proxy's and nobody else's.
    assert settings.metrics_port
    published = str([service.get("ports") for service in COMPOSE["services"].values()])
    assert str(settings.metrics_port) not in published
    assert urlsplit(settings.database_url or "").hostname in COMPOSE["services"]
    assert urlsplit(settings.redis_url or "").hostname in COMPOSE["services"]
    (where,) = COMPOSE["networks"]["outside"]["ipam"]["config"]
    assert [str(proxy) for proxy in settings.trusted_proxies] == [f"{where['gateway']}/32"]


def test_compose_opens_nothing_and_bounds_everything() -> None:
    for name, service in COMPOSE["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"], name
        assert service["pids_limit"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert [service["networks"] for name, service in COMPOSE["services"].items() if name not in OURS] == [
        ["inside"], ["inside"]
    ]  # fmt: skip


def test_compose_asks_for_health_where_it_is_told() -> None:
    (url,) = re.findall(r"http://[^']+", OURS["serve"]["healthcheck"]["test"][1])
    assert urlsplit(url).path in {operation.path for operation in OPERATIONS}
    assert OURS["serve"]["ports"] == [f"127.0.0.1:{urlsplit(url).port}:{urlsplit(url).port}"]
    assert urlsplit(url).port == Settings().port


def test_whoever_drains_has_the_time_for_it() -> None:
    for name, seconds in (("serve", 50), ("work", 50), ("sync", 20)):
        assert OURS[name]["stop_grace_period"] == f"{seconds}s"
        assert unit(f"roundtrip-{name}.service")["TimeoutStopSec"] == [f"{seconds}"]


def test_the_containers_back_up_and_restore_by_the_commands_of_the_page() -> None:
    page = (PROJECT / "docs" / "operations.md").read_text()
    for name in ("backup", "restore"):
        (command,) = re.findall(rf"`(docker compose [^`]* {name} [^`]*)`", page)
        words = shlex.split(command)
        folder, inside, *mode = words[words.index("-v") + 1].split(":")
        # Whoever migrates first leaves a database that is not empty.
        assert "--no-deps" in words
        assert words[words.index(name) - 1] in OURS
        assert mode == (["ro"] if name == "restore" else [])
        assert folder == "$PWD/backups"
        assert str(parsed(words[words.index(name) :])["file"]).startswith(f"{inside}/")
    (user,) = {service["user"] for service in OURS.values()}
    assert f"install -d -m 700 -o {user.split(':')[0]} backups" in page


# --- the image --------------------------------------------------------------------------------------


def test_the_image_begins_what_compose_tells_it() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    (built,) = re.findall(r"docker build .* -t (\S+) \.$", text, re.M)
    assert {service["image"] for service in OURS.values()} == {built}
    entry, plain = (json.loads(words) for words in re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", text, re.M))
    assert entry == ["roundtrip"]
    assert entry[0] in NAMED["scripts"]
    assert parsed(plain)["process_count"] == 1
    assert f"EXPOSE {Settings().port}" in text
    (user,) = re.findall(r"^USER (.*)$", text, re.M)
    assert {service["user"] for service in OURS.values()} == {user}
    allowed = (DEPLOY / "Dockerfile.dockerignore").read_text().replace("!", "").split()
    (copied,) = re.findall(r"^COPY (dist.*) \./$", text, re.M)
    assert ["*", *copied.split()] == allowed


# --- units ------------------------------------------------------------------------------------------


def test_the_service_drains_before_it_is_told_to_end() -> None:
    """A drain that fails, of a service that is gone already, changes nothing: hence the dash."""
    (line,) = unit("roundtrip-serve.service")["ExecStop"]
    program, *words = shlex.split(line)
    assert program == "-/opt/roundtrip/bin/roundtrip"
    assert words[0] == "drain"
    assert parsed(words) == {"undo": False, "wait_s": 10}
    # Nothing else of a container can be written to.
    mark = drain_mark(Path(OURS["serve"]["environment"]["ROUNDTRIP_VAR"]), Settings().port)
    assert str(mark.parent) in [mount.partition(":")[0] for mount in OURS["serve"]["tmpfs"]]


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_runs_what_there_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = unit(name)
    program, *words = shlex.split(answer["ExecStart"][0])
    assert program == "/opt/roundtrip/bin/roundtrip"
    assert name == f"roundtrip-{words[0]}.service"
    assert parsed(words) is not None
    ours = [word for line in answer["Environment"] for word in line.split() if word.startswith("ROUNDTRIP_")]
    measured = {"metrics_port"} if words[0] in LONG else set()
    assert settings_in("\n".join(ours), monkeypatch) == {"var", "database_url", "redis_url"} | measured


def test_each_backup_is_kept_by_its_date_for_three_days(tmp_path: Path) -> None:
    """The commands as systemd passes them on: $$ and %% become $ and %, and no shell reads the words."""
    answer = unit("roundtrip-backup.service")
    file = Path(shlex.split(answer["ExecStart"][0])[-1])
    others = [tmp_path / name for name in ("secret.key", "backup-lately.sql.gz")]
    late = [tmp_path / name for name in ("backup-late.sql.gz", "backup.sql.gz.1.ab.partial", "secret.old")]
    for path in (*others, *late):
        path.write_text("of before")
    for path in late:
        os.utime(path, (1, 1))
    for now in ("first", "second"):
        (tmp_path / file.name).write_text(now)
        for line in answer["ExecStartPost"]:
            words = shlex.split(line.replace("$$", "$").replace("%%", "%"))
            words = [word.replace(str(file.parent), str(tmp_path)) for word in words]
            if "mv" in line:
                stamp = f"echo {now}"
                words[-1] = re.sub(r"\bdate -u \S+(?=\))", stamp, words[-1])
                assert stamp in words[-1]
            subprocess.run(words, check=True)
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {
        "secret.key": "of before",
        "secret.old": "of before",
        "backup-lately.sql.gz": "of before",
        "backup-first.sql.gz": "first",
        "backup-second.sql.gz": "second",
    }


def test_the_date_of_a_backup_is_one_of_a_file() -> None:
    (line,) = [command for command in unit("roundtrip-backup.service")["ExecStartPost"] if "date" in command]
    (text,) = re.findall(r"\$\$\((date [^)]*)\)", line)
    stamp = subprocess.run(shlex.split(text.replace("%%", "%")), check=True, capture_output=True, text=True)
    assert re.fullmatch(r"\d{8}T\d{6}Z", stamp.stdout.strip())


@pytest.mark.parametrize("name", LONG)
def test_what_runs_on_is_started_again_and_begun_by_the_target(name: str) -> None:
    answer = unit(f"roundtrip-{name}.service")
    assert (answer["Restart"], answer["KillMode"], answer["Type"]) == (["on-failure"], ["mixed"], ["exec"])
    assert answer["WantedBy"] == ["roundtrip.target"]
    assert f"roundtrip-{name}.service" in unit("roundtrip.target")["Wants"][0].split()
    assert "roundtrip-migrate.service" in answer["After"]
    assert int(answer["LimitNOFILE"][0]) > 2 * Settings().most_connections
    assert answer["MemoryMax"]


def test_each_unit_has_ports_for_its_metrics_that_no_other_has() -> None:
    """All units read roundtrip.env, in which a port would be the same for all."""
    had: list[int] = []
    for name in LONG:
        answer = unit(f"roundtrip-{name}.service")
        (port,) = re.findall(r"ROUNDTRIP_METRICS_PORT=(\d+)", str(answer["Environment"]))
        processes = parsed(shlex.split(answer["ExecStart"][0])[1:]).get("process_count", 1)
        had += range(int(port), int(port) + processes)
        first, *_, last = answer["EnvironmentFile"]
        assert (first, last) == ("/etc/roundtrip/roundtrip.env", f"-/etc/roundtrip/{name}.env")
        assert f" {port}" in EXAMPLE
        assert f"{name}.env" in EXAMPLE
    assert len(had) == 4 == len(set(had))


def test_all_units_may_the_same() -> None:
    def may(name: str) -> str:
        return (UNITS / name).read_text().partition("# Restrictions:")[2].partition("[Install]")[0].strip()

    assert "NoNewPrivileges=yes" in may(SERVICES[0])
    assert len({may(name) for name in SERVICES}) == 1
    assert {unit(name)["User"][0] for name in SERVICES} == {"roundtrip"}


# --- what is installed ------------------------------------------------------------------------------


def test_the_page_of_licences_is_what_is_installed() -> None:
    """If not, run python -m deploy.bill."""
    assert bill.page(bill.python_parts(), bill.npm_parts()) == bill.PAGE.read_text()


def test_the_bill_and_the_lock_have_all_that_runs() -> None:
    python, npm = bill.python_parts(), bill.npm_parts()
    components = bill.bill(python, npm, "1")["components"]
    purls = {component.get("purl") for component in components}
    needed = [Requirement(asked) for asked in bill.asked()]
    names = {one.name for one in needed if one.marker is None or one.marker.evaluate(bill.NEWEST_PATCH)}
    versions = {name: version for name, (version, _) in bill.locked().items()}
    assert {f"pkg:pypi/{name}@{versions[name]}" for name in names} <= purls
    assert {f"pkg:npm/{package.name.replace('@', '%40')}@{package.version}" for package in PACKAGES} <= purls
    assert all(component["licenses"] != [{"expression": ""}] for component in components)
    refs = [component["bom-ref"] for component in components]
    assert len(refs) == len(set(refs))
    lock = bill.lock_of_what_runs(python)
    assert set(re.findall(r"^([\w.-]+)==[^ ;\\]+", lock, re.M)) >= names
    assert "pytest" not in lock
    for entry in re.split(r"\n(?=\S)", lock):
        assert "--hash=sha256:" in entry
