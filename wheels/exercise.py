"""What every installed wheel must do: run by the Python of an environment that holds the wheel and nothing else."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import pickle
from pathlib import Path

import numpy as np

import pyengine


def main() -> None:
    """Exercise the installed package; an assertion or exception says what is missing."""
    here = Path(pyengine.__file__).resolve()
    assert "site-packages" in here.parts, f"not an installed package: {here}"
    assert importlib.util.find_spec("engine") is None, "the wheel claims the top-level name engine"
    files = importlib.metadata.files("pyengine-dispatch") or []
    top = {file.parts[0] for file in files if ".dist-info" not in file.parts[0] and ".." not in file.parts}
    assert top == {"pyengine"}, f"top-level names in the wheel: {top}"
    assert not [file for file in files if file.suffix in {".c", ".pyx"}], "sources in the wheel"
    assert any(file.name == "py.typed" for file in files)

    selector = pyengine.Selector("region = 'EU' AND price > 100")
    assert selector.matches({"region": "EU", "price": 250})
    assert not selector.matches(pyengine.Message(properties={"region": "EU", "price": 99.5}))
    columns = {"region": np.array(["EU", "US", "EU"]), "price": np.array([250.0, 300.0, 50.0])}
    assert selector.mask(columns).tolist() == [True, False, False]
    assert pickle.loads(pickle.dumps(selector)) == selector
    refused = None
    try:
        pyengine.Selector("region == 'EU'")
    except pyengine.InvalidSelectorError as error:
        refused = error.position
    assert refused is not None, "== must be refused"
    print(f"pyengine-dispatch {importlib.metadata.version('pyengine-dispatch')}: the wheel works")


if __name__ == "__main__":
    main()
