"""Shards weights, gradients and optimizer state over the ranks: FSDP2 instead of DDP.

Where the script wraps a model in `DistributedDataParallel`, its repeated blocks, found as for
checkpointing, and the rest of it go through `fully_shard`. The script continues to use what looks
like its DDP: `no_sync()`, `require_backward_grad_sync`, `module`, buffers of rank 0 for all ranks.
An optimizer that the script made earlier gets the new parameters; one that it makes later finds
them. `state_dict()` of the model and of its optimizers gathers whole tensors on the host, and
`load_state_dict()` accepts them, so checkpoints are the same as without the trick.

Saves: weights, gradients and optimizer state of all blocks but this rank's part.
Costs: each block's weights are gathered before it runs, in forward and again in backward.
Numbers: the same up to rounding: ranks' gradients are summed in another order.
Conflicts: chunking, evaluation-chunks, surviving-oom, loss-head, offload-activations, channels-last
and bfloat16-weights, which handle weights outside of the block's call; the other optimizers, which
do not know weights in parts; fp16 with its scaler, whose ranks would see other overflows.
Refused: optimizers that look at whole matrices or have made a step already; lists of parameters
that the script has made before DDP; DDP over a part of the ranks, with its own mixed precision, or
with hooks of its communication.
"""

from __future__ import annotations

import gc
import inspect
import time
import weakref
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .checkpointing import blocks_of
from .dynamo_shield import shielded
from .hooks import Hooks
from .trick import Trick, counted

_NOT_ELEMENTWISE = ("Adafactor", "LBFGS", "Muon", "SparseAdam")
"""PyTorch's optimizers whose update of one element depends on others."""

_OTHER_SETTINGS = (
    *("delay_all_reduce_named_params", "param_to_hook_all_reduce", "mixed_precision"),
    "device_mesh",
)
"""Arguments of DDP for features that FSDP2 implements differently or not at all."""

_PATIENCE_S = 60.0
"""How long a rank that gathers a checkpoint waits for the others to do the same."""


