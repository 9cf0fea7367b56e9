"""The functions that template policies are made of, quoted word for word into their sources (see ``rendering``).

They are written in the language of policies: no types, no imports of their own, nothing but plain values, with ``ml`` and the
modules of the standard library as the sandbox provides them. The imports at the top of each file serve checks and tests
alone. Three kinds of functions meet here:

- *cells* say which group a question belongs to, as a text;
- ``learn_*`` turn training rows into a model, any JSON value; ``predict_*`` turn that model and a question into one expected
  value for each subset under consideration (``table["arms"]``);
- ``outcome_table`` and ``choose`` are what every policy begins and ends with.
"""
