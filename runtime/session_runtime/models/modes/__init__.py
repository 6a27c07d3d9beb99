"""Tools for models and servers without calls of their own: told in words, called in words.

``told`` writes a request in these words, ``text`` and ``schema`` know the two forms of a call, ``reading``
reads the JSON of the second one. Which mode a profile uses is decided in ``config``.
"""

from session_runtime.models.modes.model import SchemaModel, TextModel

__all__ = ["SchemaModel", "TextModel"]
