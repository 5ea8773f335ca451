//! Programs that draw, encode or search on a card, and the interfaces they use: renderers, video encoders,
//! hashcat, OpenCL, Vulkan and Direct3D.

use super::other_allocators::message;
use super::{Family, Message, Pattern, pattern};
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "out of GPU memory",
        "out of GPU and shared",
        "Out of memory in ",
        "could not allocate buffer",
        "allocate texture buffer",
        "(out-of-mem",
        "of available device memory",
        "allocatable device memory",
        "CL_MEM_OBJECT_ALLOCATION",
        "Memory Object Allocation",
        "out of memory (10)",
        "NVENC indicates",
        "cuvid",
        "VK_ERROR_OUT_OF_DEVICE",
        "vkAllocateMemory",
        "clCreateBuffer",
        "clEnqueue",
        "OutOfDeviceMemory",
        "Out of video memory",
        "E_OUTOFMEMORY",
        "8007000e",
        "wgpu error",
        "not enough memory left",
        "Out of memory on device",
        "GPU failed to allocate memory",
        "Maximum variable size allowed",
        "设备内存不足",
        "enough VRAM",
        "allocate VRAM",
        "nsufficient VRAM",
    ],
    read,
};

/// Groups: `asked` and `free`, as far as a message gives them.
const OWN_WORDS: [(&str, &Pattern); 13] = [
    ("Blender", &BLENDER),
    ("V-Ray", &VRAY),
    ("Iray", &IRAY),
    ("Redshift", &REDSHIFT),
    ("hashcat", &HASHCAT),
    ("OpenCL", &OPENCL),
    ("NVENC", &NVENC),
    ("NVDEC", &NVDEC),
    ("Vulkan", &VULKAN),
    ("ncnn", &NCNN),
    ("WebGPU", &WEB_GPU),
    ("Direct3D", &DIRECT_3D),
    ("MATLAB", &MATLAB),
];

pattern!(
    BLENDER,
    r"SystemisoutofGPU(?:andsharedhost)?memory|Outofmemoryin(?:cu|hip|optix)\w{2,40}\("
);
pattern!(
    VRAY,
    r"couldnotallocatebufferofsize(?P<asked>\d+)|Couldnotallocatetexturebufferondevice|unabletoallocateenoughmemorytoperformtherequestedoperation\(out-of-mem"
);
pattern!(
    IRAY,
    r"Unabletoallocate(?P<asked>{A})from(?P<free>{A})ofavailabledevicememory"
);
pattern!(
    REDSHIFT,
    r"(?:Couldnotallocate|Failedtoallocate|Outof|Insufficient|Notenough)(?:enough)?(?:free)?(?:GPU)?VRAM"
);
pattern!(
    HASHCAT,
    r"Notenoughallocatabledevicememory(?:forthisattack|orfreehostmemory)?"
);
pattern!(
    OPENCL,
    r"CL_MEM_OBJECT_ALLOCATION_FAILURE|MemoryObjectAllocationFailure|\bcl(?:CreateBuffer|CreateImage|Enqueue\w{4,30}?)(?:failed|returned|error)?(?:with)?(?:code|error)?[:(=]{0,2}-(?:4|61)(?:[^0-9.]|$)"
);
pattern!(
    NVENC,
    r"(?:OpenEncodeSessionEx|CreateBitstreamBuffer|CreateInputBuffer|InitializeEncoder)failed:outofmemory\(10\)|NVENCindicatesthattheAPIcallfailedbecauseitwasunabletoallocateenoughmemory"
);
pattern!(
    NVDEC,
    r"cuvid\w{1,40}?(?:2|failed->|failed:)?\(?CUDA_ERROR_OUT_OF_MEMORY\)?"
);
pattern!(
    VULKAN,
    r"VK_ERROR_OUT_OF_DEVICE_MEMORY|vk::OutOfDeviceMemoryError|vk::Device::[a-z]{4,40}:ErrorOutOfDeviceMemory"
);
// Upscalers and interpolators of pictures: the number is Vulkan's.
pattern!(NCNN, r"vkAllocateMemoryfailed[:(]?-2(?:[^0-9.]|$)");
pattern!(
    DIRECT_3D,
    r"Outofvideomemorytryingtoallocatearenderingresource|E_OUTOFMEMORY|(?:d3d|dxgi|direct3d|rendertexture)[^\n]{0,300}?8007000e"
);
// Rust's `wgpu`, in browsers and programs.
pattern!(
    WEB_GPU,
    r"wgpuerror:OutofMemory|wgpuerror:ValidationError(?s:.{0,160}?)Notenoughmemoryleft|Queue::submit:notenoughmemoryleft"
);
pattern!(
    MATLAB,
    r"设备内存不足。要查看有关设备|Outofmemoryondevice\.(?:Toviewmoredetailaboutavailablememory|Youneedatleast)?|TheGPUfailedtoallocatememory\.?Tocontinue,resettheGPU|Maximumvariablesizeallowedonthedeviceisexceeded"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    // hashcat passes on what OpenCL says.
    let is_hashcat = || {
        let text = text.to_ascii_lowercase();
        text.contains("hashcat") || text.contains("mballocatable")
    };
    let is_redshift = || text.to_ascii_lowercase().contains("redshift");
    let mut messages = Vec::new();
    for (library, pattern) in OWN_WORDS {
        for found in pattern.printed(text) {
            let library = match library {
                // llama.cpp's own reader knows more.
                "Vulkan" if text.contains("ggml_vulkan") => continue,
                "OpenCL" if is_hashcat() => "hashcat",
                "OpenCL" if text.contains("LightGBM") => "LightGBM",
                // Others say so in a hint.
                "Redshift" if !is_redshift() => continue,
                library => library,
            };
            messages.push(message(library, &found));
        }
    }
    messages
}
