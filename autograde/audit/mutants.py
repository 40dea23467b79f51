"""Systematic mutants: the small slips that a machine can make in a reference function.

Each mutant differs from the reference in one place: an operator, an offset, an axis, a comparison,
a line that is left out, two arguments that are swapped. It stands for what a person mistypes, as
the bank of misconceptions stands for what a person misunderstands.
"""

from __future__ import annotations
import __future__

import inspect
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

SWAPS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "/", "%": "//", "**": "*", "@": "*",
    "&": "|", "|": "&", "^": "&", "<<": ">>", ">>": "<<",
    "<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="),
    "==": "!=", "!=": "==", "is": "is not", "is not": "is", "in": "not in", "not in": "in",
    "and": "or", "or": "and",
}  # fmt: skip
TWINS = {
    "max": "min", "sum": "mean", "mean": "sum", "argmax": "argmin", "cos": "sin", "sin": "cos",
    "exp": "exp2", "log": "log2", "tril": "triu", "triu": "tril", "zeros": "ones", "ones": "zeros",
    "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum", "floor": "ceil",
    "min": "max", "argmin": "argmax", "sqrt": "square", "cumsum": "cumprod", "isfinite": "isnan",
    "append": "extend", "zeros_like": "ones_like", "ones_like": "zeros_like",
}  # fmt: skip
NOT_COMMUTATIVE = ("-", "/", "//", "%", "**", "@", "<<", ">>")


@dataclass(frozen=True)
class Mutant:
    """One changed place in a reference function, or in a private helper of it.

    before, after: the changed line, as it was and as it is; `after` may be "" (left out).
    """

    function: Callable
    before: str
    after: str

    @property
    def change(self) -> str:
        return (
            f"`{self.before}` becomes `{self.after}`" if self.after else f"`{self.before}` is gone"
        )


def mutants(reference: Callable) -> Iterator[Mutant]:
    """All mutants of a function of a module, and of the helpers with a leading underscore
    that it calls there; no two have the same code."""
    parts = {part.__name__: part for part in [reference, *helpers(reference)]}
    sources = {name: textwrap.dedent(inspect.getsource(part)) for name, part in parts.items()}
    for name, source in sources.items():
        seen = {source}
        tree = cst.parse_module(source)
        for old, new in _changes(tree):
            code = tree.deep_replace(old, new).code
            if code in seen:
                continue
            seen.add(code)
            made = _compiled(reference, {**sources, name: code})
            if made is not None:
                yield Mutant(made, *_changed_line(source, code))


def helpers(function: Callable) -> list[Callable]:
    """The private functions of its module that a function calls, and those that they call."""
    module, found, todo = vars(sys.modules[function.__module__]), {}, [function]
    while todo:
        for name in todo.pop().__code__.co_names:
            part = module.get(name)
            if name.startswith("_") and name not in found and inspect.isfunction(part):
                found[name] = part
                todo.append(part)
    return list(found.values())


def _compiled(reference: Callable, sources: dict[str, str]) -> Callable | None:
    """The reference made from these sources; None if they are no Python."""
    names = dict(vars(sys.modules[reference.__module__]))
    flags = __future__.annotations.compiler_flag
    try:
        for source in sources.values():
            with warnings.catch_warnings(action="ignore"):  # of code that is silly on purpose
                code = compile(source, "<mutant>", "exec", flags=flags)
            exec(code, names)
    except SyntaxError:
        return None
    return names[reference.__name__]


