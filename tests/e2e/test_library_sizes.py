"""Workspaces of cuFFT, cuSOLVER and cuSPARSE, and tables of them that were recorded elsewhere."""

from __future__ import annotations

from conftest import MIB, PROGRAM, PYTHONS, Rehearse

FACTORISATIONS = """
import torch
L = torch.linalg
for shape in ((64, 64), (8, 16, 16)):
    a = torch.randn(*shape, device="cuda", requires_grad=True)
    b = torch.randn(*shape[:-1], 4, device="cuda")
    tall = torch.randn(*shape[:-2], 2 * shape[-2], shape[-1], device="cuda")
    for work in (
        lambda: L.cholesky(a), lambda: L.inv(a), lambda: L.solve(a, b), lambda: L.det(a),
        lambda: L.slogdet(a)[1], lambda: L.lu(a)[1], lambda: L.qr(a)[0], lambda: L.svdvals(a),
        lambda: L.eigh(a)[0], lambda: L.eig(a)[0].abs(), lambda: L.matrix_exp(a),
        lambda: L.pinv(a), lambda: L.solve_triangular(a, b, upper=False), lambda: L.lstsq(a, b)[0],
    ):
        work().sum().backward()
    L.svd(tall, full_matrices=False), L.qr(tall, mode="complete"), L.lstsq(tall, tall)
    L.ldl_factor(a.detach()), torch.cholesky_inverse(a.detach())
print("reached the end")
"""

TRANSFORMS = """
import torch
F = torch.fft
x = torch.randn(4, 3, 32, 48, device="cuda", requires_grad=True)
for work in (
    lambda: F.fft(x), lambda: F.irfft(F.rfft(x)), lambda: F.irfft2(F.rfft2(x)), lambda: F.fftn(x),
    lambda: F.fft(x, dim=1), lambda: F.rfftn(x, dim=(1, 2, 3)),
):
    work().abs().sum().backward()
sound, window = torch.randn(2, 16000, device="cuda"), torch.hann_window(400, device="cuda")
spectrum = torch.stft(sound, 400, 160, window=window, return_complex=True)
torch.istft(spectrum, 400, 160, window=window)
print("reached the end")
"""

SPARSE = """
import torch
rows = torch.arange(64, device="cuda")
values = torch.ones(64, device="cuda", requires_grad=True)
dense = torch.randn(64, 8, device="cuda", requires_grad=True)
coordinates = torch.sparse_coo_tensor(torch.stack([rows, rows]), values, (64, 64))
torch.sparse.mm(coordinates, dense).sum().backward()
print("entries", coordinates.coalesce()._nnz())
offsets = torch.arange(65, device="cuda")
compressed = torch.sparse_csr_tensor(offsets, rows, values.detach(), (64, 64))
(compressed @ dense).sum().backward()
with torch.no_grad():
    compressed @ dense[:, 0], torch.addmm(dense, compressed, dense)
    torch.triangular_solve(dense, compressed)
    torch.sparse.sampled_addmm(compressed, dense, dense.t())
print("reached the end")
"""


def test_factorisations_and_solvers_run(rehearse: Rehearse) -> None:
    done = rehearse(FACTORISATIONS).expect(0)
    assert "reached the end" in done.stdout
    assert any("no infinities or NaNs" in sentence for sentence in done["assumptions"])


def test_fourier_transforms_run(rehearse: Rehearse) -> None:
    assert "reached the end" in rehearse(TRANSFORMS).expect(0).stdout


def test_products_of_sparse_matrices_with_dense_ones_run(rehearse: Rehearse) -> None:
    done = rehearse(SPARSE).expect(0)
    assert "entries 64\n" in done.stdout
    assert "reached the end" in done.stdout
    assert any("are for different places in coalesce()" in each for each in done["assumptions"])


