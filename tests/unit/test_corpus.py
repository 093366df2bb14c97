"""The kept evidence is judged today as its table says: a change of policy is seen in whole, as a diff."""

import pytest

from evidence.corpus import FOLDER, VERDICTS, documents, table
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import CODES
from roundtrip.services.engine.sell_results import EVIDENCE_SCHEMA

MAX_BYTES = 1_000_000
NOT_IN_THE_ZOO = {"no_contract", "quote_asset"}
"""Verdicts about addresses that are no sample token."""


def test_every_document_is_judged_as_the_table_says() -> None:
    assert table() == VERDICTS.read_text(), (
        "see the whole effect with: make write NAME=rejudge && git diff tests/evidence"
    )


@pytest.mark.parametrize("name", documents())
def test_a_document_is_canonical_and_of_this_release(name: str) -> None:
    document = documents()[name]
    evidence = canonical_json.load(Evidence, document)
    assert canonical_json.dump(evidence) == document, "make it anew with: make write NAME=evidence"
    assert evidence.schema == EVIDENCE_SCHEMA


def test_the_corpus_is_small_and_knows_every_verdict() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < MAX_BYTES
    codes = {line.split(" | ")[1] for line in table().splitlines() if line.count(" | ") == 5}
    assert set(CODES) - codes <= NOT_IN_THE_ZOO
