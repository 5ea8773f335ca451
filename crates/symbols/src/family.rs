//! Which of NVIDIA's libraries a symbol belongs to, told by its name.

/// One of the libraries that the stand-in answers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    Runtime,
    Driver,
    Cublas,
    CublasLt,
    Cudnn,
    Cusparse,
    CusparseLt,
    Cusolver,
    Cufft,
    Curand,
    Nvrtc,
    Nccl,
    Nvml,
    Cupti,
    Cufile,
    Nvshmem,
    Nvjpeg,
    NvJitLink,
}

/// How the names of a family begin. The first match counts, so longer prefixes come first.
///
/// `true`: an upper-case letter must follow. It keeps CUDA's `cuInit` apart from LAPACK's `cungqr_`
/// and `cudaFree` apart from a program's own `cuda_free`.
const PREFIXES: [(&str, bool, Family); 18] = [
    ("__cuda", true, Family::Runtime),
    ("cudnn", true, Family::Cudnn),
    ("cuda", true, Family::Runtime),
    ("cublasLt", true, Family::CublasLt),
    ("cublas", true, Family::Cublas),
    ("cusparseLt", true, Family::CusparseLt),
    ("cusparse", true, Family::Cusparse),
    ("cusolver", true, Family::Cusolver),
    ("cufft", true, Family::Cufft),
    ("curand", true, Family::Curand),
    ("cupti", true, Family::Cupti),
    ("cuFile", true, Family::Cufile),
    ("nvrtc", true, Family::Nvrtc),
    ("nccl", true, Family::Nccl),
    ("nvml", true, Family::Nvml),
    ("nvshmem", false, Family::Nvshmem),
    ("nvjpeg", true, Family::Nvjpeg),
    ("nvJitLink", false, Family::NvJitLink),
];

impl Family {
    /// The library's name as its documentation writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runtime => "CUDA runtime",
            Self::Driver => "CUDA driver",
            Self::Cublas => "cuBLAS",
            Self::CublasLt => "cuBLASLt",
            Self::Cudnn => "cuDNN",
            Self::Cusparse => "cuSPARSE",
            Self::CusparseLt => "cuSPARSELt",
            Self::Cusolver => "cuSOLVER",
            Self::Cufft => "cuFFT",
            Self::Curand => "cuRAND",
            Self::Nvrtc => "NVRTC",
            Self::Nccl => "NCCL",
            Self::Nvml => "NVML",
            Self::Cupti => "CUPTI",
            Self::Cufile => "cuFile",
            Self::Nvshmem => "NVSHMEM",
            Self::Nvjpeg => "nvJPEG",
            Self::NvJitLink => "nvJitLink",
        }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The library that a symbol of this name belongs to, or `None` when it is not CUDA's.
pub fn family_of(symbol: &str) -> Option<Family> {
    for (prefix, needs_capital, family) in PREFIXES {
        if let Some(rest) = symbol.strip_prefix(prefix)
            && (!needs_capital || begins_with_capital(rest))
        {
            return Some(family);
        }
    }
    let rest = symbol.strip_prefix("cu")?;
    begins_with_capital(rest).then_some(Family::Driver)
}

/// The name belongs to one of the CUDA libraries, whether or not the table knows it.
pub fn is_cuda_symbol(symbol: &str) -> bool {
    family_of(symbol).is_some()
}

fn begins_with_capital(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_library() {
        let cases = [
            ("cudaMalloc", Some(Family::Runtime)),
            ("__cudaRegisterFatBinary", Some(Family::Runtime)),
            ("cudaProfilerStart", Some(Family::Runtime)),
            ("cuMemCreate", Some(Family::Driver)),
            ("cuFileRead", Some(Family::Cufile)),
            ("cublasSgemm_v2", Some(Family::Cublas)),
            ("cublasLtMatmul", Some(Family::CublasLt)),
            ("cudnnCreate", Some(Family::Cudnn)),
            ("cusparseSpMM", Some(Family::Cusparse)),
            ("cusparseLtInit", Some(Family::CusparseLt)),
            ("cuptiSubscribe", Some(Family::Cupti)),
            ("nvshmem_malloc", Some(Family::Nvshmem)),
            ("nvshmemx_get_uniqueid", Some(Family::Nvshmem)),
            ("nvmlInit_v2", Some(Family::Nvml)),
        ];
        for (symbol, expected) in cases {
            assert_eq!(family_of(symbol), expected, "{symbol}");
        }
    }

    #[test]
    fn names_of_others_are_not_taken_for_cudas() {
        for symbol in [
            "cungqr_",
            "cunmqr_",
            "curl_easy_init",
            "cuda_free",
            "custom",
            "cu",
            "cuda",
            "malloc",
            "_ZN2at4cuda11getStreamEv",
            "nvtxRangePushA",
            "cublas",
        ] {
            assert!(!is_cuda_symbol(symbol), "{symbol}");
        }
    }
}
