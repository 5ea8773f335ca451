"""A Python that has imported torch, and continues in a copy of itself for every script.

Importing torch takes longer than most scripts of these tests. The agent starts when torch has been
imported; here that is in the copy, before the script's first line instead of at its `import torch`.
Requests and answers are lines of JSON on standard input and output.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from typing import Any

import torch
import torch.utils.data

INJECTED = "sitecustomize.py"


def next_request() -> dict[str, Any]:
    """The request to carry out: this returns in a copy of the process for each, with its output."""
    while True:
        line = sys.stdin.readline()
        if not line:
            os._exit(0)
        request: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            return request
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def become_script(request: dict[str, Any]) -> str:
    """Take over the folder, the environment and the output of a script; returns its path."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for number, name in enumerate((os.devnull, request["stdout"], request["stderr"])):
        file = os.open(name, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    sys.argv = [request["script"]]
    sys.path[0] = os.path.dirname(os.path.abspath(request["script"]))
    inject = request["inject"]
    sys.path.insert(1, inject)  # which it removes again
    runpy.run_path(os.path.join(inject, INJECTED), run_name="sitecustomize")
    from _ghostgpu.agent import activation, preload  # type: ignore[import-not-found]

    if request["has_library"]:
        preload.require()
    activation.after_import(torch)
    return str(request["script"])


runpy.run_path(become_script(next_request()), run_name="__main__")
