"""The type hints: a user's program passes mypy at its strictest, and a wrong one does not."""
import os
import re
import site
import subprocess
import sys

import pytest

import exphil

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


WRONG = """import exphil

exphil.Model.load(3)
exphil.Session(1).step_raw()
"""


def indent(text):
    return "".join(f"    {line}\n" for line in text.splitlines())


def test_programs_are_checked(tmp_path):
    """One run for both: mypy takes long to read NumPy's hints."""
    pytest.importorskip("mypy.version", reason="mypy is not installed (package mypy): the type hints are untested")
    with open(os.path.join(FOLDER, "README.md"), encoding="utf-8") as file:
        examples = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
    assert len(examples) == 9
    # torch's own hints do not pass, and take mypy half a minute; JAX may not be there.
    examples = [text for text in examples if "import exphil\n" in text and "import torch" not in text]
    assert len(examples) == 5
    code = [f"def example{number}() -> None:\n{indent(text)}" for number, text in enumerate(examples)]
    (tmp_path / "right.py").write_text("\n\n".join(code))
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", "--config-file=", "right.py", "wrong.py"]
    # mypy looks into the interpreter's own folders by itself, and refuses to be told of them.
    folder, environment = os.path.dirname(os.path.dirname(exphil.__file__)), dict(os.environ)
    if folder not in [*site.getsitepackages(), site.getusersitepackages()]:
        environment["MYPYPATH"] = folder
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    errors = re.findall(r"^(\w+\.py:\d+): error", done.stdout, re.M)
    assert errors == ["wrong.py:3", "wrong.py:4", "wrong.py:4"], done.stdout + done.stderr
