"""What follows from the host is computed: the same expressions on the host and on the card.

The card computes nothing, so every answer that agrees was worked out by the agent.
"""

from __future__ import annotations

from conftest import Rehearse, needs_torch

pytestmark = needs_torch

# Over `d`, the device; `lab`, six whole numbers that were sent there; `x`, a 6x6 matrix made there;
# `written(f)`, a copy of `lab` after `f` wrote to it; `piecewise(f, place)`, that place of a tensor
# which had no values before `f` wrote to it.
EXPRESSIONS = r"""
torch.eye(6, device=d, dtype=torch.bool)
x[~torch.eye(6, device=d, dtype=torch.bool)].shape
x[(lab[:, None] == lab[None, :]) & ~torch.eye(6, dtype=torch.bool, device=d)].numel()
torch.arange(10, device=d).sort(descending=True)[0]
torch.arange(10, device=d).flip(0).argsort()
F.one_hot(lab)
F.one_hot(lab, 9)
torch.where(lab > 2)[0]
torch.where(lab > 2, lab, 0)
torch.where(lab > 2, lab, torch.zeros_like(lab))
lab.scatter(0, torch.tensor([1, 2], device=d), 99)
torch.zeros(6, dtype=torch.long, device=d).scatter_add_(0, lab, torch.ones_like(lab))
torch.zeros(3, 9, device=d).scatter_(1, lab[:3, None], 1.0)
torch.tril(torch.ones(5, 5, device=d)).nonzero()
torch.triu(torch.full((4, 4), float("-inf"), device=d), diagonal=1)
torch.tril_indices(4, 4, device=d)
torch.ones(4, 4, device=d).tril().bool().masked_select(torch.eye(4, device=d).bool())
lab.unique(return_counts=True)[1]
lab.unique(return_inverse=True)[1]
torch.unique_consecutive(lab)
torch.unique(lab.view(3, 2), dim=0).shape
lab.repeat_interleave(torch.arange(6, device=d))
torch.repeat_interleave(torch.arange(6, device=d), 2)
torch.arange(lab.max(), device=d)
torch.arange(int(lab.max()) + 1, device=d)
torch.zeros(lab.max().item(), device=d).shape
lab.max().item()
lab.float().mean().item()
(lab.float() / 3).std().item()
lab.topk(2)[0]
lab.topk(2).indices
lab.cummax(0)[1]
torch.stack([lab, lab + 1]).t().contiguous().view(-1)
torch.stack([lab, lab + 1]).t().reshape(-1)
torch.cat([lab, lab[:2].neg()])
(lab ** 2)
2 ** lab
(1.5 - lab)
lab % 3
lab // 2
lab & 1
lab << 1
-lab
~(lab > 2)
lab.clamp(1, 3)
lab.gather(0, torch.tensor([0, 0], device=d))
lab.index_select(0, torch.tensor([0, 3], device=d))
lab[[0, 2]]
lab[torch.tensor([0, 2])]
lab[lab > 1]
torch.take_along_dim(lab, lab.argsort(), 0)
written(lambda a: a.__setitem__(0, 7))
written(lambda a: a.__setitem__(slice(1, 3), -1))
written(lambda a: a.__setitem__(a > 2, 0))
written(lambda a: a.__setitem__(torch.tensor([0, 1], device=d), torch.tensor([8, 9], device=d)))
written(lambda a: a.index_put_((torch.tensor([1], device=d),), torch.tensor(5, device=d)))
written(lambda a: a.index_fill_(0, torch.tensor([1], device=d), 4))
written(lambda a: a.masked_fill_(a == 3, 0))
written(lambda a: a.copy_(torch.arange(6)))
written(lambda a: a[2:4].copy_(torch.arange(2)))
written(lambda a: a[2:4].fill_(9))
written(lambda a: a[2:4].zero_())
written(lambda a: a.clamp_(1, 2))
written(lambda a: torch.add(a, 1, out=a))
written(lambda a: torch.add(a, 1, out=a[:]))
written(lambda a: torch._foreach_zero_([a]))
written(lambda a: torch._foreach_zero_([a, a[2:]]))
torch.isin(lab, torch.arange(3, 40, device=d))
(lab > 2).unique(return_counts=True)
(lab > 0).unique(), (lab > 9).unique(), (lab[:2] > 2).unique(return_inverse=True)
torch.unique_consecutive(lab > 2, return_counts=True)
torch.sparse_coo_tensor([[0, 1, 1]], torch.arange(3.0), (2,)).to(d).coalesce().indices().shape
written(lambda a: torch.arange(6, device=d, out=a))
written(lambda a: a.view(2, 3).t().add_(1))
written(lambda a: a.view(2, 3).t_().add_(1))
written(lambda a: a.detach().add_(3))
written(lambda a: a.scatter_(0, torch.tensor([0], device=d), 5))
written(lambda a: a.__iadd__(a))
written(lambda a: a.add_(a).mul_(2).sub_(1))
written(lambda a: a.random_(5, 6))
torch.tensor([1.5, 2.5], device=d).tolist()
torch.tensor([[1, 2], [3, 4]], device=d).sum(0)
torch.tensor([1, 2], device=d).to(torch.float16)
torch.tensor([1., 2.], device=d).double().int()
torch.linspace(0, 1, 5, device=d)
torch.logspace(0, 2, 3, device=d)
torch.full((3,), 4, device=d)
torch.full_like(lab, 3)
torch.meshgrid(torch.arange(2, device=d), torch.arange(3, device=d), indexing="ij")[1]
torch.cartesian_prod(torch.arange(2, device=d), torch.arange(3, device=d))
torch.bincount(lab)
torch.bincount(lab, minlength=10)
torch.histc(lab.float(), 4)
torch.bucketize(lab, torch.tensor([1, 3], device=d))
torch.searchsorted(torch.arange(5, device=d), lab)
torch.isin(lab, torch.tensor([1, 2], device=d))
torch.equal(lab, lab.clone())
torch.equal(lab, lab + 1)
torch.allclose(lab.float(), lab.float() + 1)
bool((lab > 0).all()), bool((lab > 7).any())
(lab == 3).sum().item(), (lab == 3).float().mean().item()
[t.item() for t in lab]
[int(t) for t in lab.unbind()]
[len(t) for t in lab.split(lab[:3].tolist()[:0] or 4)]
F.pad(lab, (1, 2), value=-1)
torch.diff(lab)
torch.cumsum(lab, 0)
torch.roll(lab, 1)
torch.flip(lab, [0])
torch.rot90(lab.view(2, 3))
torch.outer(lab, lab).trace()
(lab.float() @ lab.float()).item()
torch.einsum("i,j->ij", lab, lab)
torch.linalg.norm(lab.float()).item()
torch.fft.fft(lab.float()).real.round()
torch.special.expit(lab.float())
F.softmax(lab.float(), 0).argmax().item()
F.relu(lab - 2)
torch.nan_to_num(torch.tensor([float("nan"), 1.0], device=d))
torch.isnan(torch.tensor([float("nan"), 1.0], device=d)).any().item()
torch.logical_xor(lab > 2, lab > 3)
lab.new_tensor([1, 2]).expand(2, 2)
lab.new_zeros(3), lab.new_full((2,), 5), lab.new_ones(2)
torch.randperm(5, device=d).sort()[0]
torch.randint(3, 4, (4,), device=d)
torch.empty(3, dtype=torch.long, device=d).fill_(3)
torch.nonzero(lab, as_tuple=True)[0]
torch.argwhere(lab > 2)
torch.count_nonzero(lab)
lab.view(2, 3).any(dim=1)
lab.view(2, 3).max(dim=1).values
lab.view(2, 3).max(dim=1)[1]
lab.view(2, 3).sum(dim=1, keepdim=True) / 2
lab.type(torch.float32).type_as(x)
lab.to(dtype=torch.int8).cpu().numpy().tolist()
torch.complex(lab.float(), lab.float()).abs()
torch.tensor(3, device=d).item() * 2
torch.nn.functional.interpolate(lab.float().view(1, 1, 2, 3), scale_factor=2)
torch.block_diag(torch.eye(2, device=d), torch.ones(1, 2, device=d))
torch.triu_indices(3, 3, device=d)
torch.vander(lab.float(), 3)
torch.clone(lab)
torch.nn.utils.rnn.pad_sequence([lab[:2], lab[:4]], batch_first=True)
torch.as_tensor([1, 2], device=d)
torch.ones(2000, 2000, device=d, dtype=torch.bool).tril().sum().item()
torch.eye(1000, device=d).bool().logical_not().nonzero().shape
torch.zeros(3, 4, device=d).index_add(0, torch.tensor([0, 2], device=d), torch.ones(2, 4, device=d))
torch.zeros(4, device=d).scatter_reduce(0, lab[:4] % 4, torch.ones(4, device=d), "sum")
torch.kron(lab[:2], lab[:2])
torch.multinomial(torch.tensor([0.0, 1.0, 0.0], device=d), 1).item()
torch.bernoulli(torch.ones(3, device=d))
lab.median().item(), lab.mode()[0].item(), lab.kthvalue(2)[0].item()
lab.float().quantile(0.5).item()
torch.tensor([3, 1], device=d).max(torch.tensor([2, 2], device=d))
torch.maximum(lab, lab.flip(0))
lab.numpy(force=True).tolist()
torch.arange(90, device=d).remainder(3).unique()
torch.arange(90, device=d).remainder(3).unique(return_counts=True)[1]
torch.unique_consecutive(torch.arange(90, device=d) // 40)
torch.unique(torch.arange(90, device=d).view(30, 3).remainder(3), dim=0)
[int((lab == each).sum()) for each in lab.repeat(20).unique()]
torch.ones(2, 3, 4, device=d).nonzero(as_tuple=True)[2]
piecewise(lambda a: a[1:3].copy_(lab[:2]), slice(1, 3))
piecewise(lambda a: (a[0].fill_(4), a.__setitem__(3, lab[2])), [0, 3])
copied(lab)
""".strip().splitlines()

