"""Values that the script sent to the card are known when it reads them back."""

from __future__ import annotations

import pytest
from conftest import Rehearse, needs_torch

pytestmark = needs_torch

# An expression over `mask` (4x16 on the card, 58 ones) and `ids` (3, 1, 3, 7), and its value.
EXPRESSIONS = [
    ("mask.bool()[:, :10].all().item()", "True"),
    ("mask.to(torch.bool).all().item()", "False"),
    ("(mask == 0).any().item()", "True"),
    ("mask.sum(1).tolist()", "[16, 16, 10, 16]"),
    ("list(torch.nonzero(mask).shape)", "[58, 2]"),
    ("list(torch.randn(4, 16, device='cuda')[mask.bool()].shape)", "[58]"),
    ("ids.max().item()", "7"),
    ("ids.cpu().tolist()", "[3, 1, 3, 7]"),
    ("list(ids.unique().shape)", "[3]"),
    ("list(torch.bincount(ids).shape)", "[8]"),
    ("list(torch.ones(4, device='cuda').repeat_interleave(ids).shape)", "[14]"),
    ("torch.tensor(-3, device='cuda').item()", "-3"),
    ("ids[1:].t()[1].item()", "3"),
    ("(ids + 1).tolist()", "[4, 2, 4, 8]"),
    ("(10 - ids)[0].item()", "7"),
    ("(ids * ids - ids // 2).max().item()", "46"),
    ("torch.cat([ids, ids[:1]]).tolist()", "[3, 1, 3, 7, 3]"),
    (
        "torch.diff(torch.arange(5, device='cuda') + 2, prepend=ids[:1]).tolist()",
        "[-1, 1, 1, 1, 1]",
    ),
    ("torch.nn.functional.pad(ids.cumsum(0), (1, 0)).tolist()", "[0, 3, 4, 7, 14]"),
    ("torch.sum(mask, dim=(0, 1)).item()", "58"),
    ("ids.clone().add_(2).tolist()", "[5, 3, 5, 9]"),
    ("ids.clone().resize_(3).tolist()", "[3, 1, 3]"),
    ("ids.clone().resize_(1000)[:4].tolist()", "[3, 1, 3, 7]"),
    ("ids.clone().mul_(ids).sub_(1).tolist()", "[8, 0, 8, 48]"),
    ("torch.empty(3, dtype=torch.long, device='cuda').zero_().tolist()", "[0, 0, 0]"),
    ("ids.clone().fill_(6).sum().item()", "24"),
    # A tensor that has to grow, as the shorter ones do in `all_gather_object`.
    ("ids.clone().resize_(100)[:4].tolist()", "[3, 1, 3, 7]"),
    ("mask[1:3, 8:12].contiguous().cpu().tolist()", "[[1, 1, 1, 1], [1, 1, 0, 0]]"),
    ("ids[::2].clone().to('cpu', torch.int32).tolist()", "[3, 3]"),
    ("ids.type(torch.int16).type_as(mask).int()[3].item()", "7"),
    ("mask.t()[12].tolist()", "[1, 1, 0, 1]"),
    ("ids.new_tensor([4, 5])[1].item()", "5"),
    ("torch.as_tensor(ids.cpu().numpy(), device='cuda').max().item()", "7"),
    ("torch.tensor(data=[2, 6], device='cuda', dtype=torch.uint8).tolist()", "[2, 6]"),
    ("torch.ones(4, 16, device='cuda').to(torch.bool)[:, :9].all().item()", "True"),
    ("(torch.full((3,), 2.5, device='cuda') > 2).sum().item()", "3"),
    ("torch.full((), -0.75, device='cuda', dtype=torch.bfloat16).item()", "-0.75"),
    ("torch.ones((), device='cuda', dtype=torch.float64).item()", "1.0"),
    ("(ids.float() + 1).sum().item()", "18.0"),
    ("(ids.to(torch.float16)[-1] - ids.half()[0]).item()", "4.0"),
    ("list(torch.arange(ids.float()[3] * 2, -1.0, -2, device='cuda').shape)", "[8]"),
    ("(-ids.double().new_tensor([2.5]) / 2).cpu().tolist()", "[-1.25]"),
    ("(torch.ones(9000, device='cuda') * 2).sum().item()", "18000.0"),
    ("((ids.float() > 1) | (ids > 0)).all().item()", "True"),
    ("(~((ids.float() > 1) & (ids < 0))).all().item()", "True"),
    ("((ids.float() > 1).long() & torch.zeros_like(ids) == 0).all().item()", "True"),
    ("((ids.float() > 1) | (ids > 1)).all().item()", "False"),
    ("(ids.bool() & True).all().item()", "True"),
    ("ids.new_zeros(2).tolist() + ids.new_ones(1).tolist()", "[0, 0, 1]"),
    ("ids.float().new_full((2,), 7).tolist()", "[7.0, 7.0]"),
    ("torch.full((2,), ids[3]).tolist()", "[7, 7]"),
    ("torch.full((2,), ids[3], device='cuda').tolist()", "[7, 7]"),
    ("torch.full_like(ids, ids[0]).tolist()", "[3, 3, 3, 3]"),
    (
        "[piece.tolist() for piece in torch.nn.parallel.comm.scatter(ids.cpu(), (0, 0))]",
        "[[3, 1], [3, 7]]",
    ),
    ("torch.nn.parallel.comm.broadcast(ids.cpu(), (0,))[0].tolist()", "[3, 1, 3, 7]"),
    (
        "torch.nn.parallel.comm.broadcast(ids.cpu(), out=[ids + 5])[0].tolist()",
        "[3, 1, 3, 7]",
    ),
    (
        "list(torch.sparse_coo_tensor(torch.stack([ids, ids // 2]), ids.float()).shape)",
        "[8, 4]",
    ),
    ("torch.sparse_coo_tensor(ids[None], ids.float(), (9,)).coalesce()._nnz()", "3"),
    ("list(torch.combinations(ids).shape)", "[6, 2]"),
    ("list(torch.combinations(ids.float(), 3, with_replacement=True).shape)", "[20, 3]"),
]


