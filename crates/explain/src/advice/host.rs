//! Advice about the machine's own memory.

use super::{Advice, Effect};
use crate::finding::Finding;
use crate::kind::Kind;

pub fn host_memory(finding: &Finding) -> Vec<Advice> {
    let mut found = Vec::new();
    match finding.kind {
        Kind::JobLimit => found.push(Advice::new(
            "ask for more RAM",
            "#SBATCH --mem=64G   # Kubernetes: resources.limits.memory; Docker: --memory 64g; Ray: @ray.remote(memory=...)",
            "the limit is the job's, not the machine's",
        )),
        Kind::HostKillLikely | Kind::DataLoaderKilled => found.push(Advice::new(
            "make sure who killed it",
            "dmesg -T | grep -i -E 'killed process|oom'   # or: journalctl -k",
            "the kernel names the process and what it had",
        )),
        _ => {}
    }
    found.push(Advice::new(
        "fewer workers with less ahead",
        "DataLoader(..., num_workers=2, prefetch_factor=2)",
        "each worker is a process with its own copy of what the data set touches",
    ));
    found.push(Advice::new(
        "checkpoints without a second copy in RAM",
        "torch.load(path, map_location=\"cpu\", mmap=True)   # from_pretrained(..., low_cpu_mem_usage=True)",
        "a model is otherwise in RAM twice while it is loaded, on every rank",
    ));
    found.push(Advice::new(
        "data as arrays, not as lists of Python objects",
        "np.memmap / datasets.load_from_disk(path)",
        "reference counts copy lists page by page into every worker: RAM grows over the epoch",
    ));
    if matches!(finding.kind, Kind::CpuAllocator | Kind::PythonMemory) {
        found.insert(
            0,
            Advice::new(
                "a smaller piece at a time",
                "for part in data.split(1024): ...",
                "the one request was too large for what the machine has left",
            )
            .with_effect(Effect::Rounding),
        );
    }
    found.push(Advice::new(
        "see what RAM there is",
        "free -g; cat /sys/fs/cgroup/memory.max",
        "a container or job may have less than the machine",
    ));
    found
}

pub fn shared_memory() -> Vec<Advice> {
    vec![
        Advice::new(
            "a larger /dev/shm",
            "docker run --shm-size=8g ...   # Kubernetes: emptyDir {medium: Memory} on /dev/shm; Linux: mount -o remount,size=8G /dev/shm",
            "batches of the workers lie there",
        ),
        Advice::new(
            "without workers, to be sure",
            "DataLoader(..., num_workers=0)",
            "then nothing goes through shared memory",
        ),
        Advice::new(
            "files instead of shared memory",
            "torch.multiprocessing.set_sharing_strategy(\"file_system\")",
            "helps where the number of open files is the limit",
        ),
        Advice::new(
            "see how full it is",
            "df -h /dev/shm",
            "64M is what containers have by default",
        ),
    ]
}

pub fn pinned() -> Vec<Advice> {
    vec![
        Advice::new(
            "no page-locked batches",
            "DataLoader(..., pin_memory=False)",
            "page-locked memory is limited on WSL and in containers, and PyTorch rounds each request up \
             to a power of two",
        ),
        Advice::new(
            "a higher limit for locked memory",
            "ulimit -l unlimited   # Docker: --ulimit memlock=-1; WSL: [wsl2] memory=... in .wslconfig",
            "the system refuses to lock more",
        ),
        Advice::new(
            "less offloading",
            "DeepSpeed: \"pin_memory\": false in offload_optimizer and offload_param",
            "offloaded parameters are page-locked as a whole",
        ),
    ]
}

pub fn page_file() -> Advice {
    Advice::new(
        "see whether RAM and page file are full",
        "free -g   # Windows: a larger page file (System > Advanced > Performance > Virtual memory)",
        "where memory of the card must be backed by the machine's, the machine's ends first",
    )
}
