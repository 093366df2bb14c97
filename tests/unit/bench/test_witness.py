"""What a witness shows of two recordings."""

from typing import Any

from bench.witness import differences

PAGE: dict[str, Any] = {"status": 200, "headers": {}, "body": "<h1>Plain</h1>\n<p>It sells.</p>\n"}


def test_equal_recordings_do_not_differ() -> None:
    assert differences({"GET /": PAGE}, {"GET /": dict(PAGE)}) == {}


def test_a_changed_line_is_shown_under_its_question() -> None:
    changed = {**PAGE, "body": PAGE["body"].replace("It sells.", "It may sell.")}
    found = differences({"GET /": PAGE, "GET /a": PAGE}, {"GET /": changed, "GET /a": PAGE})
    assert [*found] == ["GET /"]
    assert {"-<p>It sells.</p>", "+<p>It may sell.</p>"} <= set(found["GET /"])


def test_a_question_that_one_recording_lacks_differs() -> None:
    assert [*differences({"GET /": PAGE}, {})] == ["GET /"]
    assert [*differences({}, {"GET /": PAGE})] == ["GET /"]
