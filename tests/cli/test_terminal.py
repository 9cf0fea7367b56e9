"""What is said on a terminal and in a file."""

import io

from rich.console import Console

from mesa_pipeline.cli.terminal import Terminal

SENTENCE = "our choice: " + "words that go on " * 8


def said(is_terminal: bool) -> list[str]:
    out = Console(file=io.StringIO(), width=40, force_terminal=is_terminal, soft_wrap=True, highlight=False)
    Terminal(out=out).say_below(SENTENCE)
    return out.file.getvalue().splitlines()


def test_a_terminal_shows_a_sentence_below_wrapped_between_words():
    lines = said(is_terminal=True)
    assert max(map(len, lines)) <= 40
    assert lines[0].startswith("  our choice")
    assert all(line.startswith("    ") for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == SENTENCE.strip()


def test_a_terminal_breaks_no_word_and_no_line_that_fits():
    address = "http://127.0.0.1:5000/" + "x" * 60
    out = Console(file=io.StringIO(), width=40, force_terminal=True, soft_wrap=True, highlight=False)
    Terminal(out=out).say(f"page  at {address}\n\n  name    value", hanging=6)
    assert out.file.getvalue().splitlines() == ["page  at", f"      {address}", "", "  name    value"]


def test_a_file_gets_it_on_one_line():
    assert said(is_terminal=False) == [f"  {SENTENCE.strip()}"]