def test_lengths_on_the_card_count_for_the_loss_that_reads_them(rehearse_on_card: Rehearse) -> None:
    script = """
import torch
from torch.nn.functional import ctc_loss
scores = torch.randn(50, 4, 20, device="cuda", requires_grad=True).log_softmax(2)
lengths = torch.full((4,), 50, device="cuda")
sizes = torch.tensor([10, 7, 9, 6], device="cuda")
rows = scores[:10].argmax(-1).t()
ctc_loss(scores, rows, lengths, sizes).backward()
ctc_loss(scores, rows.masked_select(rows >= 0), lengths, (rows >= 0).sum(-1))
print("done")
"""
    done = rehearse_on_card(script)
    assert "done" in done.stdout
    assumed = [sentence for sentence in done.report["assumptions"] if "ctc_loss()" in sentence]
    assert len(assumed) == 1, assumed


def test_counts_of_unknown_values_add_up(rehearse_on_card: Rehearse) -> None:
    script = """
import torch
chosen = torch.nn.Linear(4, 3).cuda()(torch.randn(7, 4, device="cuda")).argmax(-1)
print(torch.bincount(chosen, minlength=3).tolist())
print(torch.histc(chosen.float(), bins=3, min=0, max=3).tolist())
"""
    assert rehearse_on_card(script).stdout.splitlines() == ["[3, 2, 2]", "[3.0, 2.0, 2.0]"]


def test_what_came_from_the_host_is_read_back_as_it_was(rehearse_on_card: Rehearse) -> None:
    script = """
import torch
mask = torch.ones(4, 16, dtype=torch.long)
mask[2, 10:] = 0
mask = mask.cuda()
ids = torch.tensor([3, 1, 3, 7], device="cuda")
"""
    script += "".join(f"print({expression})\n" for expression, _ in EXPRESSIONS)
    done = rehearse_on_card(script)
    assert done.stdout.splitlines() == [value for _, value in EXPRESSIONS], done.stderr
    assert done.report["assumptions"] == []
    assert done.report["notes"] == []