def test_sizes_from_another_card_are_told(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(TRANSFORMS, "--gpu", "3060").expect(0)
    assert any("recorded on an H200" in sentence for sentence in done["assumptions"])


def test_a_users_table_comes_first(rehearse_reference: Rehearse) -> None:
    script = """
import torch
torch.fft.fft(torch.zeros(4, 64, dtype=torch.complex64, device="cuda"))
"""
    without = rehearse_reference(script).expect(0)
    table = without.folder / "own.tsv"
    table.write_text(
        "# ghostgpu table 1\n# card\tTesla T4\n"
        "cufftXtMakePlanMany\tn=64 batch=4 from=c32:packed to=c32:packed in=c32\t"
        f"work_bytes={64 * MIB}\n"
    )
    with_table = rehearse_reference(script, "--library-sizes", str(table)).expect(0)
    added = with_table["peak_allocated_bytes"] - without["peak_allocated_bytes"]
    assert added == 64 * MIB
    assert any("another card (Tesla T4)" in sentence for sentence in with_table["assumptions"])


def test_a_file_that_is_no_table_is_refused(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference("print('never')", "--library-sizes", "train.py").expect(2)
    assert "train.py is not a table" in done.stderr
    assert "never" not in done.stdout


def test_a_recording_is_what_the_libraries_answered(rehearse: Rehearse, any_python: str) -> None:
    """On a virtual card the recorder records our own libraries, in the same way."""
    script = """
import torch
from torch import nn
nn.Sequential(nn.Conv2d(3, 16, 3), nn.Conv2d(16, 8, 1)).cuda()(torch.zeros(2, 3, 32, 32).cuda())
nn.LSTM(16, 32, 2, dropout=0.1).cuda()(torch.zeros(5, 2, 16).cuda())
torch.fft.rfft(torch.zeros(64, 4096).cuda())
torch.linalg.inv(torch.eye(64).cuda())
rows = torch.arange(65).cuda()
a = torch.sparse_csr_tensor(rows, rows[:64], torch.ones(64).cuda(), (64, 64))
a @ torch.ones(64, 8).cuda()
"""
    command = (str(PROGRAM), "calibrate", "-o", "table.tsv", "--python", any_python, "train.py")
    done = rehearse(script, command=command).expect(0)
    lines = (done.folder / "table.tsv").read_text().splitlines()
    assert lines[0] == "# ghostgpu table 1"
    assert "# multiprocessors\t132" in lines and "# capability\t9.0" in lines
    rows = [line for line in lines if not line.startswith("#")]
    assert rows == sorted(set(rows))
    fields = [row.split("\t") for row in rows]
    assert all(len(row) == 3 for row in fields)
    asked = {row[0] for row in fields}
    assert asked >= {
        "cudnn.heuristics",
        "cudnn.workspace",
        "cudnnDropoutGetStatesSize",
        "cudnnGetRNNTempSpaceSizes",
        "cufftXtMakePlanMany",
        "cusolverDnSgetrf_bufferSize",
        "cusparseSpMM_bufferSize",
    }
    answers = {(row[0], row[1]): row[2] for row in fields}
    assert answers["cudnnDropoutGetStatesSize", ""] == "state_bytes=6488064"
    assert answers["cusolverDnSgetrf_bufferSize", "m=64 n=64 lda=64"] == "elements=320"
    again = rehearse(script, command=command).expect(0)
    assert "0 of them new" in again.stderr


def test_a_recorded_run_is_the_same_with_its_own_table(rehearse_reference: Rehearse) -> None:
    script = """
import torch
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 32, 3)).cuda()
net(torch.zeros(8, 3, 64, 64).cuda()).sum().backward()
nn.GRU(64, 128).cuda()(torch.zeros(32, 16, 64).cuda())[0].sum().backward()
"""
    record = (str(PROGRAM), "calibrate", "-o", "table.tsv", "--python", PYTHONS[0], "train.py")
    plain = rehearse_reference(script, command=record).expect(0)
    with_table = rehearse_reference(script, "--library-sizes", "table.tsv", "--no-cudnn").expect(0)
    for field in ("peak_allocated_bytes", "peak_reserved_bytes"):
        assert with_table[field] == plain[field]


def test_a_script_that_asks_nothing_records_nothing(rehearse_reference: Rehearse) -> None:
    command = (str(PROGRAM), "calibrate", "-o", "table.tsv", "train.py")
    done = rehearse_reference("print('hello')", command=command).expect(2)
    assert "nothing was recorded" in done.stderr
    assert not (done.folder / "table.tsv").exists()
