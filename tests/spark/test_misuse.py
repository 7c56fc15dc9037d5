"""What is no topology, folder or workload is named by the call that was given it, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyengine import spark as ps
from pyengine.errors import ConfigurationError
from pyengine.topology import Source, Topology


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda out: ps.run(None, out), "topology=None: must be a Topology"),
        (lambda out: ps.run(Topology(Source("q")), 5), "out=5: must be a text or a PathLike"),
        (lambda out: ps.write_shards(None, "flights.toml", out), "topology='flights.toml': must be a Topology"),
        (lambda out: ps.write_shards(None, Topology(Source("q")), None), "folder=None: must be a text or a PathLike"),
        (lambda out: ps.dispatch_shards(None, 5, out), "topology=5: must be a Topology"),
        (lambda out: ps.dispatch(None, "flights.toml"), "topology='flights.toml': must be a Topology or a ConsumerG"),
        (
            lambda out: ps.dispatch_stream(None, None, row="n", state=out, sink=out),
            "topology=None: must be a Topology",
        ),
        (lambda out: ps.sweep(None, 5, []), "workload=5: must be a Workload"),
    ],
)
def test_what_cannot_be_used_is_named_before_anything_is_written(
    tmp_path: Path, call: Callable[[Path], object], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        call(tmp_path / "out")
    assert words in str(refused.value)
    assert not [*tmp_path.iterdir()]
