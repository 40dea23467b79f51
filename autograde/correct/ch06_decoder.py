"""Right answers to chapter 6, in many forms."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional as F

from autograde.bank import right
from autograde.decoder import Config, Decoder
from autograde.reference import ch06_decoder as reference

# layer_norm ----------------------------------------------------------------------------


@right("layer_norm")
def norm_by_torch(x, gain, bias, eps=1e-5):
    return F.layer_norm(x, gain.shape, gain, bias, eps)


@right("layer_norm")
def norm_by_mean_of_squares(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    variance = (x**2).mean(-1, keepdim=True) - mean**2
    return gain * (x - mean) * torch.rsqrt(variance.clamp_min(0) + eps) + bias


@right("layer_norm")
def norm_by_var_mean(x, gain, bias, eps=1e-5):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, gain, (x - mean) / (variance + eps) ** 0.5)


@right("layer_norm")
def norm_by_loops(x, gain, bias, eps=1e-5):
    out = torch.empty(x.shape)
    for row, target in zip(x.reshape(-1, x.shape[-1]), out.view(-1, x.shape[-1]), strict=True):
        mean = sum(row.tolist()) / len(row)
        variance = sum((a - mean) ** 2 for a in row.tolist()) / len(row)
        for i, a in enumerate(row.tolist()):
            target[i] = (a - mean) / math.sqrt(variance + eps) * gain[i] + bias[i]
    return out


@right("layer_norm")
def norm_in_numpy_single_precision(x, gain, bias, eps=1e-5):
    x, gain, bias = (np.asarray(t, dtype=np.float32) for t in (x, gain, bias))
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gain + bias


@right("layer_norm")
def norm_of_the_last_axis_moved_first(x, gain, bias, eps=1e-5):
    y = x.movedim(-1, 0)
    y = (y - y.mean(0)) / torch.sqrt(y.var(0, unbiased=False) + eps)
    return (y.movedim(0, -1) * gain + bias).tolist()


# rms_norm ------------------------------------------------------------------------------


@right("rms_norm")
def rms_by_torch(x, gain, eps=1e-6):
    return F.rms_norm(x, (x.shape[-1],), gain, eps)


@right("rms_norm")
def rms_by_rsqrt_in_single_precision(x, gain, eps=1e-6):
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)
    return y.type_as(x) * gain


@right("rms_norm")
def rms_by_the_vectors_length(x, gain, eps=1e-6):
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return gain * x / torch.hypot(length / math.sqrt(x.shape[-1]), torch.tensor(eps**0.5))


@right("rms_norm")
def rms_by_einsum(x, gain, eps=1e-6):
    scale = (torch.einsum("...d,...d->...", x, x) / x.shape[-1] + eps) ** -0.5
    return torch.einsum("...d,...,d->...d", x, scale, gain)


@right("rms_norm")
def rms_in_lists(x, gain, eps=1e-6):
    if x.ndim > 1:
        return [rms_in_lists(part, gain, eps) for part in x]
    root = math.sqrt(sum(float(a) ** 2 for a in x) / len(x) + eps)
    return [float(a) / root * float(g) for a, g in zip(x, gain, strict=True)]


# rotary --------------------------------------------------------------------------------


@right("rotary")
def rotary_by_rotate_half(x, positions, base=10000.0):
    d_head = x.shape[-1]
    frequency = 1.0 / base ** (torch.arange(0, d_head, 2).float() / d_head)
    angle = torch.outer(positions.float(), frequency)
    angle = torch.cat([angle, angle], dim=-1)
    a, b = x.chunk(2, dim=-1)
    return x * angle.cos() + torch.cat([-b, a], dim=-1) * angle.sin()


@right("rotary")
def rotary_by_complex_numbers(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    frequency = base ** (-2 * torch.arange(half).double() / x.shape[-1])
    turn = torch.polar(torch.ones(len(positions), half).double(), positions[:, None] * frequency)
    point = torch.complex(x[..., :half].double(), x[..., half:].double()) * turn
    return torch.cat([point.real, point.imag], dim=-1)


@right("rotary")
def rotary_by_matrices(x, positions, base=10000.0):
    d_head = x.shape[-1]
    half = d_head // 2
    matrices = torch.zeros(len(positions), d_head, d_head, dtype=x.dtype)
    for s, position in enumerate(positions.tolist()):
        for i in range(half):
            t = position * base ** (-2 * i / d_head)
            matrices[s, i, i] = matrices[s, i + half, i + half] = math.cos(t)
            matrices[s, i, i + half], matrices[s, i + half, i] = -math.sin(t), math.sin(t)
    return torch.einsum("sij,...sj->...si", matrices, x)


@right("rotary")
def rotary_in_single_precision_by_exp(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    i = torch.arange(half, dtype=torch.float32)
    angle = positions.float()[:, None] * torch.exp(-math.log(base) * i / half)
    rotated = torch.empty(x.shape, dtype=torch.float32)
    rotated[..., :half] = x[..., :half] * angle.cos() - x[..., half:] * angle.sin()
    rotated[..., half:] = x[..., :half] * angle.sin() + x[..., half:] * angle.cos()
    return rotated


@right("rotary")
def rotary_in_numpy_on_neighbours(x, positions, base=10000.0):
    x = x.numpy()
    half = x.shape[-1] // 2
    pairs = np.stack([x[..., :half], x[..., half:]], axis=-1)  # (..., half, 2)
    t = positions.numpy()[:, None] / np.power(float(base), np.arange(half) / half)
    turn = np.stack([np.cos(t), -np.sin(t), np.sin(t), np.cos(t)], -1).reshape(*t.shape, 2, 2)
    return np.einsum("spij,...spj->...isp", turn, pairs).swapaxes(-3, -2).reshape(x.shape)


# decoder_block -------------------------------------------------------------------------


def norm(x, params, which):
    return F.layer_norm(x, x.shape[-1:], params[f"norm{which}_gain"], params[f"norm{which}_bias"])


def mlp(y, params):
    hidden = F.gelu(F.linear(y, params["w_up"].T, params["b_up"]))
    return F.linear(hidden, params["w_down"].T, params["b_down"])


@right("decoder_block")
def block_by_sdpa(x, params, n_heads, allowed):
    y = norm(x, params, 1)
    q, k, v = (
        (y @ params[name]).reshape(*y.shape[:-1], n_heads, -1).transpose(-2, -3)
        for name in ("w_q", "w_k", "w_v")
    )
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed.unsqueeze(-3))
    out = out.nan_to_num(0.0).transpose(-2, -3).reshape(x.shape)
    x = x + out @ params["w_o"]
    return x + mlp(norm(x, params, 2), params)


@right("decoder_block", "neetcode-gh/leetcode#5130")
def block_head_by_head(x, params, n_heads, allowed):
    """Each head with its slice of the matrices; its output goes through its rows of w_o."""
    y, d_head = norm(x, params, 1), x.shape[-1] // n_heads
    out = x.clone()
    for h in range(n_heads):
        own = slice(h * d_head, (h + 1) * d_head)
        q, k, v = (y @ params[name][:, own] for name in ("w_q", "w_k", "w_v"))
        scores = q @ k.transpose(-1, -2) / math.sqrt(d_head)
        weights = torch.where(allowed, scores, -torch.inf).softmax(-1).nan_to_num(0)
        out = out + weights @ v @ params["w_o"][own]
    hidden = norm(out, params, 2) @ params["w_up"] + params["b_up"]
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    return out + hidden @ params["w_down"] + params["b_down"]


@right("decoder_block")
def block_by_multihead_attention(x, params, n_heads, allowed):
    """nn.MultiheadAttention, with its opposite polarity and its own shapes."""
    seq, d_model = x.shape[-2:]
    mha = torch.nn.MultiheadAttention(d_model, n_heads, bias=False, batch_first=True).to(x.dtype)
    inwards = torch.cat([params[name].T for name in ("w_q", "w_k", "w_v")])
    with torch.no_grad():
        mha.in_proj_weight.copy_(inwards)
        mha.out_proj.weight.copy_(params["w_o"].T)
    allowed = allowed.expand(*x.shape[:-1], seq).reshape(-1, seq, seq)
    closed = (~allowed).repeat_interleave(n_heads, dim=0)
    y = norm(x, params, 1).reshape(-1, seq, d_model)
    out = mha(y, y, y, attn_mask=closed)[0].nan_to_num(0).reshape(x.shape)
    return (x + out) + mlp(norm(x + out, params, 2), params)


@right("decoder_block", "lucidrains/nGPT-pytorch#11")
def block_with_minus_1e9_by_einsum(x, params, n_heads, allowed):
    def heads(name):
        w = params[name].reshape(x.shape[-1], n_heads, -1)
        return torch.einsum("...sm,mhd->...hsd", norm(x, params, 1), w)

    q, k = heads("w_q") * (x.shape[-1] // n_heads) ** -0.5, heads("w_k")
    open_ = allowed[..., None, :, :].to(x.dtype)
    scores = torch.einsum("...qd,...kd->...qk", q, k) + (1 - open_) * -1e9
    weights = torch.softmax(scores, -1) * open_
    out = torch.einsum("...hqk,...hkd->...qhd", weights, heads("w_v"))
    x = x + out.reshape(x.shape) @ params["w_o"]
    return x + mlp(norm(x, params, 2), params)


@right("decoder_block")
def block_in_single_precision(x, params, n_heads, allowed):
    params = {name: w.float() for name, w in params.items()}
    return reference.decoder_block(x.float(), params, n_heads, allowed).detach().numpy()


@right("decoder_block")
def block_query_by_query(x, params, n_heads, allowed):
    """Every query looks at the keys it may see, and at nothing else."""
    *batch, seq, d_model = x.shape
    y, d_head = norm(x, params, 1), d_model // n_heads
    q, k, v = (y @ params[name] for name in ("w_q", "w_k", "w_v"))
    allowed = allowed.expand(*batch, seq, seq)
    out = torch.zeros_like(x)
    for place in np.ndindex(*batch, seq):
        for h in range(n_heads):
            own = slice(h * d_head, (h + 1) * d_head)
            keys = k[place[:-1]][allowed[place], own]
            weights = (keys @ q[place][own] / d_head**0.5).softmax(0)
            out[place][own] = weights @ v[place[:-1]][allowed[place], own]
    x = x + out @ params["w_o"]
    return x + mlp(norm(x, params, 2), params)


# decoder_logits ------------------------------------------------------------------------


@right("decoder_logits")
def logits_by_embedding_and_linear(tokens, params, n_heads):
    x = F.embedding(tokens, params["token_embedding"])
    x = x + F.embedding(torch.arange(tokens.shape[-1]), params["position_embedding"])
    mask = torch.tril(torch.ones(x.shape[-2], x.shape[-2])).bool()
    for block in params["blocks"]:
        x = block_by_sdpa(x, block, n_heads, mask)
    x = F.layer_norm(x, x.shape[-1:], params["norm_gain"], params["norm_bias"])
    return F.linear(x, params["token_embedding"])


@right("decoder_logits")
def logits_prefix_by_prefix(tokens, params, n_heads):
    """Without any mask: position t is the last one of a sequence that ends there."""
    rows = []
    for t in range(1, tokens.shape[-1] + 1):
        x = params["token_embedding"][tokens[..., :t]] + params["position_embedding"][:t]
        for block in params["blocks"]:
            x = causal_block(x, block, n_heads)
        last = x[..., -1, :]
        last = reference.layer_norm(last, params["norm_gain"], params["norm_bias"])
        rows.append(last @ params["token_embedding"].T)
    return torch.stack(rows, dim=-2)


def causal_block(x, block, n_heads):
    positions = torch.arange(x.shape[-2])
    return reference.decoder_block(x, block, n_heads, positions[:, None] >= positions)


@right("decoder_logits")
def logits_by_one_hot(tokens, params, n_heads):
    table = params["token_embedding"]
    x = F.one_hot(tokens, len(table)).to(table.dtype) @ table
    x += params["position_embedding"][torch.arange(tokens.shape[-1])]
    for block in params["blocks"]:
        x = causal_block(x, block, n_heads)
    x = F.layer_norm(x, (x.shape[-1],), params["norm_gain"], params["norm_bias"])
    return torch.einsum("...d,vd->...v", x, table)


@right("decoder_logits")
def logits_sequence_by_sequence(tokens, params, n_heads):
    if tokens.ndim > 1:
        return [logits_sequence_by_sequence(one, params, n_heads) for one in tokens]
    return reference.decoder_logits(tokens, params, n_heads).float().numpy()


@right("decoder_logits")
def logits_by_the_courses_decoder(tokens, params, n_heads):
    vocab, d_model = params["token_embedding"].shape
    max_seq, d_ff = len(params["position_embedding"]), params["blocks"][0]["w_up"].shape[1]
    model = Decoder(Config(vocab, d_model, len(params["blocks"]), n_heads, d_ff, max_seq))
    state = {name: w for name, w in params.items() if name != "blocks"}
    for i, block in enumerate(params["blocks"]):
        state |= {f"blocks.{i}.{name}": w for name, w in block.items()}
    model.load_state_dict(state)
    return model.double()(tokens)


# decoder_parameters --------------------------------------------------------------------


@right("decoder_parameters")
def parameters_by_one_formula(config):
    d, f = config["d_model"], config["d_ff"]
    layer = 4 * d * d + 2 * d * f + f + 5 * d
    return config["n_layers"] * layer + (config["vocab"] + config["max_seq"] + 2) * d


@right("decoder_parameters")
def parameters_by_shapes(config):
    d, f = config["d_model"], config["d_ff"]
    layer = [(d,)] * 4 + [(d, d)] * 4 + [(d, f), (f,), (f, d), (d,)]
    around = [(config["vocab"], d), (config["max_seq"], d), (d,), (d,)]
    return np.sum([math.prod(shape) for shape in layer * config["n_layers"] + around])


@right("decoder_parameters")
def parameters_of_uninitialised_tensors(config):
    d, f = config["d_model"], config["d_ff"]
    vectors = {"gain": [d] * 2, "bias": [d] * 2, "mlp": [f, d]}
    block = [torch.empty(n) for sizes in vectors.values() for n in sizes]
    block += [torch.empty(d, d)] * 4 + [torch.empty(d, f), torch.empty(f, d)]
    around = [torch.empty(config["vocab"] + config["max_seq"], d), torch.empty(2, d)]
    count = torch.tensor(0)
    for tensor in block * config["n_layers"] + around:
        count += tensor.numel()
    return count


@right("decoder_parameters")
def parameters_one_by_one(config):
    total = np.int64(0)
    total += config["vocab"] * config["d_model"]
    total += config["max_seq"] * config["d_model"]
    for _ in range(config["n_layers"]):
        total += 2 * 2 * config["d_model"] + 4 * config["d_model"] ** 2
        total += config["d_model"] * config["d_ff"] + config["d_ff"]
        total += config["d_ff"] * config["d_model"] + config["d_model"]
    return total + 2 * config["d_model"]
