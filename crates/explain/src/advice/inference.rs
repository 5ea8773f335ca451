//! Advice for programs that use a model and do not train it.

use super::{Advice, Advisor, Effect};
use crate::program::Tool;

impl Advisor<'_> {
    /// What each tool offers to save memory; general advice for a script of one's own.
    pub fn inference(&self, tool: Option<Tool>, is_windows: bool, is_mac: bool) -> Vec<Advice> {
        match tool {
            Some(Tool::Diffusers) => self.diffusers(),
            Some(Tool::ComfyUi) => self.comfy_ui(is_mac),
            Some(Tool::InvokeAi) => self.invoke_ai(),
            Some(Tool::Fooocus) => self.fooocus(),
            Some(Tool::TextWebUi) => self.text_web_ui(),
            Some(Tool::WebUi) => self.web_ui(is_windows, is_mac),
            Some(Tool::Whisper) => self.whisper(),
            Some(Tool::Vllm) => self.vllm(),
            Some(Tool::Sglang) => self.sglang(false),
            Some(Tool::Tgi) => self.tgi(),
            Some(Tool::Transformers) => self.transformers(),
            None => self.own_script(),
        }
    }

    fn diffusers(&self) -> Vec<Advice> {
        vec![
            self.advise("offload-pipeline", "pipe.enable_model_cpu_offload()"),
            self.advise(
                "half-pipeline",
                "DiffusionPipeline.from_pretrained(name, torch_dtype=torch.bfloat16)",
            )
            .with_effect(Effect::Precision),
            self.advise("tiling", "pipe.vae.enable_tiling(); pipe.vae.enable_slicing()")
                .with_effect(Effect::Rounding),
            self.advise(
                "quantised-pipeline",
                "PipelineQuantizationConfig(quant_backend=\"bitsandbytes_4bit\", components_to_quantize=[\"transformer\"])",
            )
            .with_effect(Effect::Precision),
            self.advise(
                "smaller-image",
                "pipe(prompt, height=512, width=512, num_images_per_prompt=1)",
            )
            .with_effect(Effect::Service),
        ]
    }

    fn comfy_ui(&self, is_mac: bool) -> Vec<Advice> {
        // There is no other memory to move weights to, and no 8-bit floats.
        if is_mac {
            return vec![
                self.advise("comfy-split", "python main.py --use-split-cross-attention")
                    .with_effect(Effect::Rounding),
                self.advise(
                    "smaller-image",
                    "Empty Latent Image: 768 x 768, batch_size 1",
                )
                .with_effect(Effect::Service),
                self.advise("comfy-tiled", "VAE Decode (Tiled): tile_size 512")
                    .with_effect(Effect::Rounding),
            ];
        }
        vec![
            self.advise("comfy-lowvram", "python main.py --lowvram"),
            self.advise("comfy-fp8", "python main.py --fp8_e4m3fn-unet")
                .with_effect(Effect::Precision),
            self.advise("comfy-tiled", "VAE Decode (Tiled): tile_size 512")
                .with_effect(Effect::Rounding),
            self.advise(
                "smaller-image",
                "Empty Latent Image: 768 x 768, batch_size 1",
            )
            .with_effect(Effect::Service),
            self.advise("comfy-reserve", "python main.py --reserve-vram 1.0"),
        ]
    }

    fn invoke_ai(&self) -> Vec<Advice> {
        vec![
            self.advise(
                "invoke-partial",
                "invokeai.yaml: enable_partial_loading: true",
            ),
            self.advise("smaller-image", "1024 x 1024, one image")
                .with_effect(Effect::Service),
            self.advise("invoke-tiles", "invokeai.yaml: force_tiled_decode: true")
                .with_effect(Effect::Rounding),
            self.advise("invoke-cache", "invokeai.yaml: device_working_mem_gb: 4"),
        ]
    }

    fn fooocus(&self) -> Vec<Advice> {
        vec![
            self.advise("fooocus-lowvram", "python launch.py --always-low-vram"),
            self.advise("smaller-image", "896 x 1152, image number 1")
                .with_effect(Effect::Service),
            self.advise("fooocus-fp8", "python launch.py --unet-in-fp8-e4m3fn")
                .with_effect(Effect::Precision),
        ]
    }

    fn text_web_ui(&self) -> Vec<Advice> {
        vec![
            self.advise(
                "lower-quantisation",
                "Model > a GGUF or EXL3 file of 4 bits",
            )
            .with_effect(Effect::Precision),
            self.advise("fewer-layers", "python server.py --gpu-layers 20")
                .with_effect(Effect::Rounding),
            self.advise("shorter-context", "python server.py --ctx-size 8192")
                .with_effect(Effect::Service),
            self.advise("eight-bit-cache", "python server.py --cache-type q8_0")
                .with_effect(Effect::Precision),
        ]
    }

    /// A model that is used, and does not fit by itself.
    pub fn smaller_weights(&self) -> Vec<Advice> {
        vec![
            self.advise("half-pipeline", "model = model.to(torch.bfloat16)")
                .with_effect(Effect::Precision),
            self.advise("hf-quantised", "BitsAndBytesConfig(load_in_4bit=True)")
                .with_effect(Effect::Precision),
            self.advise(
                "hf-device-map",
                "from_pretrained(name, device_map=\"auto\")",
            ),
            self.advise("smaller-model", "from_pretrained(\"SMALLER\")")
                .with_effect(Effect::Precision),
        ]
    }

    /// Where the log does not tell whether something is trained.
    pub fn no_graph(&self) -> Advice {
        self.advise("no-graph", "with torch.inference_mode(): out = model(x)")
    }

    fn web_ui(&self, is_windows: bool, is_mac: bool) -> Vec<Advice> {
        let arguments = |value: &str| match is_windows {
            true => format!("set COMMANDLINE_ARGS={value}"),
            false => format!("export COMMANDLINE_ARGS=\"{value}\""),
        };
        vec![
            // xformers needs CUDA.
            self.advise(
                "webui-medvram",
                arguments(match is_mac {
                    true => "--medvram --opt-split-attention-v1",
                    false => "--medvram --xformers",
                }),
            ),
            self.advise("webui-size", "512 x 512")
                .with_effect(Effect::Service),
            self.advise("webui-attention", arguments("--opt-sdp-attention"))
                .with_effect(Effect::Rounding),
            self.advise("webui-half", arguments("--medvram"))
                .with_effect(Effect::Precision),
        ]
    }

    fn whisper(&self) -> Vec<Advice> {
        vec![
            self.advise("whisper-smaller", "whisper audio.mp3 --model medium")
                .with_effect(Effect::Precision),
            self.advise(
                "whisper-int8",
                "WhisperModel(\"large-v3\", device=\"cuda\", compute_type=\"int8_float16\")",
            )
            .with_effect(Effect::Precision),
            self.advise("whisper-beam", "model.transcribe(audio, beam_size=1)")
                .with_effect(Effect::Precision),
            self.advise("whisper-free", "nvidia-smi"),
        ]
    }

    fn transformers(&self) -> Vec<Advice> {
        vec![
            self.advise(
                "hf-half",
                "AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16)",
            )
            .with_effect(Effect::Precision),
            self.advise("hf-quantised", "BitsAndBytesConfig(load_in_4bit=True)")
                .with_effect(Effect::Precision),
            self.advise(
                "hf-cache",
                "model.generate(**inputs, max_new_tokens=256, cache_implementation=\"offloaded\")",
            )
            .with_effect(Effect::Service),
            self.advise(
                "hf-few-prompts",
                "for prompt in prompts: model.generate(...)",
            )
            .with_effect(Effect::Rounding),
            self.advise(
                "hf-device-map",
                "from_pretrained(name, device_map=\"auto\")",
            ),
        ]
    }

    fn own_script(&self) -> Vec<Advice> {
        vec![
            self.advise(
                "inference-mode",
                "with torch.inference_mode(): out = model(x)",
            ),
            self.advise("half-pipeline", "model = model.to(torch.bfloat16)")
                .with_effect(Effect::Precision),
            self.advise("few-inputs", "for x in inputs: model(x[None])")
                .with_effect(Effect::Rounding),
            self.advise("smaller-input", "F.interpolate(image, scale_factor=0.5)")
                .with_effect(Effect::Service),
            self.advise("smaller-model", "from_pretrained(\"SMALLER\")")
                .with_effect(Effect::Precision),
        ]
    }
}
