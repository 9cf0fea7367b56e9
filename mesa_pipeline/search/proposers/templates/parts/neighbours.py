"""Average outcomes of the training questions that are most alike."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import math

from mesa_pipeline.search.proposers.templates.parts.words import learn_vocabulary, words_of


def learn_neighbours(rows, table, genes):
    """Which rows hold each word, and what each row gained; the rarest words of a row stand for it."""
    documents = [words_of(row, genes["sources"]) for row in rows]
    vocabulary = learn_vocabulary(documents, 600)
    postings = {}
    for row, words in enumerate(documents):
        known = sorted((word for word in words if word in vocabulary), key=lambda word: (-vocabulary[word], word))[:20]
        length = math.sqrt(math.fsum(vocabulary[word] ** 2 for word in known))
        for word in known:
            postings.setdefault(word, []).append([row, round(vocabulary[word] ** 2 / length, 3)])
    gains = [[round(v - s, 4) for v, s in zip(line, table["start"])] for line in table["values"]]
    return {"postings": postings, "gains": gains}


def predict_neighbours(model, q, size, genes):
    """Mean gain of the nearest rows, weighted by likeness; ``pull`` rows without any gain stand against them."""
    scores = {}
    for word in sorted(words_of(q, genes["sources"])):
        for row, weight in model["postings"].get(word, ()):
            scores[row] = scores.get(row, 0.0) + weight
    nearest = sorted(scores.items(), key=lambda item: (-round(item[1], 6), item[0]))[: genes["k"]]
    top = nearest[0][1] if nearest else 1.0
    shares = [(row, score / top) for row, score in nearest]
    total = math.fsum(share for _, share in shares) + genes["pull"]
    return [math.fsum(share * model["gains"][row][k] for row, share in shares) / total for k in range(size)]