class Sharding(Trick):
    """FSDP2 wherever the script makes a DDP."""

    name = "sharding"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._sharded: Counter[str] = Counter()
        self._models: list[str] = []
        self._ranks = 1
        self._gatherings = 0
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        """Optimizers whose checkpoints are gathered."""

    def install(self) -> None:
        import torch.distributed.fsdp as fsdp

        if not self.torch.distributed.is_available() or not hasattr(fsdp, "fully_shard"):
            raise self.refused(
                f"torch {self.torch.__version__} cannot shard single blocks",
                "torch 2.6 and newer have torch.distributed.fsdp.fully_shard",
            )
        from torch.nn.parallel import DistributedDataParallel

        original = DistributedDataParallel.__init__
        signature = inspect.signature(original)
        sharded_type = _sharded_type(self)

        def initialise(wrapper: Any, *arguments: Any, **options: Any) -> None:
            # Subclasses rely on what they inherit. With one rank there is nothing to shard.
            ranks = self.torch.distributed.get_world_size()
            if type(wrapper) is not DistributedDataParallel or ranks == 1:
                original(wrapper, *arguments, **options)
                return
            bound = signature.bind(wrapper, *arguments, **options)
            bound.apply_defaults()
            given = bound.arguments
            self._refuse_settings(given)
            self.torch.nn.Module.__init__(wrapper)
            changed: Any = wrapper
            changed.__class__ = sharded_type
            changed._put_around(given["module"], given)

        patched: Any = DistributedDataParallel
        patched.__init__ = shielded(self.torch, initialise)
        self.hooks.after_optimizer.append(self._look_at_optimizer)

    def _refuse_settings(self, given: Mapping[str, Any]) -> None:
        world = self.torch.distributed.group.WORLD
        if given.get("process_group") not in (None, world):
            raise self.refused(
                "DistributedDataParallel is over a part of the ranks (process_group=…)",
                "leave --shard out, or process_group",
            )
        for name in _OTHER_SETTINGS:
            if given.get(name):
                raise self.refused(
                    f"DistributedDataParallel is made with `{name}`, which FSDP has no like of",
                    f"leave --shard out, or `{name}`",
                )
        model = given["module"]
        if getattr(model, "_ddp_params_and_buffers_to_ignore", None):
            raise self.refused(
                f"{type(model).__name__} has parameters that DDP is to leave alone",
                "leave --shard out",
            )

    def shard(self, model: Any, given: Mapping[str, Any]) -> Any:
        """Shard a model over all ranks; returns their process group."""
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.utils import _sync_module_states

        group = self.torch.distributed.group.WORLD
        device = self._device(model)
        if given.get("init_sync", True):
            # As with DDP, all ranks begin with the weights of rank 0.
            _sync_module_states(model, group, 250 << 20, 0, set())
        before = dict(model.named_parameters(remove_duplicate=False))
        name = type(model).__name__
        blocks = _separate(list(blocks_of(self.torch, model)), model)
        kinds = Counter(type(block).__name__ for block in blocks)
        self._refuse_mixed_dtypes(model, blocks)
        mesh = DeviceMesh.from_group(group, device.type)
        for block in blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        after = dict(model.named_parameters(remove_duplicate=False))
        self._hand_over({id(before[key]): (key, after[key]) for key in before}, before)
        self._watch_checkpoints(model, name)
        self._sharded.update(kinds)
        self._models.append(name)
        self._ranks = group.size()
        return group

    def _device(self, model: Any) -> Any:
        devices = {each.device for each in model.parameters()}
        if len(devices) != 1:
            raise self.refused(
                f"{type(model).__name__} is on {len(devices)} devices",
                "move the whole model to this rank's card before DistributedDataParallel",
            )
        return devices.pop()

    def _refuse_mixed_dtypes(self, model: Any, blocks: list[Any]) -> None:
        inner = {id(each) for block in blocks for each in block.parameters()}
        rest = [each for each in model.parameters() if id(each) not in inner]
        for name, parameters in (
            *((type(block).__name__, list(block.parameters())) for block in blocks),
            (type(model).__name__, rest),
        ):
            dtypes = sorted({str(each.dtype) for each in parameters if each.requires_grad})
            if len(dtypes) > 1:
                raise self.refused(
                    f"{name} has weights in {' and '.join(dtypes)}, which cannot be gathered "
                    "together",
                    "use one dtype for all weights of a block, or leave --shard out",
                )

    def _hand_over(self, new: dict[int, tuple[str, Any]], before: dict[str, Any]) -> None:
        """Give optimizers the parameters that the model has now."""
        for optimizer in self.hooks.optimizers:
            groups = optimizer.param_groups
            if not any(id(each) in new for group in groups for each in group["params"]):
                continue
            if optimizer.state:
                raise self.refused(
                    f"{type(optimizer).__name__} has made a step before DistributedDataParallel "
                    "was put around its model",
                    "put DistributedDataParallel around the model first",
                )
            for group in groups:
                group["params"] = [
                    new[id(each)][1] if id(each) in new else each for each in group["params"]
                ]
            self._look_at_optimizer(optimizer)
        place = _listed_by_somebody(before)
        if place is not None:
            raise self.refused(
                f"the script keeps {place} in a list that it has made before "
                "DistributedDataParallel, and would clip or step weights that nobody uses",
                "make the list after DistributedDataParallel",
            )

    def _look_at_optimizer(self, optimizer: Any) -> None:
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        if not any(_is_sharded(each) for each in parameters):
            return
        kind = type(optimizer)
        is_own = f"{kind.__module__}.".startswith("torch.optim.")
        if is_own and kind.__name__ in _NOT_ELEMENTWISE:
            raise self.refused(
                f"{kind.__name__} looks at whole matrices, of which each rank has a part",
                "use AdamW or SGD, or leave --shard out",
            )
        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            optimizer.register_state_dict_post_hook(self._gather_state)
            optimizer.register_load_state_dict_pre_hook(self._spread_state)

    # Checkpoints

    def _watch_checkpoints(self, model: Any, kind: str) -> None:
        def gather(module: Any, state: dict[str, Any], prefix: str, _metadata: Any) -> None:
            self._meet(f"state_dict() of {kind}")
            for name, value in state.items():
                if name.startswith(prefix) and _is_sharded(value):
                    state[name] = _whole(value)

        def spread(module: Any, state: dict[str, Any], prefix: str, *_rest: Any) -> None:
            for name, parameter in module.named_parameters(remove_duplicate=False):
                value = state.get(prefix + name)
                if value is not None and _is_sharded(parameter) and not _is_sharded(value):
                    state[prefix + name] = _part(value, parameter)

        model.register_state_dict_post_hook(gather)
        model.register_load_state_dict_pre_hook(spread)

    def _gather_state(self, optimizer: Any, state: dict[str, Any]) -> dict[str, Any]:
        self._meet(f"state_dict() of {type(optimizer).__name__}")
        gathered = {
            index: {
                key: _whole(value) if _is_sharded(value) else value for key, value in each.items()
            }
            for index, each in state["state"].items()
        }
        return {**state, "state": gathered}

    def _spread_state(self, optimizer: Any, state: dict[str, Any]) -> dict[str, Any]:
        numbers = [each for group in state["param_groups"] for each in group["params"]]
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        of = dict(zip(numbers, parameters))
        spread = {
            index: {
                key: _part(value, of[index]) if _belongs(value, of.get(index)) else value
                for key, value in each.items()
            }
            for index, each in state["state"].items()
        }
        return {**state, "state": spread}

    def _meet(self, what: str) -> None:
        """Wait until all ranks gather; a rank that gathers alone would wait forever."""
        if self.hooks.is_rehearsed:
            return  # a rehearsal detects ranks that make different calls anyway
        from torch.distributed import distributed_c10d

        store = distributed_c10d._get_default_store()
        self._gatherings += 1
        key = f"ghostgpu-sharding-{self._gatherings}"
        store.add(key, 1)
        deadline = time.monotonic() + _PATIENCE_S
        while store.add(key, 0) < self.torch.distributed.get_world_size():
            if time.monotonic() > deadline:
                raise self.refused(
                    f"rank {self.torch.distributed.get_rank()} alone called {what}, of which each "
                    "rank has a part",
                    "call it on every rank and write the file on one, or leave --shard out",
                )
            time.sleep(0.02)

    def did(self) -> str | None:
        if not self._models:
            return None
        parts = f"{counted(self._sharded, 'module', 'modules')} and the rest of " * bool(
            self._sharded
        )
        return f"{parts}{', '.join(self._models)} spread over {self._ranks} ranks in place of DDP"

    def nothing_because(self) -> str:
        return "the script wraps no model in DistributedDataParallel over several ranks"

    def line(self) -> str | None:
        return "for block in blocks: fully_shard(block)   # and fully_shard(model), without DDP"


