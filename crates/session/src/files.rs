//! The names of the files that the parts of a rehearsal exchange in the run folder.

/// The prefix of run folders. They are all in the same parent folder.
pub const RUN_FOLDER_PREFIX: &str = "ghostgpu-run-";

/// The session itself, written by the command line before anything starts.
pub const SESSION_FILE: &str = "session.json";

/// One [`ProcessReport`](crate::ProcessReport) per process: `agent-<pid>.json`, from the agent.
pub const AGENT_REPORT_PREFIX: &str = "agent-";

/// One [`Note`](crate::Note) per line: `notes-<pid>.jsonl`, from the library and, about ranks that wait in vain, from
/// the agent.
pub const NOTES_PREFIX: &str = "notes-";

/// What each of the first optimizer steps had the cards do, one `ghostgpu_cost::Work` per line:
/// `work-<pid>.jsonl`, from the library.
pub const WORK_PREFIX: &str = "work-";

/// Files that the script wrote during the rehearsal, one [`WrittenFile`](crate::WrittenFile) per
/// line, from the agent. The command line removes them unless the user asked to keep them.
pub const WRITTEN_FILES: &str = "written-files.jsonl";

/// Written by the agent if the library is not loaded in its process although it should have been preloaded. The text is
/// the reason, as far as known.
pub const PRELOAD_BLOCKED_FILE: &str = "preload-blocked";

/// The folder in which the ranks of a job meet.
pub const RANKS_FOLDER: &str = "ranks";

/// A file with this prefix and a process id, in that folder, says that the rehearsal has ended the process, so that no
/// rank waits for it. From the agent.
pub const RANK_LEFT_PREFIX: &str = "left-";

/// A file with this prefix and a process id, in that folder, says that the main thread of the process has waited inside
/// torch for some seconds. From the agent.
pub const RANK_BLOCKED_PREFIX: &str = "blocked-";

/// A file with this prefix and a process id, in that folder, says where else the main thread of the process has stood for
/// some seconds. From the agent.
pub const RANK_STANDING_PREFIX: &str = "standing-";

/// A file with this prefix and a process id, in that folder, says as which rank of how many the process was started. From
/// the agent, before the script begins.
pub const RANK_STARTED_PREFIX: &str = "started-";

/// A file with this prefix, in that folder, lists the processes that `torch.multiprocessing` has started at once. From the
/// agent.
pub const RANK_SPAWNED_PREFIX: &str = "spawned-";

/// A file with this prefix and a process id, in that folder, says which call of other ranks the process waits for. From
/// the library; it stays if the process is ended there.
pub const RANK_WAITING_PREFIX: &str = "waiting-";

/// A file with this prefix and a process id, in that folder, holds what Python's `faulthandler` wrote when the rank died of
/// a fatal signal; it is empty while it lives. From the agent.
pub const RANK_FAULT_PREFIX: &str = "fault-";