SCRIPT = r"""
import torch
import torch.nn.functional as F

def plain(result):
    if isinstance(result, torch.Tensor):
        return [str(result.dtype), result.tolist()]
    return [plain(each) for each in result] if isinstance(result, (tuple, list)) else result

def copied(tensor):
    host = torch.empty(6, dtype=torch.long)
    host.copy_(tensor)
    return host

def value(expression, d):
    x = torch.arange(36.0, device=d).view(6, 6)
    lab = torch.tensor([3, 1, 4, 1, 5, 2]).to(d)
    def written(write):
        copy = lab.clone()
        write(copy)
        return copy
    def piecewise(write, place):
        made = torch.empty(6, dtype=torch.long, device=d)
        write(made)
        return made[place]
    names = {"torch": torch, "F": F, "copied": copied, "x": x, "lab": lab, "d": d}
    return plain(eval(expression, {**names, "written": written, "piecewise": piecewise}))

def is_same(one, other):
    if isinstance(one, float):
        return one == other or abs(one - other) < 1e-5
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other

for number, expression in enumerate(EXPRESSIONS):
    try:
        wanted, found = value(expression, "cpu"), value(expression, "cuda")
        if not is_same(wanted, found):
            print(expression, wanted, found)
    except Exception as error:
        print(expression, repr(error))
print("compared", len(EXPRESSIONS))
"""