def test_a_tensor_that_was_written_on_the_card_is_no_longer_known(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        unknown = torch.nn.Linear(2, 2).cuda()(torch.ones(2).cuda()).argmax()
        ids = torch.tensor([3, 1], device="cuda")
        ids.add_(unknown)
        view = torch.tensor([5, 6], device="cuda")
        view[0] = unknown
        other = torch.tensor([5, 6], device="cuda")
        other.data.add_(unknown)
        into = torch.tensor([5, 6], device="cuda")
        torch.mul(unknown, 2, out=into[:1])
        swapped = torch.tensor([5, 6], device="cuda")
        torch._foreach_add_([swapped], [unknown])
        for each in (ids, view, other, into, swapped):
            print(each[1].item())
        """
    )
    assert done.stdout.split() == ["0"] * 5, done.stderr
    assert "Unknown values read as ordinary numbers" in done.report["assumptions"][0]


def test_what_a_kernel_of_somebody_else_has_filled_is_not_taken_for_known(
    rehearse_on_card: Rehearse,
) -> None:
    pytest.importorskip("torchvision")
    done = rehearse_on_card(
        """
        import torch, torchvision
        boxes = torch.rand(1000, 4).cuda()
        print(len(torchvision.ops.nms(boxes, boxes[:, 0], 0.5)))
        """
    )
    assert done.stdout.split() == ["1000"], done.stderr
    (sentence,) = done.report["assumptions"]
    assert "all 1000 elements are selected" in sentence


def test_what_a_triton_kernel_was_given_is_no_longer_known(rehearse_on_card: Rehearse) -> None:
    pytest.importorskip("triton")
    done = rehearse_on_card(
        """
        import torch, triton
        import triton.language as tl

        @triton.jit
        def count(found, given, step: tl.constexpr):
            place = tl.program_id(0) * step + tl.arange(0, step)
            tl.store(found + place, tl.load(given + place) > 0)

        given, found = (torch.zeros(64, dtype=torch.int64, device="cuda") for _ in range(2))
        other = torch.ones(3, dtype=torch.bool, device="cuda")
        count[(2,)](found, given, step=32)
        print(len(found.nonzero()), len(other.nonzero()))
        """
    )
    assert done.stdout.split() == ["64", "3"], done.stderr


def test_a_selection_into_a_tensor_of_the_scripts_is_assumed_aloud(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        found = torch.empty(0, 2, dtype=torch.long, device="cuda")
        scores = torch.nn.Linear(2, 12).cuda()(torch.ones(2).cuda()).view(3, 4)
        print(len(torch.nonzero(scores > 0.5, out=found)), len(found))
        print(len(torch.nonzero(torch.tensor([[1, 0, 1]], device="cuda"), out=found)))
        """
    )
    assert done.stdout.split() == ["12", "12", "2"], done.stderr
    (sentence,) = done.report["assumptions"]
    assert "all 12 elements are selected" in sentence


@pytest.mark.parametrize(
    "read",
    [
        *("scores.tolist()", "scores.cpu()", "scores[0].item()", "scores.to('cpu')"),
        "torch.empty(3).copy_(scores)",
    ],
)
def test_every_way_to_read_values_that_nobody_knows_is_said(
    rehearse_on_card: Rehearse, read: str
) -> None:
    done = rehearse_on_card(
        f"""
        import torch
        scores = torch.nn.Linear(3, 3).cuda()(torch.ones(3).cuda()).detach()
        {read}
        """
    )
    (sentence,) = done.report["assumptions"]
    assert "Unknown values read as ordinary numbers" in sentence
    assert "script.py:4" in sentence


def test_the_memory_of_a_dead_tensor_is_not_taken_for_its_successor(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        weight = torch.nn.Parameter(torch.ones(4, 4)).cuda()
        for number in range(1000):
            known = torch.full((4,), 9).cuda()
            address = known.data_ptr()
            del known
            unknown = weight.argmax(0)
            assert unknown.data_ptr() == address and unknown[0].item() == 0
        print("done")
        """
    )
    assert done.stdout.strip() == "done", done.stderr


def test_a_full_attention_mask_takes_the_same_way_as_none(rehearse_on_card: Rehearse) -> None:
    pytest.importorskip("transformers")
    done = rehearse_on_card(
        """
        import torch, transformers
        config = transformers.BertConfig(num_hidden_layers=2)
        model = transformers.BertForMaskedLM(config).cuda()
        ids = torch.randint(0, 30000, (8, 128))
        padded = torch.ones(8, 128, dtype=torch.long)
        padded[0, 100:] = 0
        for mask in (None, torch.ones(8, 128, dtype=torch.long), padded):
            torch.cuda.reset_peak_memory_stats()
            model(ids.cuda(), attention_mask=None if mask is None else mask.cuda()).logits.sum()
            print(torch.cuda.max_memory_allocated())
        """
    )
    without, full, padded = (int(line) for line in done.stdout.split())
    # The mask itself is on the card, nothing else.
    assert full - without <= 8 * 128 * 8, done.stderr
    assert padded > full


def test_positions_that_rise_by_one_are_seen_as_one_sequence(rehearse_on_card: Rehearse) -> None:
    masking = pytest.importorskip("transformers.masking_utils")
    assert hasattr(masking, "find_packed_sequence_indices")
    done = rehearse_on_card(
        """
        import torch
        from transformers.masking_utils import find_packed_sequence_indices
        one = torch.arange(64, device="cuda").unsqueeze(0) + 5
        packed = torch.tensor([[0, 1, 2, 0, 1, 2, 3]]).cuda()
        print(find_packed_sequence_indices(one), find_packed_sequence_indices(packed) is None)
        """
    )
    assert done.stdout.split() == ["None", "False"], done.stderr


def test_arithmetic_gives_the_same_types_and_errors_as_without_the_agent(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import pickle, torch
        ids = torch.tensor([3, 1], device="cuda", dtype=torch.int32)
        print((ids + 1).dtype, (ids + 1.5).dtype, (2 - ids).dtype, (ids * True).dtype)
        print(ids.__add__("x") is NotImplemented)
        three = ids.new_ones(3)
        for attempt in (lambda: ids + "x", lambda: torch.cat([ids, 3]), lambda: ids + three):
            try:
                attempt()
            except Exception as error:
                print(type(error).__name__)
        out = torch.empty(2, dtype=torch.int32, device="cuda")
        print(torch.add(ids, 1, out=out) is out, out[0].item())
        doubled = lambda x: torch.cat([x, x]).diff() + 1
        compiled = torch.compile(doubled, backend="eager", fullgraph=True)
        print(pickle.loads(pickle.dumps(torch.cat)) is torch.cat)
        print(tuple(compiled(ids).shape), "torch.cat(" in torch.fx.symbolic_trace(doubled).code)
        """
    )
    assert done.stdout.splitlines() == [
        "torch.int32 torch.float32 torch.int32 torch.int32",
        "True",
        *("TypeError", "TypeError", "RuntimeError"),
        "True 4",
        "True",
        "(3,) True",
    ], done.stderr


