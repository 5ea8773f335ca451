"""Values that nobody knows read as ordinary ones: checks pass, and arithmetic works."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from conftest import Rehearse, needs_torch

from ghostgpu.agent.values.waiting_loops import loop_depends_on

# An expression over `x` (8x4 on the card, of a layer), its value, and its value with zeros.
READS = [
    ("x.mean().item()", "0.5", "0.0"),
    ("round(math.log10(1 / x[0, 0].item()), 3)", "0.301", "ZeroDivisionError"),
    ("x.half().sum().item()", "0.5", "0.0"),
    ("len(set(x.flatten().tolist())), x.cpu().sum(0).tolist() == [0.0] * 4", "*", "(1, True)"),
    ("x.tolist() == x.cpu().tolist() == x.cpu().clone().tolist()", "True", "True"),
    ("x.argmax(1).tolist()", "[0, 0, 0, 0, 0, 0, 0, 0]", "[0, 0, 0, 0, 0, 0, 0, 0]"),
    ("torch.multinomial(x.softmax(1), 1).max().item()", "0", "0"),
    ("torch.isfinite(x).all().item()", "True", "False"),
    ("torch.isnan(x).any().item()", "False", "False"),
    ("bool(torch.isnan(x.sum()))", "False", "False"),
    ("bool(torch.isfinite(x.sum()))", "True", "False"),
    ("bool(~torch.isnan(x.sum()))", "True", "False"),
    ("bool((x.min() >= 0) & (x.max() <= 1))", "True", "False"),
    ("bool(x.min() >= 0), bool(x.sum() > 1e4), bool(x.sum() == x.mean())", "*", "*"),
    ("bool((x > 3).all()), bool((x > 0).any())", "(True, False)", "(False, False)"),
    ("torch.equal(x, x + 1), torch.allclose(x, x + 1)", "(True, True)", "(False, False)"),
    ("(x > 0).sum().item(), (x > 0).sum(1)[0].item()", "(32, 4)", "(0, 0)"),
    ("len(x[x > 0]) == (x > 0).sum().item()", "True", "False"),
    ("(x > 0).sum(1).max().item()", "4", "0"),
    ("(x > 0).sum().float().item()", "32.0", "0.0"),
    ("torch.isnan(x).sum().item(), (x != x).sum().item()", "(0, 0)", "(0, 0)"),
    ("(torch.isnan(x) | ~torch.isfinite(x)).sum().item()", "0", "0"),
    ("torch.isfinite(x).sum().item(), (x == x).float().mean().item()", "(32, 1.0)", "(0, 0.0)"),
    ("torch.isnan(x).float().max().item(), (x != x).sum().div(9).item()", "(0.0, 0.0)", "*"),
    ("bool(torch.isnan(x).all()), bool(torch.isfinite(x).any())", "(False, True)", "*"),
    ("(x > 3).float().sum().item(), (x > 3).long().sum().item()", "(32.0, 32)", "(0.0, 0)"),
    ("(x > 3).int().sum(1).tolist()[0], (x > 3).float().mean().item()", "(4, 0.5)", "(0, 0.0)"),
    ("len(x[torch.isnan(x)]), len(x[~torch.isnan(x)])", "(0, 32)", "(32, 32)"),
    ("(x == 1).sum().item(), (x.argsort(1) == 3).sum().item()", "(32, 32)", "(0, 0)"),
    ("(x != x + 1).sum().item(), (x < 0).sum().item()", "(32, 32)", "(0, 0)"),
    ("torch.unique(x.argmax(1), return_counts=True)[1].tolist()", f"{[1] * 8}", f"{[1] * 8}"),
    ("(x > 0).unique(return_counts=True)[1].tolist()", "[16, 16]", "[16, 16]"),
    ("len(x.mul(255).byte().repeat(9, 1).unique()), len((x > 0).unique())", "(256, 2)", "(256, 2)"),
    ("sum(torch.unique(x, dim=0, return_counts=True)[1].tolist())", "8", "8"),
    ("x.softmax(1)[0].tolist()", "[0.25, 0.25, 0.25, 0.25]", "[0.0, 0.0, 0.0, 0.0]"),
    ("1 / (x.max() - x.min()).item()", "4.0", "ZeroDivisionError"),
    ("(x.mean() + torch.full((), 2.0).cuda()).item()", "2.5", "0.0"),
    ("torch.max(x.sum(), x.mean() * 3).item(), (x.mean() / 2).sqrt().item()", "(1.5, 0.5)", "*"),
    ("(x.mean() - x.sum()).item(), (x.mean() / (x.mean() - x.sum())).item()", "(0.5, 1.0)", "*"),
    ("1 / (x.max().item() - x.min().item())", "4.0", "ZeroDivisionError"),
    ("torch.min(x, x + 1)[0, 0].item(), x.min(1).values[0].item()", "(0.5, 0.25)", "(0.0, 0.0)"),
    ("tuple(torch.normal(x, x).shape)", "(8, 4)", "RuntimeError"),
]

SCRIPT = """
import math, torch
x = torch.nn.Linear(4, 4).cuda()(torch.ones(8, 4).cuda()).detach()
for expression in EXPRESSIONS:
    try:
        print(eval(expression))
    except Exception as error:
        print(type(error).__name__)
