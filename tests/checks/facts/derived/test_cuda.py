"""CUDA versions read out of texts, and the tables by which drivers, wheels and GPUs are placed."""

from __future__ import annotations

import pytest

from checks.facts.derived.cuda import DRIVER_CUDA, SM_TOOLKIT, TORCH_CUDA, lookup, number, of_driver, of_torch, series


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("12.8", 12.8),
        ("cuda-12.8", 12.8),
        ("12.8.93", 12.8),
        ("V12.8.61", 12.8),
        ("13", 13.0),
        ("release 12.4, V12.4.131", 12.4),
        (12.9, 12.9),
        (13, 13.0),
        ("none", None),
        ("", None),
        (None, None),
        (False, None),
        (True, None),
    ],
)
def test_a_cuda_version_is_read_out_of_any_text(text: object, version: float | None) -> None:
    assert number(text) == version


@pytest.mark.parametrize(
    ("driver", "highest"),
    [
        ("570.195.03", 12.8),
        ("569.9", 12.7),
        ("580.95.05", 13.0),
        ("535.54.03", 12.2),
        ("999.1", 13.1),
        ("470", 11.4),
        ("390.1", None),
        ("", None),
        (None, None),
    ],
)
def test_driver_branch_tells_the_highest_cuda(driver: object, highest: float | None) -> None:
    assert of_driver(driver) == highest


@pytest.mark.parametrize(
    ("version", "built"),
    [
        ("2.11.0+cu130", 13.0),
        ("2.9.1+cu126", 12.6),
        ("2.9.1", 12.8),
        ("2.7.0", 12.6),
        ("2.12.0", 13.0),
        ("2.9.0+gitabc", 12.8),
        ("2.9.0a0+nv25.10", 12.8),
        ("2.9.1+cpu", None),
        ("2.9.1+rocm6.4", None),
        ("1.13.1", None),
        ("", None),
        (None, None),
    ],
)
def test_torch_wheel_tells_its_cuda(version: object, built: float | None) -> None:
    assert of_torch(version) == built


@pytest.mark.parametrize(
    ("text", "pair"), [("2.9.1", (2, 9)), ("v3.10", (3, 10)), ("torch 2.8.0+cu128", (2, 8)), ("2", None), (None, None)]
)
def test_a_series_is_major_and_minor(text: object, pair: tuple[int, int] | None) -> None:
    assert series(text) == pair


@pytest.mark.parametrize(
    ("key", "value"), [((2, 5), 1.0), ((2, 6), 1.0), ((3, 0), 2.0), ((9, 9), 2.0), ((2, 4), None), (None, None)]
)
def test_the_last_row_at_or_below_a_key_counts(key: tuple[int, int] | None, value: float | None) -> None:
    assert lookup((((2, 5), 1.0), ((3, 0), 2.0)), key) == value


def test_tables_rise_so_that_the_last_row_below_is_the_right_one() -> None:
    assert list(DRIVER_CUDA) == sorted(DRIVER_CUDA)
    assert list(TORCH_CUDA) == sorted(TORCH_CUDA)
    assert SM_TOOLKIT[100] < SM_TOOLKIT[103] < SM_TOOLKIT[110]