def test_copies_give_the_same_types_and_errors_as_without_the_agent(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import pickle, torch
        ids = torch.tensor([3, 1], device="cuda")
        print(ids.to("cuda") is ids, ids.type(), ids.contiguous() is ids, ids.long() is ids)
        for attempt in (lambda: ids.to("nowhere"), lambda: torch.tensor("x", device="cuda")):
            try:
                attempt()
            except Exception as error:
                print(type(error).__name__)
        weight = torch.ones(2, device="cuda", requires_grad=True)
        print(weight.to(torch.float64).grad_fn is not None, weight.clone().is_leaf)
        print(pickle.loads(pickle.dumps(torch.as_tensor)) is torch.as_tensor)

        def converted(x):
            y = torch.cat([x, x]).to(torch.float32).contiguous()
            return torch.nn.functional.pad(y, [1, 1]) + torch.tensor([1.0], device="cuda")

        compiled = torch.compile(converted, backend="eager", fullgraph=True)
        print(compiled(ids).dtype, torch.jit.script(converted)(ids).dtype)
        print(torch.func.vmap(lambda x: x.clone().to(torch.int32))(ids).dtype)

        class Marked(torch.Tensor):
            pass

        print(type(ids.as_subclass(Marked).to(torch.int32)).__name__)
        """
    )
    assert done.stdout.splitlines() == [
        "True torch.cuda.LongTensor True True",
        *("RuntimeError", "TypeError"),
        "True False",
        "True",
        "torch.float32 torch.float32",
        "torch.int32",
        "Marked",
    ], done.stderr
    assert done.report["notes"] == []


def test_sequences_of_a_nested_tensor_have_the_lengths_of_their_mask(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        from torch import nn
        padded = torch.randn(3, 5, 8, device="cuda")
        lengths = torch.tensor([2, 5, 1]).cuda()
        mask = torch.arange(5, device="cuda")[None] < lengths[:, None]
        nested = torch._nested_tensor_from_mask(padded, mask)
        print(nested._nested_tensor_size().tolist(), nested.to_padded_tensor(0.0).shape)
        aligned = torch._nested_tensor_from_mask_left_aligned
        print(aligned(padded, mask), aligned(padded, mask.flip(1)))
        unknown = (nn.Linear(8, 1).cuda()(padded).squeeze(-1) > 0.5).detach()
        print(torch._nested_tensor_from_mask(padded, unknown).to_padded_tensor(0.0).shape)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        encoder = nn.TransformerEncoder(layer, 2).cuda().eval()
        with torch.no_grad():
            print(encoder(padded, src_key_padding_mask=~mask).shape)
        """
    )
    assert done.stdout.splitlines() == [
        "[[2, 8], [5, 8], [1, 8]] torch.Size([3, 5, 8])",
        "True False",
        "torch.Size([3, 5, 8])",
        "torch.Size([3, 5, 8])",
    ], done.stderr
    # C++ warns of nested tensors at the line that makes the first.
    warned = [line for line in done.stderr.splitlines() if "UserWarning" in line]
    assert warned and not any("ghostgpu" in line.split(": ")[0] for line in warned), done.stderr


