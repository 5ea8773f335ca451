//! cuBLAS, cuDNN and other CUDA libraries, which report a lack of memory under other names.

use super::{Family, Message, pattern, range};
use crate::finding::{FigureValue, LIBRARY};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "ALLOC_FAILED",
        "STATUS_NOT_INITIALIZED",
        "CUDNN_STATUS_INTERNAL_ERROR",
        "valid cuDNN algorithm",
        "valid convolution algorithms",
        "unable to find an engine",
        "Not enough memory for workspace",
        "_SUCCESS (",
        "STATUS_SUCCESS(",
    ],
    read,
};

pattern!(
    STATUS,
    r"(CUBLAS|CUDNN|CUFFT|CUSOLVER|CUSPARSE|CURAND|HIPBLAS|MIOPEN)_(?:STATUS_)?(?:(ALLOC_FAILED)|(NOT_INITIALIZED|INTERNAL_ERROR(?:_[A-Z_]+)?))(?:whencalling(\w+\([^)]{0,200}\)?))?"
);
pattern!(
    NO_ALGORITHM,
    r"(?i)UnabletofindavalidcuDNNalgorithmtorunconvolution|novalidconvolutionalgorithmsavailableincuDNN|(?:GET|FIND)wasunabletofindanenginetoexecutethiscomputation|Unabletofindanenginetoexecute"
);
// A check that prints the number of a status: of each library those that mean, or may mean, no memory.
pattern!(
    NUMBERED,
    r"(CUBLAS|CUDNN|CUFFT|CUSOLVER|CUSPARSE)_(?:STATUS_)?SUCCESS\((\d{1,3})vs\.?0\)"
);
pattern!(WORKSPACE, r"Notenoughmemoryforworkspace!");

/// What stands around a call of a framework that is not PyTorch.
const CALLERS: [(&str, &[&str]); 12] = [
    // Its folder has PyTorch's name.
    ("Torch7", &["luajit", ".lua:"]),
    ("JAX", &["jaxlib", "jax.errors"]),
    ("CNTK", &["cntk", "cublasfailure3:", ";gpu="]),
    (
        "TensorFlow",
        &[
            "tensorflow",
            "stream_executor",
            "failedtocreatecublashandle",
            "couldnotcreatecudnnhandle",
        ],
    ),
    ("MXNet", &["mxnet", "mshadow"]),
    ("PaddlePaddle", &["paddle"]),
    ("CuPy", &["cupy"]),
    ("CUDA.jl", &["cuda.jl", "@cuda"]),
    ("candle", &["candle"]),
    ("Caffe", &["caffe::", "caffe/", "/caffe"]),
    ("llama.cpp", &["ggml"]),
    ("darknet", &["darknet"]),
];

fn caller(text: &str) -> Option<&'static str> {
    let text = text.replace('\n', "").to_ascii_lowercase();
    // PyTorch once had parts of Caffe2.
    let is_pytorch = text.contains("torch") || text.contains("c10::");
    let mut callers = CALLERS
        .iter()
        .filter(|(library, _)| !is_pytorch || *library == "Torch7");
    let found = callers.find(|(_, signs)| signs.iter().any(|sign| text.contains(sign)));
    found.map(|(library, _)| *library)
}

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let caller = caller(text);
    let mut messages = Vec::new();
    for found in STATUS.printed(text) {
        let (start, end) = range(&found);
        let is_certain = found.get(2).is_some();
        let kind = match (found[1].to_ascii_uppercase().as_str(), is_certain) {
            ("CUBLAS" | "HIPBLAS", true) => Kind::Cublas,
            ("CUBLAS" | "HIPBLAS", false) => Kind::CublasNotInitialized,
            ("CUDNN" | "MIOPEN", true) => Kind::Cudnn,
            ("CUDNN" | "MIOPEN", false) => Kind::CudnnNotInitialized,
            (_, true) => Kind::OtherLibrary,
            // Other libraries do not report a lack of memory this way.
            (_, false) => continue,
        };
        let mut message = Message::new(kind, start, end);
        if let Some(call) = found.get(4) {
            let call = call.as_str().chars().take(120).collect();
            message.figures.add("call", FigureValue::Text(call));
        }
        if let Some(library) = caller {
            let name = FigureValue::Text(library.to_owned());
            message.figures.add(LIBRARY, name);
        }
        messages.push(message);
    }
    for found in NUMBERED.printed(text) {
        let (start, end) = range(&found);
        let kind = match (found[1].to_ascii_uppercase().as_str(), &found[2]) {
            ("CUBLAS", "3") => Kind::Cublas,
            ("CUBLAS", "1") => Kind::CublasNotInitialized,
            ("CUDNN", "2") => Kind::Cudnn,
            ("CUDNN", "1" | "4") => Kind::CudnnNotInitialized,
            ("CUFFT" | "CUSOLVER" | "CUSPARSE", "2") => Kind::OtherLibrary,
            _ => continue,
        };
        let mut message = Message::new(kind, start, end);
        if let Some(library) = caller {
            let name = FigureValue::Text(library.to_owned());
            message.figures.add(LIBRARY, name);
        }
        messages.push(message);
    }
    for (pattern, kind) in [
        (&NO_ALGORITHM, Kind::CudnnNoAlgorithm),
        (&WORKSPACE, Kind::CudnnWorkspace),
    ] {
        for found in pattern.printed(text) {
            let (start, end) = range(&found);
            messages.push(Message::new(kind, start, end));
        }
    }
    messages
}
