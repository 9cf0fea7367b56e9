"""Cues in the words of a question, as regular expressions over its lower-case text. None names a structure or a data set."""

from collections.abc import Mapping

CUES: Mapping[str, tuple[str, ...]] = {
    "form": (
        r"\bwhy\b|\breasons?\b|\brationale\b",
        r"\bhow (?:many|much|often)\b|\btotal\b|\bnumber of\b|\bcount\b",
        r"\bhow (?:did|does|do|was|were)\b",
        r"\bwhich\b",
        r"\bwhen\b|\bdates?\b",
        r"\bwho(?:se|m)?\b",
        r"\bwhere\b|\blocations?\b",
    ),
    "order": (
        r"\b(?:before|after|prior|preced\w*|follow\w*)\b",
        r"\b(?:first|initial\w*|begin\w*|start\w*)\b",
        r"\b(?:last|final\w*|latest|end\w*)\b",
        r"\b(?:between|from|until|so far|through)\b",
        r"\bsequence\b|\border\b|\bseries\b|\bchain\b",
        r"\bsteps?\s*#?\d+|\bturns?\s*#?\d+",
    ),
    "matter": (
        r"\bcaus\w*|\bbecause\b|\bresult\w*|\btrigger\w*|\bled to\b",
        r"\bstates?\b|\bstatus\b|\bchang\w*|\bupdat\w*",
        r"\bif\b|\bwould\b|\bcould\b|\bshould\b",
        r"\bpatterns?\b|\bstrateg\w*|\boverall\b|\bgoals?\b|\bsummar\w*",
        r"\berrors?\b|\bfail\w*|\bmistakes?\b|\binvalid\b",
        r"\bactions?\b|\bcommands?\b",
        r"\blist\b|\ball\b|\beach\b|\bevery\b",
        r"['\"`\u2018\u201c][^'\"`\u2019\u201d]{2,80}['\"`\u2019\u201d]",
    ),
}
"""Groups of cues: the form of the question, words of order, and what it is about."""

INTENTS: Mapping[str, str] = {
    "cause": r"\bwhy\b|\bcaus\w*|\breasons?\b|\bbecause\b|\bled to\b|\bresult\w*|\bprevent\w*|\bif\b|\bwould\b",
    "state": r"\bstates?\b|\bstatus\b|\bwhere\b|\blocations?\b|\bchang\w*|\bupdat\w*|\binventory\b|\bso far\b|\bhow many\b",
    "abstract": r"\boverall\b|\bpatterns?\b|\bstrateg\w*|\bgeneral\w*|\bsummar\w*|\bgoals?\b|\bphases?\b|\bapproach\b",
    "recall": r"\bwhat\b|\bwhich\b|\bwho\b|\bwhen\b|\bexact\w*|\blist\b|\bname\b|\bspecific\w*",
}
"""What a question asks for, in the terms of memory benchmarks: recall, cause, change of state, abstraction.
The common words of recall come last: where intents tie, the more telling one counts."""