def test_functions_of_torch_func_write_in_place(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        from torch.func import functional_call, grad, vmap
        model = torch.nn.Linear(4, 2).cuda()
        weights = {name: each.detach() for name, each in model.named_parameters()}
        known = torch.zeros(3, device="cuda")

        def loss(weights, x):
            result = functional_call(model, weights, (x,)) * 2
            result.mul_(3)
            return result.sum()

        per_sample = vmap(grad(loss), (None, 0))(weights, torch.randn(3, 4, device="cuda"))
        print({name: tuple(each.shape) for name, each in per_sample.items()})
        """
    )
    assert done.stdout.splitlines() == ["{'weight': (3, 2, 4), 'bias': (3, 2)}"], done.stderr


def test_what_was_worked_out_stays_known_when_the_time_for_it_is_over() -> None:
    import torch

    from ghostgpu.agent.values.host_values import MAX_SECONDS, Call, Geometry
    from ghostgpu.agent.values.known_values import KnownValues

    known = KnownValues(torch)
    shown = torch.empty(3, dtype=torch.int64)
    made, open_ = (
        Call(known.host, lambda: torch.arange(3), (), {}).content({None: Geometry.of(shown)}, 24)
        for _ in range(2)
    )
    made.bytes()
    known.host.seconds = MAX_SECONDS + 1
    assert known.attempt(known._view, made, shown).tolist() == [0, 1, 2]
    assert known.attempt(known._view, open_, shown) is None


def test_tensors_are_no_sequences_to_c_code(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import ctypes, torch
        losses = [torch.tensor(1.0), torch.nn.Parameter(torch.tensor(2.0))]
        print(torch.tensor(losses).tolist(), torch.tensor([each.cuda() for each in losses]).shape)

        class Mine(torch.Tensor):
            pass

        class Own(torch.Tensor):
            def __getitem__(self, place):
                return super().__getitem__(place)

        for kind in (torch.Tensor, torch.nn.Parameter, Mine, Own):
            tensor = torch.arange(3.0).as_subclass(kind)
            is_sequence = ctypes.pythonapi.PySequence_Check(ctypes.py_object(tensor))
            print(kind.__name__, is_sequence, tensor[1].item(), tensor[1:].shape[0], len(tensor))
        """
    )
    assert done.stdout.splitlines() == [
        "[1.0, 2.0] torch.Size([2])",
        "Tensor 0 1.0 2 3",
        "Parameter 0 1.0 2 3",
        "Mine 0 1.0 2 3",
        "Own 1 1.0 2 3",
    ], done.stderr


def test_values_from_large_memory_of_numpy_and_of_a_loaders_workers_are_known(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import numpy, torch
        from torch.utils.data import DataLoader
        array = numpy.arange(1 << 20).reshape(1024, 1024) % 5
        labels = torch.from_numpy(array)
        sent = labels.cuda()
        array[:] = 7
        print((sent == 4).nonzero().shape[0], sent.max().item())
        whole = torch.arange(9 << 20)
        print(whole[5:8].cuda().tolist(), whole[::3 << 20].cuda().tolist())
        maps = [torch.full((512, 512), 255)] * 2 + [torch.zeros(512, 512, dtype=torch.int64)] * 2
        for batch in DataLoader(maps, batch_size=4, num_workers=1):
            target = batch.cuda()
            logits = torch.randn(4, 512, 512, device="cuda")
            print(logits[target != 255].shape[0])
        """
    )
    assert done.stdout.splitlines() == [
        f"{(1 << 20) // 5} 4",
        f"[5, 6, 7] {[0, 3 << 20, 6 << 20]}",
        str(2 * 512 * 512),
    ], done.stderr
    (report,) = done.reports
    assert not report["assumptions"]


def test_a_default_device_holds_for_every_function_that_makes_tensors(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        torch.set_default_device("cuda")
        made = (
            torch.tensor([1.0]), torch.as_tensor([1.0]), torch.scalar_tensor(1.0), torch.zeros(2),
            torch.fft.fftfreq(3), torch.arange(3), torch.rand(2),
        )
        print({each.device.type for each in made}, made[0].item())
        """
    )
    assert done.stdout.splitlines() == ["{'cuda'} 1.0"], done.stderr
