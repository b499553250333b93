"""Words of optimizers: classes by name, and which operations treat every number of a tensor by itself."""

from __future__ import annotations

import re

ELEMENTWISE = frozenset(
    ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "FusedAdam", "FusedSGD", "FusedAdagrad", "DeepSpeedCPUAdam", "Lion", "FusedLion", "AdaBelief", "AdaBound", "RMSpropTF", "NAdamW", "AdamWLegacy", "MADGRAD"]
)  # fmt: skip
"""Update rules that treat every number by itself: a flat slice of the parameters trains as the whole does."""
LAYERWISE = re.compile(
    r"lars|larc|lamb|muon|shampoo|soap|adafactor|novograd|adan\b|adamp|sgdp|came|galore|8bit|sophia|kfac|spectral|trust",
    re.IGNORECASE,
)
ACTS = frozenset(
    ["abs", "absolute", "add", "addcdiv", "addcmul", "arctan2", "atan", "atan2", "bfloat16", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "bool", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "clone", "contiguous", "copy", "copysign", "cos", "cosh", "cpu", "cuda", "detach", "div", "divide", "double", "eq", "erf", "exp", "expm1", "fill", "float", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "ge", "greater", "gt", "half", "heaviside", "hypot", "int", "is_complex", "is_floating_point", "isfinite", "isinf", "isnan", "item", "le", "lerp", "less", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "long", "lt", "masked_fill", "maximum", "minimum", "mul", "multiply", "nan_to_num", "ne", "neg", "negative", "pin_memory", "pow", "reciprocal", "relu", "remainder", "requires_grad", "round", "rsqrt", "sgn", "sigmoid", "sign", "sin", "sinh", "softplus", "sqrt", "square", "sub", "subtract", "tan", "tanh", "to", "true_divide", "trunc", "type", "type_as", "where", "xlogy", "zero"]
)  # fmt: skip
"""Methods of tensors, and functions of torch by the same names, that act on every number by itself."""
PLAIN = frozenset(
    ["append", "clear", "copy", "debug", "error", "extend", "format", "get", "info", "insert", "items", "keys", "lower", "pop", "setdefault", "startswith", "endswith", "update", "upper", "values", "warn", "warning", "warning_once", "step", "zero_grad", "add_param_group", "state_dict", "load_state_dict"]
)  # fmt: skip
"""Methods of dictionaries, lists, strings, loggers, and of optimizers."""
MAKES = frozenset(
    [
        "empty",
        "empty_like",
        "full",
        "full_like",
        "new_empty",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones",
        "ones_like",
        "zeros",
        "zeros_like",
    ]
)
"""What makes buffers of a parameter's shape, the only place where a shape may stand."""
OF_TORCH = frozenset(
    ["as_tensor", "device", "enable_grad", "finfo", "inference_mode", "is_available", "is_compiling", "is_grad_enabled", "is_scripting", "is_tensor", "no_grad", "scalar_tensor", "set_grad_enabled", "tensor", "view_as_complex", "view_as_real", "profile_hook_step", "record_function"]
)  # fmt: skip
OWN = frozenset(
    [
        "data",
        "defaults",
        "device",
        "dtype",
        "grad",
        "imag",
        "is_cuda",
        "is_leaf",
        "is_sparse",
        "layout",
        "param_groups",
        "real",
        "requires_grad",
        "state",
    ]
)
"""Attributes that a flat piece has as the parameter had them."""
LOOKS = frozenset(
    ["H", "T", "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "bernoulli", "bmm", "cat", "cholesky", "chunk", "clip_grad_norm", "cosine_similarity", "count_nonzero", "cross", "cumprod", "cumsum", "diag", "diagonal", "dim", "dist", "dot", "eigh", "einsum", "expand", "expand_as", "fft", "flatten", "flip", "gather", "index_select", "inverse", "kthvalue", "layer_norm", "log_softmax", "logsumexp", "mT", "matmul", "matrix_norm", "mean", "median", "mm", "multinomial", "mv", "narrow", "ndim", "ndimension", "nelement", "nonzero", "norm", "normal", "normalize", "numel", "outer", "permute", "prod", "qr", "quantile", "rand", "rand_like", "randn", "randn_like", "renorm", "repeat", "reshape", "roll", "shape", "size", "softmax", "sort", "split", "squeeze", "stack", "std", "std_mean", "sum", "svd", "t", "topk", "trace", "transpose", "tril", "triu", "unflatten", "uniform", "unique", "unsqueeze", "var", "var_mean", "vector_norm", "view", "all_reduce"]
)  # fmt: skip
"""What tells of a tensor as a whole: its size, its dimensions, sums over it, the order of its numbers, chance."""
SAFE_MODULES = frozenset(
    ["math", "warnings", "logging", "copy", "time", "itertools", "collections", "operator", "typing", "builtins"]
)
