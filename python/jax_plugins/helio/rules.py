"""Lowering rules: those that JAX has for every platform; where it has none, those for CPUs."""

import functools

from jax._src.export import _export
from jax._src.interpreters import mlir
from jax._src.lax.control_flow import conditionals
from jax._src.lib.mlir import ir

# What JAX lowers to custom calls of XLA's on every platform, and to LAPACK's functions on CPUs.
_AS_ON_CPU = frozenset({"geqrf", "householder_product", "lu", "ormqr", "svd", "tridiagonal_solve"})


def _without_sharding_rules(entry):
    """A CPU rule whose custom calls say nothing of how they may be sharded, which helio does not read."""

    @functools.wraps(entry.rule)
    def rule(ctx, *args, **kwargs):
        results = entry.rule(ctx, *args, **kwargs)
        for op in ir.InsertionPoint.current.block.operations:
            if "sdy.sharding_rule" in op.attributes:
                del op.attributes["sdy.sharding_rule"]
        return results

    return mlir.LoweringRuleEntry(rule, entry.inline)


class _CpuRules(dict):
    """Rules of helio's own, then those that only platforms like CPUs have.

    What has a rule for every platform is lowered by that, with the exceptions above. CPU rules are
    looked up when they are needed, so that libraries may register theirs at any time.
    """

    def _of_cpu(self, primitive):
        if primitive in mlir._lowerings and primitive.name not in _AS_ON_CPU:
            return None
        return mlir._platform_specific_lowerings["cpu"].get(primitive)

    def __contains__(self, primitive):
        return dict.__contains__(self, primitive) or self._of_cpu(primitive) is not None

    def __missing__(self, primitive):
        rule = self._of_cpu(primitive)
        if rule is None:
            raise KeyError(primitive)
        return _without_sharding_rules(rule)


def _as_on_cpu(entry, platform):
    """The rule for calls of exported functions, which on helio may have been exported for CPUs."""

    @functools.wraps(entry.rule)
    def rule(ctx, *args, exported):
        names = exported.platforms
        is_meant = platform not in names and "cpu" in names
        here = ctx.module_context.platforms
        if platform not in here or not is_meant:
            return entry.rule(ctx, *args, exported=exported)
        platforms = tuple("cpu" if name == platform else name for name in here)
        called = ctx.replace(module_context=ctx.module_context.replace(platforms=platforms))
        results = entry.rule(called, *args, exported=exported)
        if called.tokens_out is not None:
            ctx.set_tokens_out(called.tokens_out)
        return results

    return mlir.LoweringRuleEntry(rule, entry.inline)


def _by_platform(entry, platform, parameter):
    """The rule for what differs by platform: without a branch for helio or for all others, that for CPUs."""

    @functools.wraps(entry.rule)
    def rule(ctx, *args, **params):
        branches = params.get(parameter) or ((platform,),)
        if None not in branches and not any(platform in names for names in branches):
            params[parameter] = tuple(
                (*names, platform) if "cpu" in names else names for names in branches
            )
        return entry.rule(ctx, *args, **params)

    return mlir.LoweringRuleEntry(rule, entry.inline)


def install(platform):
    """Gives the platform its rules, keeping those that it has already."""
    table = mlir._platform_specific_lowerings
    table[platform] = _CpuRules(table.get(platform, {}))
    calls = _export.call_exported_p
    mlir._lowerings[calls] = _as_on_cpu(mlir._lowerings[calls], platform)
    for primitive, parameter in (
        (conditionals.platform_index_p, "platforms"),
        (conditionals.cond_p, "branches_platforms"),
    ):
        entry = mlir._lowerings[primitive]
        mlir._lowerings[primitive] = _by_platform(entry, platform, parameter)