def _sharded_type(trick: Sharding) -> Any:
    from torch.nn.parallel import DistributedDataParallel

    class ShardedDataParallel(DistributedDataParallel):
        """A sharded model with the interface of the script's DDP."""

        def _put_around(self, model: Any, given: Mapping[str, Any]) -> None:
            devices = given.get("device_ids")
            self.device_ids = list(devices) if devices else None
            self.broadcast_buffers = given.get("broadcast_buffers", True)
            self.require_backward_grad_sync = True
            self.require_forward_param_sync = True
            self.find_unused_parameters = given.get("find_unused_parameters", False)
            self.static_graph = given.get("static_graph", False)
            self.process_group = trick.shard(model, given)
            self.device = next(model.parameters()).device
            self.module = model

        def forward(self, *arguments: Any, **options: Any) -> Any:
            model: Any = self.module
            if trick.torch.is_grad_enabled():
                # Read here, like DDP: scripts set it before the pass whose gradients it concerns.
                model.set_requires_gradient_sync(self.require_backward_grad_sync)
            self._share_buffers(model)
            if self.device_ids:
                from torch.distributed.utils import _to_kwargs

                moved, named = _to_kwargs(arguments, options, self.device, False)
                return model(*moved[0], **named[0])
            return model(*arguments, **options)

        def _share_buffers(self, model: Any) -> None:
            buffers = [each for each in model.buffers() if each is not None]
            if self.broadcast_buffers and self.require_forward_param_sync and buffers:
                trick.torch.distributed._broadcast_coalesced(
                    self.process_group, [each.detach() for each in buffers], 250 << 20, 0
                )

        def register_comm_hook(self, *_arguments: Any, **_options: Any) -> None:
            raise trick.refused(
                "the script registers a hook of DDP's communication",
                "leave --shard out, or register_comm_hook",
            )

        def join(self, *_arguments: Any, **_options: Any) -> Any:
            raise trick.refused(
                "the script lets ranks have unequal numbers of batches (DDP's join())",
                "leave --shard out: FSDP needs every rank in every pass",
            )

    ShardedDataParallel.__name__ = ShardedDataParallel.__qualname__ = "DistributedDataParallel"
    return ShardedDataParallel


def _separate(blocks: list[Any], model: Any) -> list[Any]:
    """Blocks that share no parameters with other modules; the others are not sharded separately."""
    places: Counter[int] = Counter()
    for module in model.modules():
        places.update(id(each) for each in module._parameters.values() if each is not None)
    kept = []
    for block in blocks:
        inside: Counter[int] = Counter()
        for module in block.modules():
            inside.update(id(each) for each in module._parameters.values() if each is not None)
        if inside and all(places[each] == count for each, count in inside.items()):
            kept.append(block)
    return kept


def _listed_by_somebody(before: dict[str, Any]) -> str | None:
    """The name of an original parameter that something still refers to."""
    for name in list(before):
        holders = gc.get_referrers(before[name])
        if any(isinstance(each, (list, tuple, set)) for each in holders):
            return name
        del holders
    return None


def _is_sharded(value: Any) -> bool:
    from torch.distributed.tensor import DTensor

    return isinstance(value, DTensor)


def _belongs(value: Any, parameter: Any) -> bool:
    """Whether this is unsharded state of a sharded parameter, with its full shape."""
    is_tensor = hasattr(value, "shape") and not _is_sharded(value)
    return is_tensor and _is_sharded(parameter) and value.shape == parameter.shape


def _whole(value: Any) -> Any:
    return value.full_tensor().cpu()


def _part(value: Any, like: Any) -> Any:
    """This rank's shard of a tensor that every rank has in full."""
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(
        value.detach().to(like.device), like.device_mesh, like.placements, src_data_rank=None
    )
