"""What a script lets go of is gone at once: the agent keeps nothing of it alive."""

from __future__ import annotations

import subprocess

from conftest import PYTHONS, Rehearse

# Prints what is still there after each training although nothing refers to it. Without the garbage
# collector, since cycles through the agent would last until it runs.
SCRIPT = """
import gc, sys, weakref
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

card = sys.argv[1]
watched = {}


def watch(**things):
    for name, thing in things.items():
        watched.setdefault(name, []).append(weakref.ref(thing))


def train(kind):
    data = TensorDataset(torch.zeros(64, 16), torch.zeros(64, dtype=torch.long))
    loader = DataLoader(data, 16, shuffle=True)
    layers = nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4)
    model = nn.Sequential(*layers).to(card)
    makers = {"sgd": torch.optim.SGD, "lbfgs": torch.optim.LBFGS}
    optimizer = makers.get(kind, torch.optim.Adam)(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = torch.amp.GradScaler(card, enabled=kind == "mixed")
    shapes = []
    model[0].register_forward_hook(lambda module, given, out: shapes.append(out.shape))
    for x, y in loader:
        watch(loaded=x)
        x, y = x.to(card), y.to(card)
        if kind == "lbfgs":
            optimizer.step(lambda: model(x).sum())
            continue
        with torch.autocast(card, enabled=kind == "mixed", dtype=torch.bfloat16):
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
        watch(batch=x, out=out, loss=loss)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        accuracy = (out.argmax(1) == y).float().mean()
        watch(accuracy=accuracy)
        accuracy.item()
    with torch.no_grad():
        scores = model(x)
        chosen = scores[scores > 0]
        watch(scores=scores, chosen=chosen)
    for state in optimizer.state.values():
        watch(**{name: part for name, part in state.items() if torch.is_tensor(part)})
    made = torch.eye(8, device=card)
    places, copy = (made > 0).nonzero(), made.clone()
    copy[0] = 2
    read = copy.cpu()
    watch(made=made, places=places, copy=copy, read=read, weight=model[0].weight)
    watch(data=data, loader=loader, model=model, layer=model[0], optimizer=optimizer)
    watch(schedule=schedule, scaler=scaler)


train("first")  # Imports libraries, in which exceptions leave cycles.
watched.clear()
gc.collect()
gc.disable()
for kind in ("adam", "sgd", "mixed", "lbfgs", "adam"):
    train(kind)
    for name, things in sorted(watched.items()):
        alive = sum(each() is not None for each in things)
        if alive:
            print(kind, name, alive, "of", len(things))
    watched.clear()
print("watched everything")
"""


def test_nothing_lives_longer_than_without_a_rehearsal(rehearse_reference: Rehearse) -> None:
    command = ("-c", SCRIPT)
    by_itself = subprocess.run(
        [PYTHONS[0], *command, "cpu"], capture_output=True, text=True, check=True
    ).stdout
    done = rehearse_reference(SCRIPT, "--full", command=(PYTHONS[0], "train.py", "cuda")).expect(0)
    end = done.stdout.index("watched everything")
    assert done.stdout[: end + len("watched everything\n")] == by_itself


def test_optimizer_state_of_an_earlier_fold_is_not_counted(rehearse: Rehearse) -> None:
    loop = """
        import torch
        models = []
        for fold in range(FOLDS):
            model = torch.nn.Linear(2048, 2048, bias=False).cuda()
            optimizer = torch.optim.Adam(model.parameters())
            model(torch.zeros(64, 2048).cuda()).sum().backward()
            optimizer.step()
            models.append(model)
    """
    one, four = (
        rehearse(loop.replace("FOLDS", folds), "--full")["peak_allocated_bytes"]
        for folds in ("1", "4")
    )
    # Each earlier fold leaves its weights and their gradients.
    assert four - one == 3 * 2 * (2048 * 2048 * 4)