def test_expressions_of_known_values_have_the_values_of_the_host(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(f"EXPRESSIONS = {EXPRESSIONS!r}\n{SCRIPT}")
    assert done.stdout.splitlines() == [f"compared {len(EXPRESSIONS)}"], done.stderr
    # Nothing of it is a size that had to be assumed, and random numbers are said to be others.
    assert done.report["assumed_sizes"] == 0
    assert "Random numbers from the card" in " ".join(done.report["assumptions"])


def test_a_mask_of_the_hosts_selects_as_much_as_on_a_real_card(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        scores = torch.nn.Linear(64, 256).cuda()(torch.ones(256, 64).cuda())
        labels = torch.arange(128).repeat(2)
        same = (labels[None] == labels[:, None]).float().cuda()
        others = ~torch.eye(256, dtype=torch.bool).to("cuda")
        same = same[others].view(256, -1)
        scores = scores[others].view(256, -1)
        print(*scores.shape, *scores[same.bool()].shape, *scores[~same.bool()].shape)
        """
    )
    assert done.stdout.split() == ["256", "255", "256", "65024"], done.stderr
    assert done.report["assumptions"] == []


def test_random_numbers_are_possible_ones_and_leave_the_scripts_own_alone(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        torch.manual_seed(3)
        first = torch.rand(2).tolist()
        torch.manual_seed(3)
        chosen = (torch.rand(10000, device="cuda") < 0.15).nonzero()
        order = torch.randperm(50, device="cuda").tolist()
        length = torch.randint(5, 9, (1,), device="cuda").item()
        print(1200 < len(chosen) < 1800, sorted(order) == list(range(50)), 5 <= length < 9)
        print(torch.rand(2).tolist() == first)
        """
    )
    assert done.stdout.split() == ["True"] * 4, done.stderr
    (sentence,) = done.report["assumptions"]
    assert sentence == (
        "Random numbers from the card have the distribution of a real run, not its values "
        "(values that depend on them are read at script.py:6, script.py:7, script.py:8)"
    )


def test_following_values_keeps_nothing_on_the_card_and_is_bounded_on_the_host(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import gc, resource, torch
        def resident_mib():
            return int(open("/proc/self/statm").read().split()[1]) * 4 >> 10
        counter = torch.zeros((), dtype=torch.long, device="cuda")
        for _ in range(20000):
            counter = counter + 1
        print(counter.item())
        before = torch.cuda.memory_allocated()
        held = [torch.ones(1 << 20, dtype=torch.long, device="cuda") + n for n in range(100)]
        start = resident_mib()
        print(sum(each[0].item() for each in held))
        print(resident_mib() - start < 600)
        del held, _
        print(torch.cuda.memory_allocated() == before)
        """
    )
    assert done.stdout.split() == ["20000", str(sum(range(1, 101))), "True", "True"], done.stderr


def test_tensors_of_a_kind_of_their_own_are_told_the_functions_that_scripts_know(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        import torch.nn.functional as F

        class Marked(torch.Tensor):
            seen = []
            @classmethod
            def __torch_function__(cls, function, types, arguments=(), options=None):
                cls.seen.append(function)
                return super().__torch_function__(function, types, arguments, options or {})

        marked = torch.ones(2, 2).cuda().as_subclass(Marked)
        torch.cat([marked]), F.linear(marked, marked), marked.sort(), torch.einsum("ij->i", marked)
        wanted = [torch.cat, F.linear, torch.Tensor.sort, torch.einsum]
        print([each in Marked.seen for each in wanted])
        """
    )
    assert done.stdout.strip() == "[True, True, True, True]", done.stderr
