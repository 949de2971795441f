"""What is done for libraries that know no platforms but JAX's own."""

import importlib
import sys

import jax
import pytest

from jax_plugins.helio import libraries

# As in MuJoCo's MJX.
ASKING = """
def choose(device):
    if device.platform in ("cpu", "gpu", "tpu"):
        return device.platform
    raise ValueError(f"Unsupported device: {device}")
"""


@pytest.mark.parametrize("is_there", [False, True])
def test_a_library_that_asks_for_the_platform_hears_of_a_cpu(tmp_path, monkeypatch, is_there):
    name = f"asking_{is_there}"
    (tmp_path / f"{name}.py").write_text(ASKING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(libraries._ASKING, name, ("choose", "gone"))
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    device = jax.devices()[0]
    if is_there:
        with pytest.raises(ValueError, match="Unsupported"):
            importlib.import_module(name).choose(device)
    libraries.install(device.platform)
    module = importlib.import_module(name)
    assert module.choose(device) == "cpu"
    assert module.choose(jax.devices("cpu")[0]) == "cpu"
    assert module.choose.__name__ == "choose"


def test_other_modules_are_imported_as_ever():
    finder = libraries._AfterImport({"no_such_module": lambda module: None})
    assert finder.find_spec("json") is None
    assert finder.find_spec("no_such_module") is None
