"""Questions over a simulated history, each kind designed for certain memory structures.

To add a kind: a drafting function in the module of its question type, and a line in that module's ``KINDS``.
"""
