from mesa_pipeline.reports import text


def test_a_clause_becomes_a_sentence() -> None:
    assert text.sentence("there was\nno champion") == "There was no champion."


def test_foreign_text_stays_on_one_printable_line() -> None:
    assert text.printable("a\x00b\ud800c\u202ed\n\n e") == "a\ufffdb\ufffdc\ufffdd e"
    assert text.printable("x" * 2_000_000) == "x" * (text.MAX_TEXT_CHARS - 1) + "…"