def _changed_line(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, as they were and as they are, each in one; "" where left out."""
    old, new = before.splitlines(), after.splitlines()
    start = next(i for i in range(len(old)) if i >= len(new) or old[i] != new[i])
    end = 1
    while end < min(len(old), len(new)) - start and old[-end] == new[-end]:
        end += 1
    lines = (x[start : len(x) - end + 1] for x in (old, new))
    text = [" ".join(" ".join(line.split("  #")[0] for line in part).split()) for part in lines]
    return text[0], "" if text[1] == "pass" else text[1]


# What can be changed ---------------------------------------------------------------------


def _changes(tree: cst.Module) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """(a node of the tree, what stands there in a mutant)"""
    (function,) = (part for part in tree.body if isinstance(part, cst.FunctionDef))
    names = [p.name.value for p in (*function.params.params, *function.params.kwonly_params)]
    for node in _walk(function):
        for kind, change in CHANGES:
            if isinstance(node, kind):
                for new in change(node):
                    yield node, cst.parse_expression(new) if isinstance(new, str) else new
        if isinstance(node, cst.Name) and node.value in names:
            yield from ((node, cst.Name(other)) for other in names if other != node.value)


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of a function's body that stand for something that it computes."""
    if isinstance(node, cst.FunctionDef):
        body = node.body.body
        documented = node.get_docstring() is not None
        for part in body[documented:]:
            yield from _walk(part)
        return
    if isinstance(node, cst.Import | cst.ImportFrom | cst.Annotation):
        return
    yield node
    children = node.children
    if isinstance(node, cst.Attribute | cst.Arg | cst.NamedExpr | cst.AnnAssign):
        children = [node.value]
    elif isinstance(node, cst.AssignTarget | cst.CompFor):
        children = [node.iter, *node.ifs] if isinstance(node, cst.CompFor) else []
    elif isinstance(node, cst.For):
        children = [node.iter, node.body]
    for child in children:
        yield from _walk(child)


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _symbol(operator: cst.CSTNode) -> str:
    return " ".join(_text(operator).split())


def _number(node: cst.Integer | cst.Float) -> Iterator[str]:
    value = float(node.value) if isinstance(node, cst.Float) else int(node.value, 0)
    yield from map(str, (value + 1, value - 1) if isinstance(value, int) else (2 * value,))


def _name(node: cst.Name) -> Iterator[str]:
    if node.value in ("True", "False"):
        yield str(node.value == "False")


def _unary(node: cst.UnaryOperation) -> Iterator[cst.CSTNode]:
    yield node.expression


def _binary(node: cst.BinaryOperation | cst.BooleanOperation) -> Iterator[cst.CSTNode]:
    symbol = _symbol(node.operator)
    other = cst.parse_expression(f"a {SWAPS[symbol]} b").operator
    yield node.with_changes(operator=other)
    if symbol in NOT_COMMUTATIVE:
        yield node.with_changes(left=_whole(node.right), right=_whole(node.left))
    yield from (node.left, node.right)


def _whole(node: cst.BaseExpression) -> cst.BaseExpression:
    """In parentheses, if it could fall apart without."""
    kinds = (
        cst.BinaryOperation,
        cst.UnaryOperation,
        cst.BooleanOperation,
        cst.Comparison,
        cst.IfExp,
    )
    apart = isinstance(node, kinds) and not node.lpar
    return cst.parse_expression(f"({_text(node)})") if apart else node


def _comparison(node: cst.Comparison) -> Iterator[cst.CSTNode]:
    for index, part in enumerate(node.comparisons):
        swaps = SWAPS[_symbol(part.operator)]
        for symbol in (swaps,) if isinstance(swaps, str) else swaps:
            other = cst.parse_expression(f"a {symbol} b").comparisons[0].operator
            parts = list(node.comparisons)
            parts[index] = part.with_changes(operator=other)
            yield node.with_changes(comparisons=parts)


def _call(node: cst.Call) -> Iterator[cst.CSTNode]:
    args = list(node.args)
    plain = [a for a in args if a.keyword is None and not a.star]
    if len(plain) > 1:
        first, second = (a.with_changes(value=b.value) for a, b in (plain[:2], plain[1::-1]))
        yield node.with_changes(args=[first, second, *args[2:]])
    for arg in args:
        if arg.keyword is not None or (len(plain) > 1 and arg is plain[-1]):
            kept = [a for a in args if a is not arg]
            kept[-1:] = [kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)] if kept else []
            yield node.with_changes(args=kept)
    if plain:
        yield _whole(plain[0].value)
    if isinstance(node.func, cst.Attribute):
        if _text(node.func.value) not in ("np", "torch", "math", "np.linalg"):
            yield node.func.value
        if twin := TWINS.get(node.func.attr.value):
            yield node.with_changes(func=node.func.with_changes(attr=cst.Name(twin)))
    elif isinstance(node.func, cst.Name) and (twin := TWINS.get(node.func.value)):
        yield node.with_changes(func=cst.Name(twin))


def _subscript(node: cst.Subscript) -> Iterator[cst.CSTNode]:
    yield node.value


def _slice(node: cst.Slice) -> Iterator[cst.CSTNode]:
    for end in ("lower", "upper", "step"):
        if getattr(node, end) is not None:
            yield node.with_changes(**{end: None})


def _choice(node: cst.IfExp) -> Iterator[cst.CSTNode]:
    yield from (node.body, node.orelse)


def _condition(node: cst.If | cst.While) -> Iterator[cst.CSTNode]:
    yield node.with_changes(test=cst.Name("False"))
    if isinstance(node, cst.If):
        yield node.with_changes(test=cst.Name("True"))


def _loop(node: cst.For) -> Iterator[cst.CSTNode]:
    for part in ("[1:]", "[:-1]", "[::-1]"):
        yield node.with_changes(iter=cst.parse_expression(f"list({_text(node.iter)}){part}"))


def _statement(node: cst.SimpleStatementLine) -> Iterator[cst.CSTNode]:
    if not isinstance(
        node.body[0], cst.Return | cst.Pass | cst.Raise | cst.Import | cst.ImportFrom
    ):
        yield node.with_changes(body=[cst.Pass()])


def _augmented(node: cst.AugAssign) -> Iterator[cst.CSTNode]:
    symbol = _symbol(node.operator).removesuffix("=")
    for text in (SWAPS[symbol] + "=", "="):
        yield (
            cst.parse_statement(f"a {text} {_text(node.value)}")
            .body[0]
            .with_changes(
                **{"target": node.target}
                if text != "="
                else {"targets": [cst.AssignTarget(target=node.target)]}
            )
        )


def _tuple(node: cst.Tuple) -> Iterator[cst.CSTNode]:
    for i in range(len(node.elements) - 1):
        values = [element.value for element in node.elements]
        values[i], values[i + 1] = values[i + 1], values[i]
        parts = [e.with_changes(value=v) for e, v in zip(node.elements, values, strict=True)]
        yield node.with_changes(elements=parts)


CHANGES: list[tuple[type, Callable]] = [
    (cst.Integer, _number),
    (cst.Float, _number),
    (cst.Name, _name),
    (cst.UnaryOperation, _unary),
    (cst.BinaryOperation, _binary),
    (cst.BooleanOperation, _binary),
    (cst.Comparison, _comparison),
    (cst.Call, _call),
    (cst.Subscript, _subscript),
    (cst.Slice, _slice),
    (cst.IfExp, _choice),
    (cst.If, _condition),
    (cst.While, _condition),
    (cst.For, _loop),
    (cst.SimpleStatementLine, _statement),
    (cst.AugAssign, _augmented),
    (cst.Tuple, _tuple),
]
