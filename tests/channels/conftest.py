"""What every test of channels does without."""

import functools
import os
import ssl

import pytest

_read = ssl.create_default_context


@functools.cache
def _trusted(file: str | None) -> ssl.SSLContext:
    return _read()


@pytest.fixture(autouse=True)
def _certificates_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the machine's takes 25 ms, which would be most of what a test takes. Those of a file that a
    test names are read for it."""
    monkeypatch.setattr(ssl, "create_default_context", lambda: _trusted(os.environ.get("SSL_CERT_FILE")))
