//! NVIDIA's libraries that came with torch: which ones are there, and in which version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One shared library found beside torch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLibrary {
    /// `cuDNN`.
    pub name: &'static str,
    pub file: PathBuf,
    /// The version of its package, such as `9.19.0.56`.
    pub version: Option<String>,
}

/// Each library with the prefix of its file and the prefix of its package.
const KNOWN: [(&str, &str, &str); 9] = [
    ("CUDA runtime", "libcudart.so", "nvidia_cuda_runtime"),
    ("cuBLAS", "libcublas.so", "nvidia_cublas"),
    ("cuDNN", "libcudnn.so", "nvidia_cudnn"),
    ("NCCL", "libnccl.so", "nvidia_nccl"),
    ("cuSPARSE", "libcusparse.so", "nvidia_cusparse"),
    ("cuSOLVER", "libcusolver.so", "nvidia_cusolver"),
    ("cuFFT", "libcufft.so", "nvidia_cufft"),
    ("cuRAND", "libcurand.so", "nvidia_curand"),
    ("NVRTC", "libnvrtc.so", "nvidia_cuda_nvrtc"),
];

/// Looks for the libraries in torch's own folder and in the `nvidia` packages beside it.
pub fn cuda_libraries(torch_dir: &Path) -> Vec<FoundLibrary> {
    let site_packages = torch_dir.parent().unwrap_or(torch_dir);
    let mut folders = vec![torch_dir.join("lib")];
    folders.extend(
        names_in(&site_packages.join("nvidia"))
            .keys()
            .map(|name| site_packages.join("nvidia").join(name).join("lib")),
    );
    let files: Vec<(String, PathBuf)> =
        folders.iter().flat_map(|folder| names_in(folder)).collect();
    let packages = names_in(site_packages);
    KNOWN
        .iter()
        .filter_map(|&(name, file_start, package_start)| {
            let (_, file) = files
                .iter()
                .find(|(file_name, _)| file_name.starts_with(file_start))?;
            Some(FoundLibrary {
                name,
                file: file.clone(),
                version: package_version(&packages, package_start),
            })
        })
        .collect()
}

/// The version in a folder name such as `nvidia_cudnn_cu13-9.19.0.56.dist-info`.
fn package_version(packages: &BTreeMap<String, PathBuf>, start: &str) -> Option<String> {
    packages.keys().find_map(|folder| {
        let (package, version) = folder.strip_suffix(".dist-info")?.split_once('-')?;
        let suffix = package.strip_prefix(start)?;
        (suffix.is_empty() || suffix.starts_with("_cu")).then(|| version.to_owned())
    })
}

fn names_in(folder: &Path) -> BTreeMap<String, PathBuf> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_both_wheel_layouts() {
        let site = tempfile::tempdir().expect("folder");
        for file in [
            "torch/lib/libtorch_cuda.so",
            "nvidia/cu13/lib/libcudart.so.13",
            "nvidia/cudnn/lib/libcudnn.so.9",
            "nvidia/cusparselt/lib/libcusparseLt.so.0",
            "nvidia_cuda_runtime-13.0.96.dist-info/METADATA",
            "nvidia_cudnn_cu13-9.19.0.56.dist-info/METADATA",
            "nvidia_cudnn_frontend-1.2.dist-info/METADATA",
        ] {
            let path = site.path().join(file);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            std::fs::write(path, "").expect("file");
        }
        let found: Vec<(&str, Option<String>)> = cuda_libraries(&site.path().join("torch"))
            .into_iter()
            .map(|library| (library.name, library.version))
            .collect();
        assert_eq!(
            found,
            [
                ("CUDA runtime", Some("13.0.96".to_owned())),
                ("cuDNN", Some("9.19.0.56".to_owned())),
            ]
        );
    }
}
