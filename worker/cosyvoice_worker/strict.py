"""All the problems of a document at once, where msgspec alone would stop at the first."""

from __future__ import annotations

import msgspec

# What a stranger may send is told back only so far: an answer must not be many times as long as its question.
UNKNOWN_FIELDS_TOLD = 8
NAME_CHARACTERS_TOLD = 63


def problems_of(document: object, kind: type[msgspec.Struct], path: str = "") -> list[str]:
    """What keeps `document` (decoded JSON) from being a `kind`, one text for each field, in the order of the fields."""
    if not isinstance(document, dict):
        return [f"{path or 'the document'}: expected an object, got {_kind_of(document)}"]
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    problems = []
    for name, field in fields.items():
        where = f"{path}.{name}" if path else name
        if name not in document:
            if field.required:
                problems.append(f"{where}: missing")
        elif isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            problems += problems_of(document[name], field.type, where)
        else:
            try:
                msgspec.convert(document[name], field.type)
            except msgspec.ValidationError as error:
                problems.append(f"{where}: {_reason(error)}")
    unknown = [name for name in document if name not in fields]
    known = ", ".join(fields)
    for name in unknown[:UNKNOWN_FIELDS_TOLD]:
        problems.append(f"{path}.{_cut(name)}: unknown field (known: {known})".lstrip("."))
    if len(unknown) > UNKNOWN_FIELDS_TOLD:
        problems.append(f"{path or 'the document'}: {len(unknown) - UNKNOWN_FIELDS_TOLD:,} further unknown fields")
    return problems


def _cut(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS_TOLD else name[:NAME_CHARACTERS_TOLD] + "…"


def _kind_of(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _reason(error: msgspec.ValidationError) -> str:
    """msgspec's own words, which begin in the middle of a sentence of ours."""
    text = str(error)
    return text[:1].lower() + text[1:]
