"""Certificates for tests of TLS: a PEM file each, and Java's stores of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PASSWORD = "changeit"


def certificate(folder: Path, name: str = "broker") -> tuple[Path, Path]:
    """A certificate of 127.0.0.1, which is its own authority, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on PATH makes a certificate")
    cert, key = folder / f"{name}.pem", folder / f"{name}-key.pem"
    names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    _run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", *names)
    return cert, key


def key_store(cert: Path, key: Path) -> Path:
    """A PKCS12 store of both."""
    store = cert.with_suffix(".p12")
    _run("openssl", "pkcs12", "-export", "-in", cert, "-inkey", key, "-out", store, "-passout", f"pass:{PASSWORD}")
    return store


def trust_store(cert: Path) -> Path:
    """A store that trusts a certificate."""
    store = cert.with_suffix(".ts")
    _run("keytool", "-importcert", "-noprompt", "-file", cert, "-keystore", store, "-storepass", PASSWORD)
    return store


def java_properties(key: Path | None = None, trusted: Path | None = None) -> dict[str, str]:
    """What a JVM is told of its stores."""
    stores = {"keyStore": key, "trustStore": trusted}
    found = {}
    for name, store in stores.items():
        if store is not None:
            found |= {f"javax.net.ssl.{name}": str(store), f"javax.net.ssl.{name}Password": PASSWORD}
    return found


def _run(*words: object) -> None:
    subprocess.run([str(each) for each in words], check=True, capture_output=True, timeout=60)
