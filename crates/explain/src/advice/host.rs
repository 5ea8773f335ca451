//! Advice about host memory.

use super::{Advice, Effect};
use crate::finding::Finding;
use crate::kind::Kind;

pub fn host_memory(finding: &Finding) -> Vec<Advice> {
    let mut found = Vec::new();
    match finding.kind {
        Kind::JobLimit => found.push(Advice::new(
            "request more RAM",
            "#SBATCH --mem=64G   # Kubernetes: resources.limits.memory; Docker: --memory 64g; Ray: @ray.remote(memory=...)",
            "the limit belongs to the job, not to the machine",
        )),
        Kind::HostKillLikely | Kind::DataLoaderKilled => found.push(Advice::new(
            "find out who killed it",
            "dmesg -T | grep -i -E 'killed process|oom'   # or: journalctl -k",
            "the kernel log names the process and its size",
        )),
        _ => {}
    }
    found.push(Advice::new(
        "fewer workers, less prefetching",
        "DataLoader(..., num_workers=2, prefetch_factor=2)",
        "each worker is a process with its own copy of every page the dataset touches",
    ));
    found.push(Advice::new(
        "loading checkpoints without a second copy in RAM",
        "torch.load(path, map_location=\"cpu\", mmap=True)   # from_pretrained(..., low_cpu_mem_usage=True)",
        "otherwise every rank holds the model twice while it loads",
    ));
    found.push(Advice::new(
        "datasets in arrays, not in lists of Python objects",
        "np.memmap / datasets.load_from_disk(path)",
        "touching reference counts copies the pages of a list into every worker: RAM grows over the epoch",
    ));
    if matches!(finding.kind, Kind::CpuAllocator | Kind::PythonMemory) {
        found.insert(
            0,
            Advice::new(
                "smaller chunks",
                "for part in data.split(1024): ...",
                "a single request was larger than the memory left",
            )
            .with_effect(Effect::Rounding),
        );
    }
    found.push(Advice::new(
        "check how much RAM there is",
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
            "workers pass their batches through it",
        ),
        Advice::new(
            "no workers, to confirm the cause",
            "DataLoader(..., num_workers=0)",
            "then nothing uses shared memory",
        ),
        Advice::new(
            "files instead of shared memory",
            "torch.multiprocessing.set_sharing_strategy(\"file_system\")",
            "helps when the number of open files is the limit",
        ),
        Advice::new(
            "check how full it is",
            "df -h /dev/shm",
            "containers have 64M by default",
        ),
    ]
}

pub fn pinned() -> Vec<Advice> {
    vec![
        Advice::new(
            "no pinned batches",
            "DataLoader(..., pin_memory=False)",
            "pinned memory is limited on WSL and in containers, and PyTorch rounds each request up to a \
             power of two",
        ),
        Advice::new(
            "a higher limit for locked memory",
            "ulimit -l unlimited   # Docker: --ulimit memlock=-1; WSL: [wsl2] memory=... in .wslconfig",
            "the system refuses to lock more pages",
        ),
        Advice::new(
            "less offloading",
            "DeepSpeed: \"pin_memory\": false in offload_optimizer and offload_param",
            "offloaded parameters are pinned as a whole",
        ),
    ]
}

pub fn page_file() -> Advice {
    Advice::new(
        "check whether RAM and page file are full",
        "free -g   # Windows: a larger page file (System > Advanced > Performance > Virtual memory)",
        "where host memory has to back the card's memory, host memory runs out first",
    )
}
