"""A case in a forked copy of this process, which has everything imported already.

Importing is most of the time of a replay on a virtual card. A fork is as fresh as a new process
as long as the parent never used CUDA, and as long as the case needs no other settings than the
parent had when it imported torch.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Callable


class ForkedProcess:
    """The part of `subprocess.Popen` that the runner uses."""

    def __init__(self, work: Callable[[], int], log: Path) -> None:
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _run_and_end(work, log)

    def poll(self) -> int | None:
        if self.returncode is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _run_and_end(work: Callable[[], int], log: Path) -> None:
    code = 1
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = work()
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # The exit handlers were registered by the parent and are its own business.
        os._exit(code)


def import_everything() -> None:
    """What most cases import while they are built."""
    import torch
    import torchvision  # noqa: F401
    import transformers
    from transformers import (  # noqa: F401
        BertForMaskedLM,
        GPT2LMHeadModel,
        LlamaForCausalLM,
        T5ForConditionalGeneration,
    )

    # Created by the first optimizer otherwise, in every child again.
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])
    transformers.logging.set_verbosity_error()
