"""An untested torch or CUDA: the command says so before anything starts."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from conftest import Rehearse


@pytest.fixture
def renamed_torch(tmp_path: Path) -> Path:
    """A folder with a torch that claims another version but has this one's libraries."""
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None
    package = tmp_path / "other" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "lib").symlink_to(Path(found.origin).parent / "lib")
    return package


def name_it(package: Path, version: str, cuda: str) -> dict[str, str]:
    (package / "version.py").write_text(f"__version__ = {version!r}\ncuda = {cuda!r}\nhip = None\n")
    return {"PYTHONPATH": str(package.parent)}


def test_the_imports_of_an_unknown_torch_are_surveyed(
    rehearse_reference: Rehearse, renamed_torch: Path
) -> None:
    environment = name_it(renamed_torch, "2.99.0+cu130", "13.0")
    done = rehearse_reference("print('ran')", environment=environment).expect(6)
    (remark,) = [each for each in done["assumptions"] if "2.99.0" in each]
    assert "is newer than the newest this was tested with" in remark
    assert "CUDA functions that it imports are known" in remark
    # Before it starts.
    assert "2.99.0" in done.stderr


def test_an_unknown_cuda_is_refused_by_its_number(
    rehearse_reference: Rehearse, renamed_torch: Path
) -> None:
    environment = name_it(renamed_torch, "2.15.0+cu140", "14.0")
    done = rehearse_reference("print('ran')", environment=environment).expect(2)
    assert "CUDA 14.0" in done.stderr and "hint: " in done.stderr
    assert "ran" not in done.stdout
