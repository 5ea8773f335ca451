//! nvJPEG, which torchvision uses for `decode_jpeg(…, device="cuda")`: refused. The size of a decoded
//! picture depends on the file, and the library's own memory on the card has not been measured.
//!
//! Names written from NVIDIA's public documentation "nvJPEG", release 13.0.

use crate::refused;

/// `NVJPEG_STATUS_NOT_INITIALIZED`: torchvision then reports that the decoder could not be made.
const NOT_INITIALIZED: i32 = 1;

refused! {
    "nvJPEG", NOT_INITIALIZED;
    nvjpegBufferDeviceCreate, nvjpegBufferPinnedCreate, nvjpegCreateEx, nvjpegCreateSimple,
    nvjpegDecodeBatched, nvjpegDecodeBatchedInitialize, nvjpegDecodeBatchedSupported,
    nvjpegDecodeJpegDevice, nvjpegDecodeJpegHost, nvjpegDecodeJpegTransferToDevice,
    nvjpegDecodeParamsCreate, nvjpegDecodeParamsSetOutputFormat, nvjpegDecoderCreate,
    nvjpegDecoderStateCreate, nvjpegEncodeImage, nvjpegEncodeRetrieveBitstreamDevice,
    nvjpegEncoderParamsCreate, nvjpegEncoderParamsSetQuality,
    nvjpegEncoderParamsSetSamplingFactors, nvjpegEncoderStateCreate, nvjpegGetImageInfo,
    nvjpegGetProperty, nvjpegJpegStateCreate, nvjpegJpegStreamCreate, nvjpegJpegStreamParse,
    nvjpegJpegStreamParseHeader, nvjpegStateAttachDeviceBuffer, nvjpegStateAttachPinnedBuffer,
}
