"""Likeness of questions and their evidence by the words they share."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import collections
import math
import re

from mesa_pipeline.policies.sandbox import ml


def words_of(q, sources):
    """The different words of the question ("Q") and of the previews of the structures named, as a set."""
    texts = [q["question"][:4000]] if "Q" in sources else []
    texts += [q["previews"][name]["text"] for name in sources if name in q["previews"]]
    return set(re.findall(r"[a-z_]{2,24}", " ".join(texts).lower()))


def learn_vocabulary(documents, size):
    """Weights of the most frequent words that are neither rare nor everywhere: log(rows / rows with the word)."""
    counts = collections.Counter(word for words in documents for word in words)
    least, most = max(3, 0.03 * len(documents)), 0.9 * len(documents)
    kept = sorted((word for word, n in counts.items() if least <= n < most), key=lambda word: (-counts[word], word))
    return {word: math.log(len(documents) / counts[word]) for word in kept[:size]}


def word_vector(words, vocabulary):
    """Weights of the words that occur, scaled to length one."""
    line = [weight if word in words else 0.0 for word, weight in vocabulary.items()]
    length = math.sqrt(math.fsum(value * value for value in line))
    return [value / length for value in line] if length else line


def learn_contexts(rows, sources, clusters):
    """Kinds of evidence: clusters of training questions by the words of their previews."""
    documents = [words_of(row, sources) for row in rows]
    vocabulary = learn_vocabulary(documents, 400)
    centres = ml.kmeans([word_vector(words, vocabulary) for words in documents], clusters) if vocabulary else []
    weights = [[round(c * w, 4) for c, w in zip(centre, vocabulary.values())] for centre in centres]
    return {"centres": [{w: v for w, v in zip(vocabulary, line) if v > 0.003} for line in weights]}


def context(contexts, q, sources):
    """The cluster whose centre is nearest; empty where no known word occurs."""
    words = words_of(q, sources)
    scores = [math.fsum(v for w, v in centre.items() if w in words) for centre in contexts["centres"]]
    return str(scores.index(max(scores))) if any(score > 0 for score in scores) else ""