"""


@needs_torch
@pytest.mark.parametrize("policy", ["plausible", "zero"])
def test_unknown_values_read_as_the_policy_says(rehearse_on_card: Rehearse, policy: str) -> None:
    column = 1 if policy == "plausible" else 2
    script = f"EXPRESSIONS = {[each[0] for each in READS]!r}\n{SCRIPT}"
    done = rehearse_on_card(script, values=policy)
    wanted = [each[column] for each in READS]
    found = ["*" if want == "*" else line for want, line in zip(wanted, done.stdout.splitlines())]
    assert found == wanted, done.stderr


@needs_torch
def test_a_solver_that_adds_up_its_steps_arrives(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        net = torch.nn.Linear(4, 4).cuda()
        end = torch.tensor(1.0).cuda()
        time, step, state, rounds = torch.zeros_like(end), None, torch.ones(8, 4).cuda(), 0
        with torch.no_grad():
            while end > time:
                change = net(state)
                error = change.pow(2).mean().sqrt()
                if error <= 1:
                    time = time + 0.1 / error
                    state = state + change
                rounds += 1
        print(rounds)
        """
    )
    assert done.stdout.strip() == "8", done.stderr


@needs_torch
def test_probabilities_of_a_network_add_up_to_one(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        x = torch.nn.Linear(4, 5).cuda()(torch.ones(8, 4).cuda())
        probabilities = torch.nn.functional.softmax(x, dim=-1)
        print(sum(probabilities[0].detach().cpu().tolist()))
        print(torch.softmax(x, 0).sum(0).shape[0], probabilities.squeeze().cpu()[3].sum().item())
        """
    )
    first, second = done.stdout.splitlines()
    assert abs(float(first) - 1) < 1e-6, done.stderr
    assert second.startswith("5 1.0") or second.startswith("5 0.99999"), done.stderr


@needs_torch
@pytest.mark.parametrize(("policy", "ending"), [("plausible", "held"), ("zero", "AssertionError")])
def test_assertions_hold(rehearse_on_card: Rehearse, policy: str, ending: str) -> None:
    done = rehearse_on_card(
        """
        import torch
        total = torch.nn.Linear(4, 4).cuda().weight.detach().sum()
        try:
            assert total + total > total, "a step of no size"
            assert not total > 0.1
            assert (not total > 0.1)
            assert not torch.equal(total, total + 1), "no step was made"
            assert torch.allclose(total, total + 1)
            print("held")
        except AssertionError:
            print("AssertionError")
        """,
        values=policy,
    )
    assert done.stdout.strip() == ending, done.stderr


@needs_torch
def test_a_gradient_scaler_skips_no_step_and_keeps_its_scale(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        net = torch.nn.Linear(4, 4).cuda()
        optimizer = torch.optim.Adam(net.parameters())
        scaler = torch.amp.GradScaler("cuda")
        for _ in range(3):
            scaler.scale(net(torch.ones(2, 4).cuda()).sum()).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
            scaler.step(optimizer)
            scaler.update()
            print(int(optimizer.state[net.weight]["step"]), scaler.get_scale())
        """,
        steps=0,
    )
    assert done.stdout.splitlines() == [f"{step} 65536.0" for step in (1, 2, 3)], done.stderr


@needs_torch
def test_numbers_copied_to_the_host_together_differ(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        x = torch.nn.Linear(4, 6).cuda()(torch.ones(300, 4).cuda()).detach()
        host = x.cpu()
        print(len(set(host.flatten().tolist())) > 1700, host.min() >= 0.25, host.max() <= 0.75)
        print(torch.linalg.matrix_rank(host).item(), torch.linalg.inv(torch.cov(host.T)).shape)
        product = (x.T @ x).cpu()
        torch.distributions.MultivariateNormal(torch.zeros(6), product)
        print(torch.linalg.solve(product.double(), host.T.double()).isfinite().all())
        boxes = x[:, :4].cpu()
        print((boxes[:, 2:] > boxes[:, :2]).all())
        wide = torch.zeros(6, 300).t()
        wide.copy_(x)
        print(wide.equal(host), x.half().cpu().unique().numel() > 200, x.mean().cpu().item())
        print(x.softmax(1).cpu().sum(1).max())
        """
    )
    assert done.stdout.splitlines() == [
        "True tensor(True) tensor(True)",
        "6 torch.Size([6, 6])",
        "tensor(True)",
        "tensor(True)",
        "True True 0.5",
        "tensor(1.)",
    ], done.stderr


@needs_torch
def test_distributions_take_what_a_network_gives_them(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        from torch.distributions import Beta, Categorical, Dirichlet, MultivariateNormal, Normal
        x = torch.nn.Linear(4, 4).cuda()(torch.ones(8, 4).cuda())
        for made in (
            Categorical(logits=x), Categorical(probs=x.softmax(-1)), Normal(x, x.exp()),
            Beta(x.exp(), x.exp()), Dirichlet(x.exp()),
            MultivariateNormal(x, torch.diag_embed(x.exp())),
        ):
            sample = made.sample()
            made.log_prob(sample).sum().backward(retain_graph=True)
            print(type(made).__name__, made.entropy().mean().item())
        """
    )
    assert len(done.stdout.splitlines()) == 6, done.stderr


