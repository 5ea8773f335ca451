"""Names and numbers that the agent shares with the library and the command line.

Written by a test of `crates/session` (`tests/shared_numbers.rs`); not edited by hand.
"""

from __future__ import annotations

# Where a run's description is found.
SESSION_VARIABLE = "GHOSTGPU_SESSION"
SESSION_FILE = "session.json"
RUN_FOLDER_PREFIX = "ghostgpu-run-"

# Files in the run's folder.
AGENT_REPORT_PREFIX = "agent-"
NOTES_PREFIX = "notes-"
WRITTEN_FILES = "written-files.jsonl"
PRELOAD_BLOCKED_FILE = "preload-blocked"
MEMORY_LOG_PREFIX = "memory-"
HISTORY_PREFIX = "history-"
RANKS_FOLDER = "ranks"
RANK_LEFT_PREFIX = "left-"
RANK_BLOCKED_PREFIX = "blocked-"
RANK_STANDING_PREFIX = "standing-"
RANK_STARTED_PREFIX = "started-"
RANK_SPAWNED_PREFIX = "spawned-"
RANK_WAITING_PREFIX = "waiting-"
RANK_FAULT_PREFIX = "fault-"

# The file that all processes of a run share.
USAGE_FILE = "card.usage"
USAGE_MAGIC = 0x31535554534F4847
USAGE_BYTES = 396352

# `OwnerKind`: what memory is.
PARAMETER = 0
BUFFER = 1
GRADIENT = 2
OPTIMIZER_STATE = 3
INPUT = 4
SAVED_FOR_BACKWARD = 5
KEPT_IN = 6

# `Stage`: what a script is doing.
SCRIPT = 0
MOVING = 1
FORWARD = 2
BACKWARD = 3
OPTIMIZER_STEP = 4
ZERO_GRAD = 5
EVALUATION = 6
