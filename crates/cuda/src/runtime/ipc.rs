//! Sharing device memory between processes is refused: there are no bytes to share.

use super::errors::NOT_SUPPORTED;

crate::refused! { "CUDA runtime", NOT_SUPPORTED;
    cudaIpcGetMemHandle, cudaIpcOpenMemHandle, cudaIpcCloseMemHandle, cudaIpcGetEventHandle,
    cudaIpcOpenEventHandle,
}
