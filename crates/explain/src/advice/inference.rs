//! Advice for programs that use a model and do not train it.

use super::{Advice, Advisor, Effect};
use crate::program::Tool;

impl Advisor<'_> {
    /// What each tool offers to save memory; general advice for a script of one's own.
    pub fn inference(&self, tool: Option<Tool>, is_windows: bool) -> Vec<Advice> {
        match tool {
            Some(Tool::Diffusers) => self.diffusers(),
            Some(Tool::ComfyUi) => self.comfy_ui(),
            Some(Tool::WebUi) => self.web_ui(is_windows),
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

    fn comfy_ui(&self) -> Vec<Advice> {
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

    fn web_ui(&self, is_windows: bool) -> Vec<Advice> {
        let arguments = |value: &str| match is_windows {
            true => format!("set COMMANDLINE_ARGS={value}"),
            false => format!("export COMMANDLINE_ARGS=\"{value}\""),
        };
        vec![
            self.advise("webui-medvram", arguments("--medvram --xformers")),
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