# The text of a function, the number of the line that reads, whether the loop waits for it, and
# whether that loop lies in another one.
LOOPS = {
    "its condition": ("while x.item() > 1:\n    step()", 1, True, False),
    "a condition before break": ("while True:\n    if f(x.item()):\n        break", 2, True, False),
    "a condition before return": ("while 1:\n    if x.item():\n        return 3", 2, True, False),
    "a name in its condition": ("while y > 1:\n    y = x.item()", 2, True, False),
    "by way of other names": ("while y > 1:\n    z = x.item()\n    y = z + 1", 2, True, False),
    "a flag": ("while not a:\n    if x.item() > 1:\n        a = True", 2, True, False),
    "a counter": ("while n < 9:\n    y = x.item()\n    if y:\n        n += 1", 2, True, False),
    "the best": ("while n:\n    if x.item() > a:\n        a = 2\n    n -= 1", 2, False, False),
    "only a print": ("while n < 9:\n    print(x.item())\n    n += 1", 2, False, False),
    "a list": ("while n < 9:\n    losses.append(x.item())\n    n += 1", 2, False, False),
    "a for loop": ("for n in range(9):\n    if x.item() > 1:\n        break", 2, False, False),
    "no loop": ("if x.item():\n    return", 1, False, False),
    "in another": ("for b in c:\n    while x.item() > 1:\n        step()", 2, True, True),
    "another function's": ("while y:\n    def f():\n        return x.item()", 3, False, False),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_waits_for_a_value_that_decides_its_end(name: str, tmp_path: Path) -> None:
    text, line, waits, is_inside_another = LOOPS[name]
    file = tmp_path / "script.py"
    file.write_text("def function():\n" + textwrap.indent(text, "    ") + "\n")
    assert loop_depends_on(str(file), line + 1) == (waits, is_inside_another)


@needs_torch
def test_a_loop_that_waits_for_a_value_is_given_others_and_ended(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        from _ghostgpu.agent.values import waiting_loops
        waiting_loops.OTHERS_AFTER_SECONDS, waiting_loops.ENDS_AFTER_SECONDS = 0.2, 1.0
        net = torch.nn.Linear(4, 9).cuda()
        x = torch.ones(1, 4).cuda()
        while net(x).mean() > 0.01:
            pass
        print("left")
        while True:
            if net(x).argmax().item() == 7:
                break
        print("never")
        """
    )
    assert (done.code, done.stdout.split()) == (0, ["left"]), done.stderr
    assert done.report["waits_at"] == "script.py:11"
    sentence = "script.py:7: the loop is assumed to end by a value that only a real card computes"
    assert sentence in done.report["assumptions"]


@needs_torch
def test_a_loop_of_a_library_that_waits_for_a_value_is_given_others(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        from _ghostgpu.agent.values import waiting_loops
        waiting_loops.OTHERS_AFTER_SECONDS = 0.2
        x = torch.nn.Linear(4, 4).cuda()(torch.ones(8, 4).cuda())
        direction = torch.distributions.VonMises(x, x.exp())
        for _ in range(3):
            print(tuple(direction.sample().shape))
        """
    )
    assert done.stdout.splitlines() == ["(8, 4)"] * 3, done.stderr
    sentence = "script.py:8: the loop is assumed to end by a value that only a real card computes"
    assert sentence in done.report["assumptions"]


@needs_torch
def test_loops_that_end_by_themselves_are_not_taken_for_one_that_waits(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import time, torch
        from _ghostgpu.agent.values import waiting_loops
        waiting_loops.OTHERS_AFTER_SECONDS, waiting_loops.ENDS_AFTER_SECONDS = 0.1, 0.4
        net = torch.nn.Linear(4, 9).cuda()
        x = torch.ones(1, 4).cuda()
        def generated():
            tokens = []
            while True:
                token = net(x).argmax().item()
                if token == 7 or len(tokens) == 20:
                    return len(tokens)
                tokens.append(token)
        began, lengths = time.monotonic(), set()
        while time.monotonic() < began + 1.5:
            lengths.add(generated())
        print(lengths)
        while len(lengths) < 400:
            lengths.add(-len(lengths))
            time.sleep(0.002)
            if torch.isnan(net(x).sum()):
                break
        print(len(lengths))
        """
    )
    assert done.stdout.split() == ["{20}", "400"], done.stderr
    assert done.report["waits_at"] is None
