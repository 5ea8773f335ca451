"""Keeps `torch.compile` from compiling the agent.

While compiled code runs, Dynamo examines every new Python frame, including those that PyTorch's C++
starts in the agent: a replacement in front of a kernel, an observer. It must leave them, and what
they call, alone.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

Result = TypeVar("Result")


def shielded(torch: Any, function: Callable[..., Result]) -> Callable[..., Result]:
    """`function`, hidden from Dynamo.

    The public `torch.compiler.disable` does the same, but imports all of Dynamo to do it, which
    takes seconds in scripts that never compile anything.
    """
    eval_frame = torch._C._dynamo.eval_frame
    if hasattr(eval_frame, "set_code_exec_strategy"):
        skip = eval_frame._FrameAction.SKIP
        strategy = eval_frame._FrameExecStrategy(skip, skip)  # for this frame, for those below it
        eval_frame.set_code_exec_strategy(function.__code__, strategy)
        return function

    # torch 2.6 can skip one frame, but not those below it.
    @functools.wraps(function)
    def wrapper(*arguments: Any, **options: Any) -> Result:
        callback = eval_frame.set_eval_frame(None)
        try:
            return function(*arguments, **options)
        finally:
            eval_frame.set_eval_frame(callback)

    code: Any = wrapper
    eval_frame.skip_code(code.__code__)
    return wrapper
