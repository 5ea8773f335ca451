//! Worker processes that died without a message of their own: nnU-Net, joblib, process pools, Dask, `datasets`.

use super::{Family, Message, Pattern, pattern, range};
use crate::finding::{FigureValue, LIBRARY};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "background workers are",
        "executor was unexpectedly terminated",
        "process pool was terminated",
        "memory budget",
        "KilledWorker",
        "abruptly died",
    ],
    read,
};

const POOLS: [(&str, &Pattern); 5] = [
    ("nnU-Net", &BATCHGENERATORS),
    ("joblib", &JOBLIB),
    ("concurrent.futures", &FUTURES),
    ("Dask", &DASK),
    ("datasets", &DATASETS),
];

pattern!(
    BATCHGENERATORS,
    r"(?:Oneormore|Some)backgroundworkersarenolongeralive"
);
pattern!(
    JOBLIB,
    r"Aworkerprocessmanagedbytheexecutorwasunexpectedlyterminated"
);
pattern!(FUTURES, r"Aprocessintheprocesspoolwasterminatedabruptly");
pattern!(
    DASK,
    r"Worker(?:tcp://\S{1,60}?)?(?:\(pid=\d+\))?exceeded\d+%memorybudget|(?:Worker)?exceededmemorybudget\.?Restarting|KilledWorker:?\("
);
pattern!(
    DATASETS,
    r"Oneofthesubprocesseshasabruptlydiedduringmapoperation"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for (library, pattern) in POOLS {
        for found in pattern.printed(text) {
            let (start, end) = range(&found);
            let mut message = Message::new(Kind::WorkersDied, start, end);
            let name = FigureValue::Text(library.to_owned());
            message.figures.add(LIBRARY, name);
            messages.push(message);
        }
    }
    messages
}
