"""`python -m ghostgpu.tricks --amp bf16 train.py`: what `ghostgpu launch` does, in pure Python.

Options are those of the catalogue. Everything after the script's name belongs to the script; a
program such as torchrun follows `--`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from . import catalogue
from .launching import VARIABLE
from .refusal import Refused, ending_the_script


def main(words: Sequence[str]) -> None:
    """Replace this process by the training."""
    try:
        asked, command = understood(words)
        requests = catalogue.checked(asked)
    except Refused as refused:
        raise ending_the_script(refused.reason, refused.alternative) from None
    if command[0].endswith(".py") or command[0].startswith("-"):
        command = [sys.executable, *command]
    if requests:
        put_into_environment(requests)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise ending_the_script(
            f"`{command[0]}` cannot be started: {error.strerror}",
            "a program must be on the PATH; a value that an option can do without follows a `=`",
        ) from None


def understood(words: Sequence[str]) -> tuple[list[catalogue.Request], list[str]]:
    """The tricks that the options request, and the command that follows them."""
    values = {trick["flag"]: trick.get("value") for trick in catalogue.tricks().values()}
    requests = []
    rest = list(words)
    while rest and rest[0].startswith("--"):
        flag, has_value, value = rest.pop(0).partition("=")
        if flag == "--":
            break
        if flag not in values:
            raise Refused(f"there is no option `{flag}`", f"options: {', '.join(values)}")
        described = values[flag]
        if described is None and has_value:
            raise Refused(f"{flag} has no value", f"write {flag} alone")
        if described is not None and not has_value and not described.get("is_optional"):
            if not rest:
                raise Refused(
                    f"{flag} needs a value", "python -m ghostgpu.tricks --amp bf16 train.py"
                )
            value = rest.pop(0)
        requests.append(catalogue.of_flag(flag, value))
    if not rest:
        raise Refused("no script was named", "python -m ghostgpu.tricks --amp bf16 train.py")
    return requests, rest


def put_into_environment(requests: Sequence[catalogue.Request]) -> None:
    """Make every Python process that is started from now on apply these tricks."""
    described = [{"name": name, "options": dict(options)} for name, options in requests]
    os.environ[VARIABLE] = json.dumps(described)
    inject = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inject")
    present = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = inject + (os.pathsep + present if present else "")


if __name__ == "__main__":
    main(sys.argv[1:])
