"""Without AVX the answers are the same. ``make plain`` asks more, and compares the time too."""

import pytest

from tests.plain.__main__ import ROOT, emulator, measured


def test_an_emulated_processor_without_avx_answers_alike() -> None:
    emulated = emulator()
    if emulated is None:
        pytest.skip("qemu-x86_64 is missing (Debian: qemu-user-static)")
    native, other = measured(ROOT, 60), measured(ROOT, 60, emulated)
    assert len(native) == 9
    assert {name: digest for name, (digest, _) in native.items()} == {
        name: digest for name, (digest, _) in other.items()
    }
