"""Linear algebra for policies: what would be slow or wrong written again in each of them.

Plain lists in, plain lists out; pure functions of their arguments; no randomness. A policy's source calls them as ``ml.ridge``
and so on. Loaded by the worker before it is confined, so this file imports numpy alone and nothing of the project.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.ma  # np.unique imports it when called, which a confined worker cannot

Rows = Sequence[Sequence[float]]
Model = dict[str, Any]
_ROUNDS = 20


def ridge(features: Rows, targets: Rows, strength: float) -> Model:
    """Least squares with a penalty on the size of the coefficients; the intercepts are free.

    Args:
        features: Shape ``(n, p)``.
        targets: Shape ``(n, m)``.
        strength: Weight of the penalty; 0 gives the least squares solution of smallest norm.

    Returns:
        ``centre`` (p numbers) and ``intercept`` (m numbers), the means of features and targets, and ``coefficients``, shape
        ``(p, m)``: JSON, to be given to ``predict``.

    Raises:
        ValueError: The shapes do not agree, or there is no row.
    """
    x, y = _matrix(features), _matrix(targets)
    if len(x) != len(y) or not len(x):
        raise ValueError(f"{len(x)} rows of features and {len(y)} of targets")
    centre, intercept = x.mean(axis=0), y.mean(axis=0)
    coefficients = _solve(x - centre, y - intercept, strength)
    return {"centre": centre.tolist(), "intercept": intercept.tolist(), "coefficients": coefficients.tolist()}


def ridge_cv(features: Rows, targets: Rows, groups: Sequence[int], strengths: Sequence[float]) -> Model:
    """``ridge`` with the strength that predicts left-out groups best; a tie goes to the larger strength.

    Args:
        features: Shape ``(n, p)``.
        targets: Shape ``(n, m)``.
        groups: n numbers; rows of one group are left out together.
        strengths: To choose from; the largest is taken where there is a single group.

    Returns:
        The model fitted to all rows, with ``strength``.

    Raises:
        ValueError: The shapes do not agree, there is no row, or no strength to choose from.
    """
    x, y, group = _matrix(features), _matrix(targets), np.asarray(groups)
    if not len(strengths) or len(group) != len(x):
        raise ValueError("ridge_cv needs a strength to choose from and a group for each row")
    held_out = [group == value for value in np.unique(group)]
    losses = dict.fromkeys(sorted(strengths, reverse=True), 0.0)
    if len(held_out) > 1:
        for out in held_out:
            centre, intercept = x[~out].mean(axis=0), y[~out].mean(axis=0)
            for strength in losses:
                coefficients = _solve(x[~out] - centre, y[~out] - intercept, strength)
                losses[strength] += float(((y[out] - intercept - (x[out] - centre) @ coefficients) ** 2).sum())
    best = min(losses, key=lambda strength: losses[strength])
    return {**ridge(features, targets, best), "strength": float(best)}


def predict(model: Model, features: Rows) -> list[list[float]]:
    """What a model of ``ridge`` expects: shape ``(n, m)`` for features of shape ``(n, p)``."""
    centred = _matrix(features) - np.asarray(model["centre"])
    expected: list[list[float]] = (np.asarray(model["intercept"]) + centred @ np.asarray(model["coefficients"])).tolist()
    return expected


def kmeans(points: Rows, clusters: int) -> list[list[float]]:
    """Centres of clusters by direction (cosine), each of length one or zero.

    The first centre is the point nearest to the mean, each next one the point furthest from all before, so no draw is needed.

    Args:
        points: Shape ``(n, p)``, n at least 1.
        clusters: Number of centres; n at most are returned.
    """
    x = _directions(_matrix(points))
    chosen = [int(np.argmax(np.round(x @ x.mean(axis=0), 9)))]
    while len(chosen) < min(clusters, len(x)):
        nearest = np.round((x @ x[chosen].T).max(axis=1), 9)
        chosen.append(int(np.argmin(nearest)))
    centres = x[chosen]
    for _ in range(_ROUNDS):
        member = np.argmax(np.round(x @ centres.T, 9), axis=1)
        sums = np.array([x[member == k].sum(axis=0) for k in range(len(centres))])
        centres = np.where(np.abs(sums).sum(axis=1, keepdims=True) > 0, _directions(sums), centres)
    found: list[list[float]] = centres.tolist()
    return found


def _solve(x: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
    if strength <= 0:
        coefficients: np.ndarray = np.linalg.pinv(x) @ y
        return coefficients
    solved: np.ndarray = np.linalg.solve(x.T @ x + strength * np.eye(x.shape[1]), x.T @ y)
    return solved


def _directions(x: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    scaled: np.ndarray = np.divide(x, lengths, out=np.zeros_like(x), where=lengths > 0)
    return scaled


def _matrix(rows: Rows) -> np.ndarray:
    matrix = np.array([list(map(float, row)) for row in rows], dtype=float)
    return matrix if matrix.ndim == 2 else matrix.reshape(len(rows), 0)
