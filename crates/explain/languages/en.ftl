# What `ghostgpu explain` says, in English. One message for each sentence; `.why` is the reason for a piece of
# advice, and `.remark` stands behind its command.


## What failed

kind-cuda-allocator = PyTorch's allocator got no more memory from the CUDA driver
kind-cuda-malloc-async = PyTorch with cudaMallocAsync got no more memory from CUDA
kind-cuda-absurd-size = a single request to PyTorch was for more than 2^60 bytes
kind-cuda-rejected = PyTorch refused a request that would have exceeded its own limit
kind-hip-allocator = PyTorch's allocator got no more memory from the ROCm driver
kind-xpu-allocator = PyTorch's allocator got no more memory from the Intel GPU
kind-npu-allocator = PyTorch's allocator got no more memory from the Ascend NPU
kind-mps-allocator = PyTorch reached its limit of the Mac's unified memory
kind-mlx = MLX got no more of the Mac's unified memory
kind-cpu-allocator = PyTorch ran out of host memory (not the GPU's)
kind-python-memory = Python ran out of host memory (not the GPU's)
kind-cuda-call = a CUDA call outside PyTorch's allocator ran out of memory on the card
kind-cuda-mapping = the driver could not map memory for an expandable segment
kind-cublas = cuBLAS ran out of memory on the card
kind-cublas-not-initialized = cuBLAS could not start: usually because the card is out of memory
kind-cudnn = cuDNN ran out of memory on the card
kind-cudnn-not-initialized = cuDNN could not start: usually because the card is out of memory
kind-cudnn-no-algorithm = no convolution algorithm could run: usually because its workspace does not fit
kind-cudnn-workspace = cuDNN requested a workspace of 1 TiB or more
kind-other-library = a CUDA library ran out of memory on the card
kind-nccl = NCCL ran out of memory on the card
kind-nccl-duplicate = NCCL refused two ranks on one card
kind-pinned-memory = pinned host memory ran out (not the GPU's)
kind-host-kill = Linux killed the process: the machine ran out of RAM (not GPU memory)
kind-host-kill-likely = the process was killed with signal 9: most likely the machine ran out of RAM
kind-job-limit = the job was killed: it reached its RAM limit (not the GPU's)
kind-data-loader-killed = a DataLoader worker was killed: most likely the machine ran out of RAM
kind-shared-memory = shared memory (/dev/shm) ran out, not the GPU's memory
kind-page-file = Windows has no memory left: RAM and page file are used up (not the GPU's)
kind-jax = JAX ran out of memory on the device
kind-tensor-flow = TensorFlow ran out of memory for a tensor
kind-tensor-flow-host = TensorFlow ran out of host memory (not the GPU's)
kind-bfc-allocator = TensorFlow's or XLA's allocator ran out of memory
kind-vllm-no-cache = vLLM has no memory left for its KV cache
kind-vllm-sequence = vLLM's KV cache is too small for one sequence of maximum length
kind-vllm-not-free = less memory is free than vLLM is configured to use
kind-vllm-sampler = vLLM ran out of memory while warming up its sampler
kind-sglang-no-cache = SGLang has no memory left for its KV cache
kind-tgi-warmup = TGI's warm-up with full batches does not fit on the card
kind-llama-cpp = llama.cpp could not allocate one of its buffers on the card
kind-llama-cpp-host = llama.cpp could not allocate one of its buffers in RAM (not on the GPU)
kind-ollama-memory = the model needs more RAM than is free (not the GPU's)
kind-other-allocator = a library with its own allocator ran out of memory on the card
kind-of-library = { $library } ran out of memory on the card
kind-cupy = CuPy ran out of memory on the card
kind-paddle = PaddlePaddle ran out of memory on the card
kind-kernel-shared-memory = a Triton kernel needs more shared memory than a multiprocessor has (not GPU memory)
kind-dispatched-elsewhere = a quantized model does not fit on the card and cannot be split with the CPU
kind-unsaid = something ran out of memory; the message does not say which memory
kind-uncertain = { $title } (it can have other causes)

## Situations

situation-one-large-request = one large request with little memory left
situation-fragmentation = fragmentation: PyTorch's cache has room, but in pieces that are too small
situation-other-process = another process holds part of the card's memory
situation-model-does-not-fit = the model alone does not fit
situation-optimizer-state = the optimizer state does not fit next to the model
situation-activations = activations fill the card: they grow with the batch size
situation-evaluation = evaluation, not training, needs too much memory
situation-growth = memory grows from step to step
situation-shape-bug = a request larger than the card: most likely a wrong shape
situation-fraction-limit = the process reached its own limit, not the card's
situation-free-but-refused = the driver refused although enough memory was free
situation-outside-the-allocator = no memory left outside PyTorch for CUDA's libraries
situation-host-memory = host memory (RAM) ran out, not the GPU's
situation-shared-memory = shared memory (/dev/shm) ran out, not the GPU's
situation-pinned-memory = pinned host memory ran out, not the GPU's
situation-kernel-shared-memory = a kernel needs more on-chip memory than the card has, not more GPU memory
situation-serving-cache = the server's KV cache does not fit
situation-framework-pool = the framework's GPU memory pool is exhausted
situation-full = the card is full
situation-ranks-on-one-card = two ranks use the same card
situation-unsaid = memory ran out; the message does not say which

## Reasons: PyTorch's allocator

request-exceeds-card = a single request for { $requested } exceeds the whole card ({ $total }): no setting can satisfy it
request-exceeds-any-card = a single request for { $requested } is more than any card has: no setting can satisfy it
while-model-moved = it failed while the model was moved to the card
likely = likely { $suspect }
over-own-limit = { $held } reserved + { $requested } requested exceeds the limit of { $allowed } that the process set itself
card-still-free = the card still had { $free } free
not-full = { $requested } requested with { $free } free: the card was not full
refused-rocm = with ROCm, this happens when host memory is short or the driver's address space is fragmented
refused-intel = an Intel GPU borrows host memory, and a single allocation is limited (4 GiB without special flags)
refused-windows = on Windows, RAM and page file must back every allocation on the card, and they ran out
refused-wsl = in WSL, Windows must back the card's memory with RAM, and WSL has only part of it
refused-unknown = another process held it at that moment, RAM and page file were short (Windows, WSL), or the card is partitioned
lent-by-windows = { $allocated } was allocated on a card of { $total }: the driver on Windows (and WSL) lends RAM when the card is full, which is slow, and that ran out too
series-rises = `{ $name }` in the log rises from { $first } (line { $from }) to { $last } (line { $to }) and hardly ever falls
failed-repeatedly = it ran out of memory at least { $times } times, with { $first } allocated the first time and { $last } the last
steps-fitted = { $step } steps with the same model and optimizer fitted before this one
perhaps-kept = if all batches have the same shape, something is kept from step to step; the log prints no memory figures to confirm it
failed-after-step-of = it failed after step { $step } of { $of }
failed-after-step = it failed after step { $step }
failed-in-epoch = it failed in epoch { $epoch }
cached-in-pieces = { $cached } of { $reserved } reserved ({ $percent } %) is cached and unused; with { $free } free, that is more than the { $requested } requested
pieces-between-tensors = PyTorch freed every unused segment before it raised the error: the rest is in pieces between tensors in use
allocated-by-then = { $allocated } was allocated by then
allocated-by-then-share = { $allocated } was allocated by then, { $percent } % of the card
before-first-batch = it failed while the model was moved to the card, before the first batch
model-failed-to-load = the program says itself that the model failed to load
optimizer-first-step = it failed in the optimizer's first step, which allocates its state (Adam: twice the size of the parameters) on top of weights and gradients
evaluation-place = the traceback goes through evaluation, to `{ $function }` in { $file }:{ $line }
evaluation-bar = the progress bar counts evaluation batches
evaluation-causes = when training fits and evaluation does not, the usual causes are outputs kept on the card, a larger batch, longer samples or a missing no_grad()
large-share = a single request for { $requested } is { $percent } % of the card
large-share-free = a single request for { $requested } is { $percent } % of the card, and { $free } was free
already-allocated = { $allocated } ({ $percent } %) was already allocated
training-tensors = tensors in use during training take { $allocated } of { $total } ({ $percent } %), and the request that failed was for { $requested }
in-backward = it failed in the backward pass, when activations and gradients are alive together
larger-or-grew = { $steps }: the model and earlier batches fitted, so this batch was larger or longer, or memory grew
in-use = tensors in use take { $allocated } of { $total } ({ $percent } %); a request for { $requested } did not fit
rest-missing = { $requested } requested; the rest of the message is missing
no-figures = the message gives no figures
small-segment = 2.00 MiB is the segment size for requests up to 1 MiB
medium-segment = 20.00 MiB is the segment size for requests from 1 to 10 MiB
cache-not-enough = only { $cached } was cached and unused: even all of it would not have been enough, so fragmentation is not the cause
cache-in-small-pieces = the { $cached } that was cached would have been enough, but not in one piece; with the card this full, the next request would have failed
others-hold = other processes hold { $others } of { $total } ({ $percent } %): { $list }
process-holds = process { $pid } holds { $used }
without-them = without them, { $free } would have been free
rest-is-others = { $total } in total - { $free } free - { $reserved } reserved by this PyTorch leaves { $outside }, and a CUDA context takes 0.3 to 0.8 GiB
rest-unnamed = the rest is another process, another rank on the same card, or a display (this older message names none)
ranks-share-card = { $count } ranks report GPU { $device } with { $total }, and together they hold { $sum }: they share one card
others-hold-little = other processes hold { $others }; with the { $free } free, that is more than the { $requested } requested: without them this request would have fitted, the next may not
ranks-by-mistake = { $count } of them hold no more than a context: ranks that opened this card by mistake (call torch.cuda.set_device(local_rank) before anything else)
ranks-alike = { $count ->
    [one] one of them holds about as much as this one: perhaps another rank on the same card
   *[other] { $count } of them hold about as much as this one: perhaps several ranks on one card
}

## Reasons: elsewhere

no-card-has-it = no card has that much memory
rejected = the request would have exceeded per_process_memory_fraction, and throw_on_cudamalloc_oom is on: it never reached the driver
more-than-machines-have = a single request for { $requested } is more than most machines have
ram-requested = { $requested } of RAM was requested; the GPU is not involved
ram-requested-unknown = RAM was requested; the GPU is not involved
array-shape = for an array of shape { $shape }
kernel-says-so = the kernel says so itself: RAM was exhausted, and it killed this process
job-limit = the job reached its RAM limit, set by a batch system, a container or Ray
worker-died = a worker that dies without a message was most likely killed by the kernel's OOM killer
only-signal-nine = the log shows only signal 9; unless someone typed `kill -9`, that was the kernel's OOM killer or a batch system's limit (check `dmesg -T | grep -i oom`)
resident = the process had { $resident } in RAM
shm-full = DataLoader workers pass batches through /dev/shm, and it is full (containers have 64 MiB by default)
pinned-is-ram = CUDA also reports `out of memory` for pinned memory, which is host RAM
to-be-pinned = { $requested } was to be pinned
pinned-fallback = llama.cpp goes on with ordinary memory; this alone does not end it
page-file-full = every program's memory must fit into RAM and page file together; PyTorch's CUDA libraries reserve several GiB in every process that imports it
mac-limit = PyTorch reached its limit of unified memory
mac-holds = PyTorch holds { $allocated } of the { $allowed } it may use
mac-others = other GPU allocations, by this process and other programs, take { $other }
metal-buffer = a single buffer of { $requested } was requested, and Metal allows { $allowed }
metal-buffer-unknown = a single buffer of { $requested } was requested
kernel-needs = one block of the kernel needs { $requested } bytes of on-chip memory, and this card has { $limit }
kernel-decides = the kernel's block sizes and the card decide this, not the batch size or the model
vllm-share-used = the weights and the profiling run used up vLLM's share of the card (gpu_memory_utilization)
vllm-not-free = { $free } of { $total } was free at startup, and vLLM was to use { $requested }
vllm-dummy-requests = the profiling run with many dummy requests did not fit
sglang-share-used = the weights used up SGLang's share of the card (--mem-fraction-static)
tgi-tokens = the warm-up runs a full batch of { $tokens } tokens, and it did not fit
sequence-needs = one sequence of maximum length needs { $requested } of KV cache, and { $free } is left
sequence-needs-more = one sequence of maximum length needs more KV cache than is left
length-that-fits = the maximum length is { $length } tokens, and { $fits } would fit
one-request-failed = a single request for { $requested } failed: the card had no more
llama-at-startup = layers on the card, KV cache and scratch space are allocated at startup: reduce any of them
llama-in-ram = weights that are not on the card, the KV cache and scratch space are in RAM: reduce any of them
ollama-needs = the model needs { $requested } of RAM beside what goes to the card, and { $free } is free
placed-on-cpu = accelerate placed some layers on the CPU because the card had no room, and quantized layers cannot run there
request-without-room = { $requested } requested, and the card had no more
request-with-free = { $requested } requested, and { $free } was free
of-which-used = { $used } of { $limit } was in use
figures-missing = the message gives no figures: the rest of it is missing
exceeds-all = a single request for { $requested } exceeds all there is ({ $limit })
exceeds-any-card = a single request for { $requested } is more than any card has
library-direct = { $library } allocates from the driver directly, outside PyTorch's cache, and nothing was left
jax-pool = JAX takes 75 % of the card at startup and serves requests from that pool
tf-pool = TensorFlow takes the whole card at startup and serves requests from that pool
tpu-program = the compiled program needs { $needed }, and the chip has { $total }
program-needs = the compiled program needs { $total } in total
asked-for = { $requested } requested
mapping-failed = the driver could not map pages: the card is full, or another process took the rest first
nccl-refuses-shared-card = NCCL gives every rank a card of its own, and refuses a group in which two have the same: no memory is missing
local-rank-mistake = usually no rank chooses its card, so that all are on card 0, or there are more ranks than cards that the job sees
nccl-buffers = NCCL allocates buffers for every communicator and channel from the driver, and PyTorch's cache has taken most of the card
call-without-figures = contexts, kernel code and handles are allocated by the driver; the message gives no figures
libraries-get-the-rest = CUDA libraries allocate handles and workspaces from the driver, and get only what PyTorch's cache has not taken
other-causes = a bad index or a mismatched installation raises the same error: if it goes away with CUDA_LAUNCH_BLOCKING=1 and a smaller batch, it is memory
neither-which = it names neither the GPU nor RAM, and gives no figures: look at both while the program runs

## What may be wrong with a shape

suspect-attention = attention scores: heads x length x length values{ $square }; they explode with long sequences or large images. Flash or memory-efficient attention never stores them
suspect-logits = logits: batch x length x vocabulary values{ $values }; check the length, or compute the loss in chunks
suspect-one-hot = a one-hot encoding: samples x classes values{ $values }; use indices instead
suspect-pairwise = all pairs of two sets: N x M values{ $square }; an extra dimension was broadcast, or the sets have to be processed in chunks
suspect-convolution = a convolution: images too large, or channels and spatial dimensions swapped{ $values }
suspect-resolution = resizing or sampling to the wrong resolution{ $values }
suspect-repeat = a tensor repeated along the wrong dimension{ $values }
suspect-padding = padding to one very long sample{ $values }: truncate samples, or sort them by length
suspect-size = a wrongly computed size{ $values }
suspect-concatenation = everything collected in one tensor{ $values }
suspect-embedding = an embedding with the wrong number of rows{ $values }
suspect-mask = a product or mask with mismatched shapes{ $square }
suspect-overflow = a size that overflowed or is negative: print the shape on the line before
suspect-unknown = a wrong dimension{ $values }: print the shapes on the line that failed
square-values = { " " }({ $requested } is { $side } x { $side } values of 2 bytes)
four-byte-values = { " " }({ $count } values of 4 bytes)

## What helps: settings and trainings of PyTorch

expandable-segments = expandable segments
    .why = segments grow in place, so free memory is not stranded in pieces that are too small
max-split-size = a limit on block splitting
    .why = large blocks are no longer split to serve small requests
newer-pytorch = a newer PyTorch
    .why = PyTorch 2.1 added expandable segments (Linux), which remove most fragmentation
smaller-batch = a smaller batch, with gradient accumulation to keep the effective batch size
    .why = activations grow with the batch size; `max-batch` finds the largest that fits, without the card. Batch norm sees the smaller batch
smaller-batch-by-hand = a smaller batch, with gradient accumulation to keep the effective batch size
    .why = activations grow with the batch size. Batch norm sees the smaller batch
    .remark = Trainer: --per_device_train_batch_size
smaller-eval-batch = a smaller evaluation batch
    .why = in eval mode, samples do not influence each other
    .remark = Trainer: --per_device_eval_batch_size 1
checkpointing = gradient checkpointing
    .why = the backward pass recomputes activations instead of keeping them, at the cost of a second forward pass. Batch norm updates its running statistics twice
    .remark = or torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
autocast = bfloat16 autocast
    .why = most activations take half the memory
half-weights = bfloat16 weights
    .why = half the size of float32; load on the CPU first, so that no float32 copy reaches the card
    .remark = or model.to(torch.bfloat16)
quantised = 8-bit or 4-bit weights
    .why = a quarter or an eighth of the size of float32
    .remark = for inference, or to train adapters (QLoRA)
lean-optimizer = an optimizer with less state
    .why = Adam keeps 8 bytes of state per parameter, Adafactor one row and one column per matrix, bitsandbytes' AdamW8bit 2 bytes per parameter
    .remark = Trainer: --optim adafactor
shorter-samples = shorter sequences or smaller images
    .why = activations grow with the length, attention scores with its square
    .remark = or a smaller crop
larger-card = a card with more memory
    .why = a rehearsal tells in advance whether it is large enough
see-processes = find out what else uses the card, and end leftover processes
    .why = an idle notebook kernel, a server or a hung run keeps its memory
    .remark = and nvidia-smi
empty-card = the same run on an empty card
    .why = without the other processes it may fit unchanged
other-card = another card in this machine
    .why = if one is free
fewer-ranks = as many ranks as there are cards
    .why = each rank needs a card of its own
set-device = one card per rank
    .why = otherwise every rank creates a context, or loads a checkpoint, on card 0
    .remark = before anything touches CUDA
raise-limit = a higher limit
    .why = the card has more memory than the process allows itself
    .remark = or drop per_process_memory_fraction
find-growth = find the line that keeps memory
    .why = a rehearsal names every line whose memory survives from step to step
leave-room = a memory limit that leaves room for CUDA libraries
    .why = PyTorch frees its cache before it exceeds the limit; libraries get the rest
    .remark = first thing in the script
nccl-buffers-smaller = smaller NCCL buffers
    .why = each communicator allocates buffers for every channel and peer
early-handle = a cuBLAS handle created while memory is free
    .why = the handle is created once and then reused
    .remark = right after torch.cuda.set_device
no-benchmark = no cuDNN benchmarking
    .why = benchmarking runs algorithms with large workspaces
check-cause = check that memory is the cause
    .why = an out-of-range index can raise the same error later; this names the line that really failed
steady-shapes = fewer distinct batch shapes
    .why = every new shape leaves free blocks that the next one cannot use
    .remark = and pad to multiples: pad_to_multiple_of=64
shard = sharding over several cards, or offloading to the CPU
    .why = each card holds a shard of weights, gradients and optimizer state
    .remark = with FSDP2 fully_shard(model), or DeepSpeed ZeRO-3
lora = training adapters only (LoRA)
    .why = only the adapters need gradients and optimizer state
in-pieces = the failing operation in chunks
    .why = the request itself becomes smaller, whatever else is on the card
    .remark = attention: F.scaled_dot_product_attention
in-pieces-command = { $at }torch.cat([f(part) for part in x.split(64)])
print-shapes = print the shapes of the failing line's inputs
    .why = one dimension is not what it should be
print-before = before { $file }:{ $line }: print(x.shape, x.dtype)
no-grad = evaluation without autograd
    .why = otherwise every activation is saved for a backward pass that never runs
    .remark = or torch.inference_mode()
outputs-to-cpu = outputs moved to the CPU right away
    .why = otherwise the outputs of the whole dataset pile up on the card
    .remark = Trainer: --eval_accumulation_steps 1
leftovers = freeing the last training step before evaluation
    .why = its loss, outputs and gradients stay alive until then
keep-numbers = keeping numbers instead of tensors
    .why = a loss that is kept keeps its graph alive
    .remark = not: total += loss; losses.append(loss)
detach = detaching what is carried from step to step
    .why = recurrent state, replay buffers and caches keep the graphs of all earlier steps alive

## What helps: inference with PyTorch

offload-pipeline = parts of the pipeline on the CPU until they are needed
    .why = only one part is on the card at a time; if that is still too much, enable_sequential_cpu_offload() moves single layers, slowly
half-pipeline = half-precision weights
    .why = half the size of float32
tiling = decode the image in tiles
    .why = the VAE's memory grows with the image's area; tiles bound it
smaller-image = a smaller image, or one at a time
    .why = memory grows with the area, and attention with its square
quantised-pipeline = a quantized transformer
    .why = 4-bit weights take a quarter of 16-bit ones
comfy-lowvram = start ComfyUI for little memory
    .why = parts of the model wait in RAM; --novram is slower still
comfy-fp8 = 8-bit weights for the diffusion model
    .why = half of 16-bit; or load an fp8 or GGUF version of the model
comfy-tiled = the node `VAE Decode (Tiled)` in place of `VAE Decode`
    .why = decoding a large image at once is often the peak
comfy-reserve = leave memory for the display and other programs
    .why = in GiB; ComfyUI plans with all that is free at startup
webui-medvram = start the web UI for little memory
    .why = the parts of the model take turns on the card; --lowvram is slower and takes still less
    .remark = in webui-user.bat or webui-user.sh
webui-attention = memory-efficient attention
    .why = attention scores are not stored
webui-half = half precision: remove --no-half and --precision full
    .why = they double the weights
webui-size = smaller width and height, then an upscaler with tiles
    .why = memory grows with the area; Hires. fix counts with its target size
whisper-smaller = a smaller model
    .why = large takes about 10 GB in float16, medium 5, small 2
whisper-int8 = 8-bit weights
    .why = faster-whisper runs them with little loss of accuracy
whisper-beam = a smaller beam and batch
    .why = each hypothesis and each segment keeps its own cache
whisper-free = one process at a time, and nothing else on the card
    .why = alignment and speaker models stay loaded beside it
hf-half = half-precision weights
    .why = half the size of float32
hf-quantised = 4-bit weights
    .why = a quarter of the size of 16-bit weights
hf-device-map = layers that do not fit in RAM
    .why = accelerate moves each layer to the card when it is its turn: slow, but it runs
hf-cache = a shorter prompt, fewer new tokens, or a cache in RAM
    .why = the KV cache grows with every token of every sequence
hf-few-prompts = fewer prompts at a time
    .why = each has activations and a cache of its own
inference-mode = no graph during inference
    .why = otherwise every activation is kept for a backward pass that never runs
smaller-input = smaller inputs, or tiles
    .why = activations grow with the input; overlapping tiles give nearly the same result
few-inputs = one input at a time
    .why = in eval mode, inputs do not influence each other
smaller-model = a smaller model
    .why = of the same family, or a quantized version

## What helps: servers

shorter-sequence = a shorter maximum sequence length
    .why = the KV cache must hold one sequence of maximum length
shorter-sequence-known = a shorter maximum sequence length
    .why = vLLM's own estimate of what fits
larger-share = a larger share of the card
    .why = the default is 0.9; weights and the profiling run are taken from it first
smaller-share = a smaller share of the card
    .why = no more than is free at startup
smaller-share-serving = a smaller share of the card
    .why = what the server does not take for its cache is left for activations
fewer-sequences = fewer concurrent sequences
    .why = the profiling run at startup uses that many
no-graphs = no CUDA graphs
    .why = captured graphs take extra memory
small-cache = an 8-bit KV cache, or quantized weights
    .why = half the memory for the same length
several-cards = several cards
    .why = each card holds a part of the weights and of the cache
sglang-larger-share = a larger share of the card for weights and cache
    .why = the weights alone took SGLang's share; if that fails too, the model does not fit
sglang-chunks = smaller prefill chunks, fewer requests at a time
    .why = activations grow with the tokens that run together
tgi-tokens-fewer = fewer tokens per batch
    .why = the warm-up runs the largest batch that these allow
tgi-quantise = quantized weights
    .why = what the weights do not take is left for batches
several-shards = several cards
    .why = each card holds a part of the weights
fewer-layers = fewer layers on the card
    .why = the CPU computes the others, from host memory
    .remark = Ollama: PARAMETER num_gpu 20; llama-cpp-python: n_gpu_layers=20
shorter-context = a shorter context
    .why = the KV cache for the whole context is allocated at startup
    .remark = Ollama: PARAMETER num_ctx 8192
eight-bit-cache = an 8-bit KV cache
    .why = half the memory for the same length
lower-quantisation = a lower-bit quantization of the weights
    .why = about 4.8 bits per weight instead of 16
tensor-split = a different split across cards
    .why = a card with less memory, or one that drives a display, gets a smaller part
more-layers = more layers on the card
    .why = what is on the card need not be in RAM
    .remark = if the card has room
smaller-tag = a smaller or lower-bit model
    .why = it needs about its file's size in memory
free-ram = more free RAM
    .why = close other programs, or unload other models
no-pinned-llama = no pinned memory
    .why = it only makes copies to the card faster

## What helps: other frameworks

framework-batch = a smaller batch
    .why = intermediate results grow with it
jax-fraction = a larger pool
    .why = JAX takes 75 % of the card by default
jax-no-pool = no preallocated pool, when other processes need the card
    .why = JAX then allocates on demand, and several processes can share a card
jax-remat = rematerialization
    .why = activations are recomputed instead of kept; donated buffers avoid a second copy of the parameters
    .remark = and donate_argnums in jax.jit for the old state
jax-shard = more chips, with parameters sharded over them
    .why = the compiled program has to fit on each chip
tf-growth = allocation on demand
    .why = helps when another process needs the card, not when the model is too large
tf-async = the asynchronous allocator, against fragmentation
    .why = helps when the statistics in the log show much free memory in small pieces
tf-mixed = mixed precision
    .why = most activations take half the memory
tf-input = a smaller or streamed input pipeline
    .why = caches and shuffle buffers of tf.data are in RAM
tf-on-gpu = check that the GPU is used at all
    .why = the tensor was on the CPU; without a working CUDA installation everything is
onnx-arena = an arena that grows by the requested size only
    .why = by default the arena doubles, and convolutions use the largest workspace
faiss-temp = less scratch space, 16-bit vectors
    .why = each FAISS resource object takes up to 1.5 GiB of scratch space at startup
rmm-managed = managed memory, which may spill to RAM
    .why = pages migrate to the card on use: slower, but it fits
trt-workspace = a smaller workspace
    .why = the builder tries tactics that use all the workspace it is allowed
    .remark = config.set_memory_pool_limit(...)
empty-cache-for-others = an empty PyTorch cache
    .why = PyTorch caches freed memory, and other libraries cannot use it
    .remark = before the library allocates
limit-for-pytorch = a memory limit for PyTorch
    .why = the rest stays free for the library
    .remark = first thing in the script
caffe-batch = a smaller batch in the prototxt, and iter_size in the solver to make up for it
    .why = the data of all layers grow with it; the test net has a batch of its own
caffe-image = smaller input images
    .why = in testing, one image alone may be too large
darknet-subdivisions = more subdivisions in the .cfg
    .why = batch divided by subdivisions images are on the card at a time
darknet-size = a smaller width and height, multiples of 32
    .why = memory grows with their product; random=1 resizes up to 1.4 times
cntk-minibatch = a smaller minibatch
    .why = the values of all nodes grow with it
mxnet-mirror = a smaller batch, and recomputed activations
    .why = mirroring trades time for memory
mxnet-pool = a memory pool that rounds up less
    .why = with many different shapes the default pool keeps pieces that fit nothing
theano-gc = a smaller batch, and intermediate results freed at once
    .why = with allow_gc off they stay for the next call
torch7-batch = a smaller batch, and a call to the garbage collector
    .why = Lua does not know how large tensors on the card are
ct2-int8 = 8-bit weights
    .why = about half of float16
ct2-smaller = a smaller model, beam and batch
    .why = CTranslate2 allocates for the longest input of a batch times the beam
lmdeploy-cache = a smaller share for the KV cache
    .why = the share is of what is free after the weights: 0.8 by default
lmdeploy-length = shorter sessions
    .why = buffers are allocated for the longest session
trtllm-cache = a smaller share for the KV cache, a smaller batch
    .why = the cache takes 90 % of what is free, before buffers for logits
trtllm-build = an engine for shorter inputs
    .why = activation buffers are sized for max_num_tokens when the engine is built
xgb-quantile = quantized data, fewer bins
    .why = QuantileDMatrix holds bins instead of floats
    .remark = params: max_bin=64
xgb-external = data in batches from disk
    .why = external memory keeps only pages of the data on the card
numba-free = arrays freed as soon as they are done
    .why = Numba frees memory lazily
in-chunks = smaller chunks
    .why = the whole array need not be on the card at once
dml-batch = a smaller batch or image
    .why = DirectML shares the card with the desktop and keeps what it once took
julia-reclaim = freed arrays given back
    .why = Julia's garbage collector does not see how large arrays on the card are
mindspore-memory = a larger limit, a smaller batch
    .why = MindSpore takes a fixed share of the chip at startup
npu-see = find out what else uses the chip
    .why = a run that hangs keeps its memory
oneflow-batch = a smaller batch
    .why = activations grow with it
tinygrad-smaller = a smaller model, or weights of fewer bits
    .why = weights are on the card as they were loaded
cupy-free = cached blocks given back, and a limit
    .why = CuPy's pool keeps freed blocks, and other libraries cannot use them
paddle-flags = a smaller batch, and allocation as needed
    .why = a share that is taken at startup leaves less for others
paddle-recompute = recomputed activations
    .why = the backward pass recomputes what it needs
see-card = find out what else uses the card
    .why = memory of other processes comes back when they end

## What helps: host memory, Windows, Macs, kernels

more-ram = request more RAM
    .why = the limit belongs to the job, not to the machine
    .remark = Kubernetes: resources.limits.memory; Docker: --memory 64g; Ray: @ray.remote(memory=...)
who-killed = find out who killed it
    .why = the kernel log names the process and its size
    .remark = or: journalctl -k
fewer-workers = fewer workers, less prefetching
    .why = each worker is a process with its own copy of every page the dataset touches
load-once = loading checkpoints without a second copy in RAM
    .why = otherwise every rank holds the model twice while it loads
    .remark = from_pretrained(..., low_cpu_mem_usage=True)
arrays = datasets in arrays, not in lists of Python objects
    .why = touching reference counts copies the pages of a list into every worker: RAM grows over the epoch
host-chunks = smaller chunks
    .why = a single request was larger than the memory left
check-ram = check how much RAM there is
    .why = a container or job may have less than the machine
wsl-memory = more RAM for WSL
    .why = by default WSL gets half of the machine's RAM; run `wsl --shutdown` afterwards
    .remark = in .wslconfig, in the user's folder on Windows
larger-shm = a larger /dev/shm
    .why = workers pass their batches through it
    .remark = Kubernetes: emptyDir with medium Memory on /dev/shm; Linux: mount -o remount,size=8G /dev/shm
no-workers = no workers, to confirm the cause
    .why = then nothing uses shared memory
file-sharing = files instead of shared memory
    .why = helps when the number of open files is the limit
check-shm = check how full it is
    .why = containers have 64M by default
no-pinned = no pinned batches
    .why = pinned memory is limited on WSL and in containers, and PyTorch rounds each request up to a power of two
lock-limit = a higher limit for locked memory
    .why = the system refuses to lock more pages
    .remark = Docker: --ulimit memlock=-1; WSL: memory=... in .wslconfig
less-offload = less offloading
    .why = offloaded parameters are pinned as a whole
page-file = check whether RAM and page file are full
    .why = where host memory has to back the card's memory, host memory runs out first
    .remark = Windows: a larger page file (System > Advanced > Performance > Virtual memory)
larger-page-file = a larger page file, on a disk with room
    .why = at least twice the RAM, then restart; it is used as a reserve and hardly ever written
page-file-path = System > Advanced system settings > Performance > Advanced > Virtual memory > Change
windows-workers = fewer DataLoader workers
    .why = on Windows each one imports PyTorch anew, and its CUDA libraries reserve several GiB
close-windows = close other programs, and restart
    .why = browsers and other models count
mps-watermark = no upper limit, with care
    .why = PyTorch may then use all of the Mac's memory, and the whole system may swap or fail
close-programs = close other programs that use the GPU
    .why = GPU and CPU share one memory: browsers and other models count
    .remark = Activity Monitor, Memory
mlx-chunk = a shorter prompt, or smaller prefill chunks
    .why = Metal limits a single buffer to part of the memory, however much is free
mlx-quantised = a quantized or smaller model
    .why = weights and cache take a quarter in 4 bits
smaller-kernel = fewer stages or smaller blocks in the kernel
    .why = each pipeline stage keeps its tiles in shared memory
newer-kernel = a version of the library with kernels for this card
    .why = kernels are tuned for data-centre cards (per block, A100: 164 KiB, H100: 228 KiB; RTX 30/40: 99 KiB; T4: 64 KiB)
    .remark = or the library that ships the kernel
look-at-card = look at the card while the program runs
    .why = if its memory fills up, it is the GPU's
look-at-ram = look at RAM and at the kernel's log
    .why = if free memory shrinks, it is the machine's
whole-message = keep the whole output
    .why = lines above usually say who asked for how much

## Why a rehearsal does not check it

not-on-a-mac = needs a Mac
not-a-server = a rehearsal does not start a server
not-the-card = it concerns host memory, which a rehearsal does not limit
not-kernels = a rehearsal does not run kernels
not-pytorch = only PyTorch can be rehearsed
not-nvidia = only NVIDIA cards can be rehearsed
not-environment = needs another environment
not-bitsandbytes = needs bitsandbytes
not-others = a virtual card has no other processes
not-second-card = needs a second card
not-several-cards = needs several cards
not-handle = a virtual card never refuses cuBLAS its handle
not-peft = needs peft, and a choice of target modules
not-splittable = only you know how that line can be split
not-a-change = it finds the cause and changes nothing
not-training = the script does not train

## What does not help

useless-for-host = torch.cuda.empty_cache(), a larger GPU, a smaller model
    .why = GPU memory did not run out
useless-empty-cache = torch.cuda.empty_cache()
    .why = PyTorch did this before it raised the error. It never gives PyTorch itself more memory, only other processes
useless-empty-cache-amount = torch.cuda.empty_cache()
    .why = PyTorch did this before it raised the error; the { $cached } still cached is in segments that are partly in use, which no call can free. It never gives PyTorch itself more memory, only other processes
useless-splitting = max_split_size_mb, expandable_segments
    .why = they reduce fragmentation, and nothing points to it here
useless-splitting-amount = max_split_size_mb, expandable_segments
    .why = they reduce fragmentation, and only { $cached } of { $reserved } reserved is unused
useless-batch-early = a smaller batch
    .why = it failed before the first batch
useless-batch-shape = a smaller batch, allocator settings
    .why = a single request is larger than the card; half the batch halves it at best
useless-model = changes to the model
    .why = it may fit unchanged on an empty card
useless-batch-growth = a smaller batch
    .why = growing memory fills any card: it only fails later
useless-gc = gc.collect()
    .why = Python frees a tensor as soon as nothing refers to it; collecting garbage only frees tensors in reference cycles
useless-workers = fewer DataLoader workers, pin_memory=False
    .why = they use host memory, not the card's

## What advice does to results

effect-identical = same results
effect-rounding = same results up to rounding
effect-precision = changes the precision
effect-training = changes the training
effect-service = limits what it can take in

## Who has the card's memory

part-allocated = allocated by tensors
part-cached = cached by PyTorch, unused
part-context = context and libraries
part-other-processes = other processes
part-outside = context and other processes
part-unexplained = not explained
part-free = free
part-short-allocated = tensors
part-short-cached = cached
part-short-context = context
part-short-outside = context, others
sum-leaves = { $total } in total - { $free } free - { $reserved } reserved by PyTorch leaves { $rest }: the CUDA context, libraries and any other processes
sum-less = { $own } in this process + { $others } in others + { $free } free is { $rest } less than { $total }: a process that the driver does not name here (in another container, or a display) holds it
sum-exact = { $own } in this process + { $others } in others + { $free } free is { $total }, except for { $rest } of driver overhead or rounding
sum-more = { $own } in this process + { $others } in others + { $free } free is more than { $total }
holds-more-than-card = PyTorch holds { $reserved }, and the card has only { $total }: the Windows driver falls back to host memory when the card is full, which is slow and runs out too
allocated-over-reserved = { $allocated } allocated cannot exceed { $reserved } reserved: the text is damaged
free-negative = { $printed } free is a negative number printed as unsigned: nothing was free
free-over-total = { $free } free cannot exceed the total of { $total }: the text is damaged

## Labels and lines of the answer

label-ran-out = ran out
label-message = message
label-where = where
label-at = at
label-card = card
label-adds-up = adds up
label-figures = figures
label-ranks = ranks
label-situation = situation
label-fits-too = fits too
label-why = why
label-what-to-do = what to do
label-do-first = do first
label-does-not-help = does not help
label-in-the-log = in the log
label-more = more
label-as-it-is = as it is
label-works = works
label-did-not-help = did not help
label-not-rehearsed = not rehearsed
label-rehearsed-on = rehearsed on
label-assumes = assumes
label-fits = fits
label-does-not-fit = does not fit
gpu-memory = { $device } memory: { $requested } asked for, { $free } free of { $total }
message-line = line { $line }
message-line-times = line { $line }, { $times } times
message-line-short-times = line { $line } ({ $times } times)
message-wording = { $line }; the wording of { $wording }
wording-until = { $program } { $first } to { $last }
wording-from = { $program } { $first } or newer
wording-one = { $program } { $first }
other-message = { $line }: { $text }
place-in = { $file }:{ $line } in { $function }
place-at = { $file }:{ $line }
place-stage = { $place } ({ $stage })
stage-loading = putting the model on the card
stage-optimizer = optimizer step
stage-backward = backward
stage-evaluation = evaluation
stage-training = training
stage-inference = inference
after-step = after { $counted } { $step }
after-step-of = after { $counted } { $step } of { $of }
counted-steps = step
in-epoch = epoch { $epoch }
card-heading = { $device }, { $total }
the-card = the card
card-ends = the card ends here
picture-asked = { $requested } asked for
picture-asked-times = { $requested } asked for, { $times } times the card
reserved-of-which = reserved by PyTorch { $reserved }, of which { $cached } cached (reserved - allocated)
allowed-to-process = allowed to this process { $allowed }
in-private-pools = of the allocated, { $pools } in private pools (CUDA graphs)
adds-up-yes = yes
adds-up-no = no
adds-up-remarks = { $verdict }: { $remarks }
figure = { $name } { $value }
figure-bytes = { $name } { $value } ({ $bytes } bytes)
figure-asked-for = asked for
figure-allocated = allocated
figure-allowed = allowed
figure-free = free
figure-total = total
figure-library = library
figure-shape = shape
figure-type = type
figure-call = call
figure-resource = resource
figure-process = process
figure-program = program
figure-resident = resident
figure-address-space = address space
figure-kills = kills
figure-local-rank = local rank
figure-worker = worker
figure-in-use = in use on the machine
figure-ram = RAM of the machine
figure-parameters = parameters
figure-constants = constants
figure-results = results
figure-temporaries = temporaries
figure-in-total = in total
figure-sequence-length = sequence length
figure-length-that-fits = length that fits
figure-utilization = utilization
figure-requests = requests
figure-tokens = tokens
figure-other-allocations = other allocations
figure-free-as-printed = free, as printed
ranks-failed-differ = { $count } failed, { $first } first; their figures differ
ranks-failed-same = { $count } failed, { $first } first; with the same figures
column-line = line
column-asked = asked for
column-allocated = allocated
column-free = free
and-more = and { $count } more
advice-line = { $number }. { $what } ({ $effect }): { $why }
advice-line-short = { $number }. { $what } ({ $effect })
useless-line = { $what }: { $why }
list-comma = ,
list-stop = { "." }
count-more-to-do = { $count } more to do
count-other-causes = { $count ->
    [one] 1 other cause
   *[other] { $count } other causes
}
count-useless = { $count ->
    [one] 1 that does not help
   *[other] { $count } that do not help
}
count-works = { $count ->
    [one] 1 more that works
   *[other] { $count } more that work
}
count-not-rehearsed = { $count } not rehearsed
more-parts = { $parts }: --verbose
more-message = the message and its figures: --verbose

## What rehearsals of advice said

rehearsed-on-card = a virtual { $card } ({ $total })
works-line = { $number }. { $what } ({ $effect }): { $did }on the card at most { $device } of { $total }, allocated { $allocated }
nothing-works = nothing that was rehearsed
nothing-rehearsed-works = nothing that was rehearsed works
list-clause = ;{" "}

as-it-is-on-card = on a virtual { $card } ({ $total }): { $text }
works-short = { $what } ({ $effect }): { $device }
as-it-is-fits = it fits on an empty card{ $steps }: { $device } on the card at most ({ $bytes } bytes), { $allocated } allocated
as-it-is-steps = {" "}for { $count ->
    [one] 1 step
   *[other] { $count } steps
}
as-it-is-grows = , and growing by { $bytes } with every step
as-it-is-stopped = ; --steps looks further
as-it-is-needs = ; it would need { $bytes }
as-it-is-fails = the script fails for another reason: { $because }

out-of-memory = out of memory { $place }
ran-out-context = while CUDA started
ran-out-setup = while setting up
ran-out-moving = while moving the model
ran-out-step = in step { $step } ({ $stage })
ran-out-at = { $moment }, at { $place }

ended-too-slow = it did not end in time
ended-at-call = it stopped at `{ $function }`, which is not simulated
ended-at-some-call = it stopped at a call that is not simulated
ended-without-library = the stand-in library was not loaded into it
ended-with-code = it ended with exit code { $code }

candidate-batch = a batch of { $batch }, the largest that fits
candidate-batch-instead = a batch of { $batch } instead of { $own }, the largest that fits
candidate-switch = the script's own { $word }
candidate-card = { $advised }: { $card } with { $total }
write-batch-size = batch_size={ $batch } in { $place }

did-end-growth = no more growth of { $bytes } with every step
did-fix-lines = { $count ->
    [one] 1 line fixed
   *[other] { $count } lines fixed
}
did-set-argument = { $option } { $value } instead of { $before }
did-cut-batches = batches cut to { $tokens } of { $of } tokens

fails-on-empty-card = it does not fit on an empty card either
fails-still-grows = it still grows by { $bytes } with every step
fails-not-reached = not everything was rehearsed: { $because }
no-batch-no-loader = the script iterates no DataLoader; `--arg --batch-size` names the argument that sets its batch
no-batch-no-option = the script has no argument `{ $option }`
no-batch-no-effect = the script does exactly the same with a batch of { $smaller } and of { $larger }
no-batch-fits = not even { $batch } fits: { $place }
no-batch-too-early = it runs out of memory before it iterates a DataLoader; `--arg --batch-size` names the argument that sets its batch

not-nothing-to-change = found nothing to change in the script
not-nothing-before = found nothing to change before it ran { $place }
not-no-length = the script has no argument for it, and no DataLoader with tokens to cut
not-unreadable = { $file } cannot be read: { $problem }
not-found-by-lint = lint finds no such line in { $file }
not-fixed-by-lint = lint finds { $place } ({ $rule }), and has no fix to try
