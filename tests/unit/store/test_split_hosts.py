"""A url of several hosts, as one url for each."""

import pytest

from roundtrip.store.server.connections import split_hosts


@pytest.mark.parametrize(
    ("url", "urls"),
    [
        ("postgresql://a/x", ["postgresql://a/x"]),
        ("postgresql:///x?host=%2Frun%20a&port=5", ["postgresql:///x?host=%2Frun%20a&port=5"]),
        (
            "postgresql://u:p,q@a:1,b:2/x?target_session_attrs=read-write",
            [
                "postgresql://u:p,q@a:1/x?target_session_attrs=read-write",
                "postgresql://u:p,q@b:2/x?target_session_attrs=read-write",
            ],
        ),
        (
            "postgres://u@[::1]:5,[::2]:6/db?sslmode=require",
            ["postgres://u@[::1]:5/db?sslmode=require", "postgres://u@[::2]:6/db?sslmode=require"],
        ),
        (
            "postgresql:///x?host=/a,/b&port=1,2&user=r",
            ["postgresql:///x?host=%2Fa&port=1&user=r", "postgresql:///x?host=%2Fb&port=2&user=r"],
        ),
        (
            "postgresql:///x?host=/a,/b&port=1",
            ["postgresql:///x?host=%2Fa&port=1", "postgresql:///x?host=%2Fb&port=1"],
        ),
        ("service=x", ["service=x"]),
    ],
)
def test_each_host_has_a_url_of_its_own(url: str, urls: list[str]) -> None:
    assert split_hosts(url) == urls
