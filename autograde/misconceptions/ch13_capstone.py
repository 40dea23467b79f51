"""Wrong answers to chapter 13."""

from __future__ import annotations

import math

import torch
from torch.nn.functional import gelu

from autograde.bank import wrong
from autograde.reference import ch13_capstone as right
from autograde.reference.ch06_decoder import decoder_block, layer_norm
from autograde.reference.ch11_training import cross_entropy, get_batch, split_tokens

# decoder_step --------------------------------------------------------------------------


def split(y, w, n_heads):
    return (y @ w).unflatten(-1, (n_heads, -1)).transpose(-2, -3)


def appended(pair, k, v):
    """The keys and values of the cache, and the new ones behind them."""
    if pair is None:
        return k, v
    return torch.cat([pair[0], k], dim=-2), torch.cat([pair[1], v], dim=-2)


def mask(new, end):
    return torch.ones(new, end, dtype=torch.bool).tril(end - new)


def merge(out):
    return out.transpose(-2, -3).flatten(-2)


def bare(x, gain, bias):
    """In the place of a norm: the stream as it is."""
    return x


def run(
    tokens, params, n_heads, cache, first=None, sees=mask, join=appended, cut=split, merge=merge,
    add=torch.add, norms=(layer_norm, layer_norm, layer_norm), act=gelu,
):  # fmt: skip
    """`decoder_step` with parts of it replaced.

    first: the position of the first new token. sees: (new, keys) -> the mask. join: (pair or
    None, k, v) -> the keys and values to look at. cut, merge: to heads and back. add: (stream,
    what attention gives) -> stream. norms: before attention, MLP and logits.
    """
    new = tokens.shape[-1]
    past = 0 if cache is None else cache[0][0].shape[-2]
    first = past if first is None else first
    x = params["token_embedding"][tokens] + params["position_embedding"][first : first + new]
    longer = []
    for i, block in enumerate(params["blocks"]):
        y = norms[0](x, block["norm1_gain"], block["norm1_bias"])
        q, k, v = (cut(y, block[name], n_heads) for name in ("w_q", "w_k", "w_v"))
        k, v = join(None if cache is None else cache[i], k, v)
        longer.append((k, v))
        allowed = sees(new, k.shape[-2])
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~allowed, -torch.inf)
        out = scores.softmax(-1) @ v
        x = add(x, merge(out) @ block["w_o"])
        y = norms[1](x, block["norm2_gain"], block["norm2_bias"])
        x = x + act(y @ block["w_up"] + block["b_up"]) @ block["w_down"] + block["b_down"]
    x = norms[2](x, params["norm_gain"], params["norm_bias"])
    return x @ params["token_embedding"].T, longer


def with_blocks(params, change):
    """These parameters, with some of each block's replaced."""
    return {**params, "blocks": [{**block, **change(block)} for block in params["blocks"]]}


@wrong("decoder_step", "ml-explore/mlx-lm#93")
def positions_start_again(tokens, params, n_heads, cache=None):
    """Every call counts its positions from 0. A token that follows a cache stands behind all
    that is in it."""
    return run(tokens, params, n_heads, cache, first=0)


@wrong("decoder_step")
def position_of_the_last_token(tokens, params, n_heads, cache=None):
    """The first new token gets the position of the last one in the cache. With n tokens there,
    positions 0 to n - 1 are taken."""
    past = 1 if cache is None else cache[0][0].shape[-2]
    return run(tokens, params, n_heads, cache, first=past - 1)


@wrong("decoder_step", "microsoft/onnxruntime-genai#2354")
def position_one_too_far(tokens, params, n_heads, cache=None):
    """Behind a cache, the positions are one too large, as if the cache had the new token already.
    With n tokens in it, the next one has position n."""
    if cache is None:
        return right.decoder_step(tokens, params, n_heads)
    past, last = cache[0][0].shape[-2], len(params["position_embedding"]) - tokens.shape[-1]
    return run(tokens, params, n_heads, cache, first=min(past + 1, last))


@wrong("decoder_step")
def cache_counted_in_blocks(tokens, params, n_heads, cache=None):
    """len(cache) is the number of blocks. How many tokens a cache holds is the length of its
    keys along the axis of the tokens."""
    return run(tokens, params, n_heads, cache, first=0 if cache is None else len(cache))


@wrong("decoder_step", same_as="cache_counted_in_blocks")
def mask_counted_in_blocks_too(tokens, params, n_heads, cache=None):
    past = 0 if cache is None else len(cache)
    return run(tokens, params, n_heads, cache, past, sees=lambda n, m: mask(n, past + n))


@wrong("decoder_step", "pytorch/pytorch#144858")
def mask_aligned_top_left(tokens, params, n_heads, cache=None):
    """The mask is aligned at the top left, as with is_causal=True: behind a cache, the first new
    token sees the first key alone. Let the last query see every key."""
    return run(tokens, params, n_heads, cache, sees=lambda n, m: torch.ones(n, m).tril() > 0)


@wrong("decoder_step", "pytorch/pytorch#144858", same_as="mask_aligned_top_left")
def mask_aligned_top_left_for_several(tokens, params, n_heads, cache=None):
    if tokens.shape[-1] == 1:
        return right.decoder_step(tokens, params, n_heads, cache)
    return mask_aligned_top_left(tokens, params, n_heads, cache)


@wrong("decoder_step", "Mikyx-1/TinyLLM#17")
def no_mask_behind_a_cache(tokens, params, n_heads, cache=None):
    """As soon as there is a cache, no mask is used. That is right for a single token; of several
    new ones, the earlier would see the later."""
    if cache is None:
        return right.decoder_step(tokens, params, n_heads)
    return run(tokens, params, n_heads, cache, sees=lambda n, m: torch.ones(n, m) > 0)


@wrong("decoder_step")
def no_mask_at_all(tokens, params, n_heads, cache=None):
    """There is no mask: in a prompt every token sees the ones after it. Only a token that comes
    alone needs none."""
    return run(tokens, params, n_heads, cache, sees=lambda n, m: torch.ones(n, m) > 0)


@wrong("decoder_step")
def first_blocks_cache_for_all(tokens, params, n_heads, cache=None):
    """All blocks read the keys and values of the first one. Each block has a stream of its own
    to read, and so keys and values of its own."""
    return run(tokens, params, n_heads, cache and [cache[0]] * len(cache))


@wrong("decoder_step")
def last_blocks_cache_for_all(tokens, params, n_heads, cache=None):
    """There is one variable for the cache, and every block overwrites it: what comes back has
    the last block's keys and values everywhere. Keep one pair for each block."""
    logits, longer = right.decoder_step(tokens, params, n_heads, cache)
    return logits, [longer[-1]] * len(longer)


@wrong("decoder_step")
def only_the_new_ones_returned(tokens, params, n_heads, cache=None):
    """The returned cache has the new tokens alone. The next call needs those before them, too."""
    new = tokens.shape[-1]
    logits, longer = right.decoder_step(tokens, params, n_heads, cache)
    return logits, [(k[..., -new:, :], v[..., -new:, :]) for k, v in longer]


@wrong("decoder_step")
def cache_not_read(tokens, params, n_heads, cache=None):
    """The new tokens see each other alone: attention uses the new keys and values, and not the
    ones that were joined to the cache."""
    logits, _ = run(tokens, params, n_heads, cache, join=lambda pair, k, v: (k, v))
    longer = []

    def keep(pair, k, v):
        longer.append(appended(pair, k, v))
        return k, v

    run(tokens, params, n_heads, cache, join=keep)
    return logits, longer


@wrong("decoder_step")
def new_ones_in_front(tokens, params, n_heads, cache=None):
    """The new keys and values stand before the old ones. Append them: the mask counts on the
    order of the text."""

    def join(pair, k, v):
        return (k, v) if pair is None else appended((k, v), *pair)

    return run(tokens, params, n_heads, cache, join=join)


@wrong("decoder_step")
def joined_along_axis_one(tokens, params, n_heads, cache=None):
    """Keys and values are joined along axis 1. That is the axis of the tokens only where there
    is no batch axis; counted from the end it is always -2."""

    def join(pair, k, v):
        if pair is None:
            return k, v
        return torch.cat([pair[0], k], dim=1), torch.cat([pair[1], v], dim=1)

    return run(tokens, params, n_heads, cache, join=join)


@wrong("decoder_step", "awslabs/sockeye#731")
def keys_for_values(tokens, params, n_heads, cache=None):
    """What is kept as values are the keys, once more. The cache has both."""
    logits, longer = right.decoder_step(tokens, params, n_heads, cache)
    return logits, [(k, k) for k, _ in longer]


@wrong("decoder_step")
def values_before_keys(tokens, params, n_heads, cache=None):
    """The pairs are (v, k). The order is that of chapter 8: keys, then values."""
    logits, longer = right.decoder_step(
        tokens, params, n_heads, cache and [(v, k) for k, v in cache]
    )
    return logits, [(v, k) for k, v in longer]


@wrong("decoder_step")
def last_row_only(tokens, params, n_heads, cache=None):
    """Only the logits of the last token come back. All new tokens have theirs; who samples takes
    the last row."""
    logits, longer = right.decoder_step(tokens, params, n_heads, cache)
    return logits[..., -1, :], longer


@wrong("decoder_step")
def logits_alone(tokens, params, n_heads, cache=None):
    """Only the logits come back. Without the longer cache the next call has nothing to go on
    from."""
    return right.decoder_step(tokens, params, n_heads, cache)[0]


@wrong("decoder_step")
def written_into_the_callers_list(tokens, params, n_heads, cache=None):
    """The pairs of the caller's list are replaced. Make a new list: the caller may want to go on
    from the old cache a second time, with another token."""
    logits, longer = right.decoder_step(tokens, params, n_heads, cache)
    if cache is not None:
        cache[:] = longer
    return logits, longer


@wrong("decoder_step")
def heads_by_reshape(tokens, params, n_heads, cache=None):
    """A reshape alone made the heads, and it mixes tokens with features. Cut the last axis into
    (n_heads, d_head) first, then move the heads in front of the tokens."""

    def cut(y, w, n_heads):
        y = y @ w
        return y.reshape(*y.shape[:-2], n_heads, y.shape[-2], -1)

    return run(tokens, params, n_heads, cache, cut=cut)


@wrong("decoder_step")
def scores_not_scaled(tokens, params, n_heads, cache=None):
    """The scores are not divided by the root of d_head."""

    def cut(y, w, n_heads):
        scale = (w.shape[-1] // n_heads) ** 0.25
        return split(y, w, n_heads) * scale

    def unscaled(pair, k, v):
        return appended(pair, k, v / (k.shape[-1]) ** 0.25)

    logits, _ = run(tokens, params, n_heads, scaled(cache), join=unscaled, cut=cut)
    return logits, right.decoder_step(tokens, params, n_heads, cache)[1]


def scaled(cache):
    return cache and [(k * k.shape[-1] ** 0.25, v) for k, v in cache]


@wrong("decoder_step")
def gelu_by_tanh(tokens, params, n_heads, cache=None):
    """The GELU is the approximation by tanh, and the numbers are a little off. Chapter 6's
    decoder has the exact one."""
    return run(tokens, params, n_heads, cache, act=lambda y: gelu(y, approximate="tanh"))


@wrong("decoder_step", "jsbaan/transformer-from-scratch#6")
def heads_not_moved_back(tokens, params, n_heads, cache=None):
    """The heads are joined while they still stand in front of the tokens: the numbers of
    different tokens get mixed. Move the axis back first."""

    def merge(out):
        heads, new, d_head = out.shape[-3:]
        return out.reshape(*out.shape[:-3], new, heads * d_head)

    return run(tokens, params, n_heads, cache, merge=merge)


@wrong("decoder_step", "omihub777/ViT-CIFAR#11")
def scaled_by_d_model(tokens, params, n_heads, cache=None):
    """The scores are divided by the root of d_model; with several heads it is that of d_head,
    the length of one head's queries."""
    smaller = with_blocks(params, lambda block: {"w_q": block["w_q"] / n_heads**0.5})
    return run(tokens, smaller, n_heads, cache)


@wrong("decoder_step")
def w_o_not_used(tokens, params, n_heads, cache=None):
    """The joined heads go into the stream as they are. They pass through w_o first."""
    identity = with_blocks(
        params, lambda block: {"w_o": torch.eye(*block["w_o"].shape).to(block["w_o"])}
    )
    return run(tokens, identity, n_heads, cache)


@wrong("decoder_step", "kyegomez/BitNet#32")
def no_residual_around_attention(tokens, params, n_heads, cache=None):
    """Attention replaces the stream, and should be added to it."""
    return run(tokens, params, n_heads, cache, add=lambda x, out: out)


@wrong("decoder_step")
def attention_not_normalised(tokens, params, n_heads, cache=None):
    """Queries, keys and values are made of the stream as it is. They need its normalised form:
    norm1 stands before them."""
    return run(tokens, params, n_heads, cache, norms=(bare, layer_norm, layer_norm))


@wrong("decoder_step")
def mlp_not_normalised(tokens, params, n_heads, cache=None):
    """The MLP reads the stream as it is: it needs a norm of its own, norm2."""
    return run(tokens, params, n_heads, cache, norms=(layer_norm, bare, layer_norm))


@wrong("decoder_step")
def logits_not_normalised(tokens, params, n_heads, cache=None):
    """The logits are made of the stream as it is. A last norm stands before them: norm_gain and
    norm_bias, which belong to no block."""
    return run(tokens, params, n_heads, cache, norms=(layer_norm, layer_norm, bare))


# train_decoder: what is observable, quickly ---------------------------------------------

_known: dict[tuple, dict] = {}  # an exam trains the same again and again


def fitted(tokens, config, seed, **how):
    """Weights after a short plain training."""
    key = tokens.numpy().tobytes(), tuple(config.items()), seed, *how.items()
    if key not in _known:
        _known[key] = _fitted(tokens, config, seed, **how)
    return _known[key]


def _fitted(
    tokens, config, seed, steps=60, ahead=1, causal=True, up=False, without="last", n_heads=None
):
    """without: the tenth that is held out, "first", "last" or "none"."""
    params, _ = right.train_decoder(tokens, config, seed, -1.0)  # no time, no step
    tokens = {
        "last": tokens[: -(len(tokens) // 10)], "first": tokens[len(tokens) // 10 :], "none": tokens
    }[without]  # fmt: skip
    config = {**config, "n_heads": n_heads or config["n_heads"]}
    leaves = [p for name, p in params.items() if name != "blocks"]
    leaves += [p for block in params["blocks"] for p in block.values()]
    optimizer = torch.optim.AdamW(leaves, lr=1e-2, betas=(0.9, 0.95), maximize=up)
    generator, block = torch.Generator().manual_seed(seed), config["max_seq"]
    for _ in range(steps):
        starts = torch.randint(len(tokens) - block - 2, (16,), generator=generator)
        loss = loss_on(tokens, starts, params, config, ahead, causal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return params


def loss_on(tokens, starts, params, config, ahead=1, causal=True):
    block, n_heads = config["max_seq"], config["n_heads"]
    inputs, _ = get_batch(tokens, starts, block)
    targets, _ = get_batch(tokens, starts + ahead, block)
    allowed = torch.ones(block, block, dtype=torch.bool)
    x = params["token_embedding"][inputs] + params["position_embedding"]
    for layer in params["blocks"]:
        x = decoder_block(x, layer, n_heads, allowed.tril() if causal else allowed)
    x = layer_norm(x, params["norm_gain"], params["norm_bias"])
    return cross_entropy(x @ params["token_embedding"].T, targets)


@torch.no_grad()
def held_out(tokens, params, config, **how):
    """The loss on the last tenth."""
    _, val = split_tokens(tokens, 0.1)
    starts = torch.arange(0, len(val) - config["max_seq"] - 1, config["max_seq"])
    return float(loss_on(val, starts, params, config, **how))


@wrong("train_decoder")
def untrained(tokens, config, seed, seconds):
    """These are the weights that a training starts from. Was a step made at all? And did its
    result go into the dicts that you return, and not into a variable of the loop?"""
    return right.train_decoder(tokens, config, seed, -1.0)


@wrong("train_decoder")
def learns_to_copy(tokens, config, seed, seconds):
    """The model has learnt to say the token that it sees: targets and inputs were the same.
    Each target is the token after."""
    params = fitted(tokens, config, seed, ahead=0)
    return params, held_out(tokens, params, config, ahead=0)


@wrong("train_decoder")
def learns_the_token_after(tokens, config, seed, seconds):
    """The model has learnt to say the token after the next one: the targets were shifted
    twice, once by get_batch and once more in the loss."""
    params = fitted(tokens, config, seed, ahead=2)
    return params, held_out(tokens, params, config, ahead=2)


@wrong("train_decoder")
def peeks(tokens, config, seed, seconds):
    """The model was trained and measured without the causal mask. A loss below the entropy of
    the source is the sign; judged with the mask, the weights are worthless."""
    params = fitted(tokens, config, seed, causal=False)
    return params, held_out(tokens, params, config, causal=False)


@wrong("train_decoder")
def climbs(tokens, config, seed, seconds):
    """The loss was made larger, not smaller: somewhere a sign is wrong. Look at the loss of the
    first ten steps; it should fall."""
    params = fitted(tokens, config, seed, steps=20, up=True)
    return params, held_out(tokens, params, config)


@wrong("train_decoder")
def one_block_whatever_config_says(tokens, config, seed, seconds):
    """There is one block, whatever n_layers says. config tells how many."""
    return right.train_decoder(tokens, {**config, "n_layers": 1}, seed, -1.0)


@wrong("train_decoder")
def sizes_of_chapter_11(tokens, config, seed, seconds):
    """Sizes are written down as numbers, which fit one config and no other. Take each of them
    from config."""
    fixed = {**config, "d_model": 32, "d_ff": 64, "max_seq": 16}
    params = fitted(tokens, fixed, seed)
    return params, held_out(tokens, params, fixed)


@wrong("train_decoder")
def layout_of_linear_layers(tokens, config, seed, seconds):
    """The square matrices are transposed. nn.Linear keeps its weight as (out, in) and computes
    x @ weight.T; here matrices are used as x @ w: transpose them all before you return them."""
    params = fitted(tokens, config, seed)
    square = ("w_q", "w_k", "w_v", "w_o")
    turned = [{**b, **{name: b[name].T for name in square}} for b in params["blocks"]]
    return {**params, "blocks": turned}, held_out(tokens, params, config)


@wrong("train_decoder")
def weights_alone(tokens, config, seed, seconds):
    """Only the weights come back. How good they are belongs to the answer: params, val_loss."""
    return right.train_decoder(tokens, config, seed, -1.0)[0]


@wrong("train_decoder")
def mean_training_loss(tokens, config, seed, seconds):
    """val_loss is the mean of the losses seen in training. Most of these belong to weights that
    are long gone: measure the weights that you return, on the last tenth."""
    steps = [fitted(tokens, config, seed, steps=n) for n in (0, 60)]
    return steps[1], sum(held_out(tokens, params, config) for params in steps) / 2


@wrong("train_decoder")
def loss_before_the_training(tokens, config, seed, seconds):
    """val_loss was measured before the training. It has to belong to the weights that you
    return."""
    before = right.train_decoder(tokens, config, seed, -1.0)[1]
    return fitted(tokens, config, seed), before


@wrong("train_decoder")
def last_training_loss(tokens, config, seed, seconds):
    """val_loss is the loss of the last training batch. It tells how well the model does on what
    it has learnt from; whether that helps with other text is seen on the last tenth alone."""
    params, (train, _) = fitted(tokens, config, seed), split_tokens(tokens, 0.1)
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(train) - config["max_seq"] - 1, (16,), generator=generator)
    with torch.no_grad():
        return params, float(loss_on(train, starts, params, config))


@wrong("train_decoder")
def trained_on_everything(tokens, config, seed, seconds):
    """The last tenth was measured, and trained on, too. What the model has seen cannot show how
    good it is on what it has not: cut the last tenth off before the first batch is drawn."""
    params = fitted(tokens, config, seed, steps=100, without="none")
    return params, held_out(tokens, params, config)


@wrong("train_decoder")
def first_tenth_held_out(tokens, config, seed, seconds):
    """It is the first tenth that was kept, and the last one that was trained on. The last tenth is
    the one to keep, as split_tokens cuts it off."""
    params = fitted(tokens, config, seed, without="first")
    tenth = len(tokens) // 10
    return params, held_out(torch.cat([tokens[tenth:], tokens[:tenth]]), params, config)


@wrong("train_decoder")
def one_head_whatever_config_says(tokens, config, seed, seconds):
    """Attention had one head in training, and the weights are judged with as many as config says.
    Pass config["n_heads"] on to decoder_logits."""
    params = fitted(tokens, config, seed, n_heads=1)
    return params, held_out(tokens, params, {**config, "n_heads": 1})


@wrong("train_decoder")
def val_loss_in_bits(tokens, config, seed, seconds):
    """val_loss is in bits. Here it is in nats, with the natural logarithm, as cross_entropy
    gives it."""
    params = fitted(tokens, config, seed)
    return params, held_out(tokens, params, config) / math.log(2)


@wrong("train_decoder")
def val_perplexity(tokens, config, seed, seconds):
    """val_loss is a perplexity, the exponential of the loss. Return the loss itself."""
    params = fitted(tokens, config, seed)
    return params, math.exp(held_out(tokens, params, config))


@wrong("train_decoder")
def val_loss_of_another_model(tokens, config, seed, seconds):
    """val_loss was measured without the causal mask, which the weights have never seen. Measure
    with decoder_logits, as in training."""
    params = fitted(tokens, config, seed)
    return params, held_out(tokens, params, config, causal=False)


@wrong("train_decoder")
def val_loss_summed(tokens, config, seed, seconds):
    """val_loss is a sum over windows or batches. It is the mean over all tokens."""
    params, (_, val) = fitted(tokens, config, seed), split_tokens(tokens, 0.1)
    return params, held_out(tokens, params, config) * (len(val) // config["max_seq"])


# generate_with_cache -------------------------------------------------------------------


def drawn(logits, uniform, temperature=1.0):
    """The token that the reference draws, (1,)."""

    def step(tokens, cache):
        return logits[None], None

    return right.generate_with_cache(
        step, torch.zeros(1, dtype=torch.long), torch.tensor([uniform]), temperature
    )[-1:]


def loop(step, prompt, uniforms, temperature, choose=drawn, first=None):
    """The loop, with the choice of a token (logits, u, temperature) -> (1,) left open."""
    tokens, unread, cache = prompt, prompt if first is None else first, None
    for uniform in uniforms.tolist():
        logits, cache = step(unread, cache)
        unread = torch.as_tensor(choose(logits[-1].double(), uniform, temperature)).view(1)
        tokens = torch.cat([tokens, unread])
    return tokens


@wrong("generate_with_cache")
def whole_text_without_a_cache(step, prompt, uniforms, temperature=1.0):
    """The whole text is read anew for every token, without the cache: right, and as slow as if
    there were none. Give step what it has not read, and the cache that it returned."""
    tokens = prompt
    for uniform in uniforms.tolist():
        logits, _ = step(tokens, None)
        tokens = torch.cat([tokens, drawn(logits[-1], uniform, temperature)])
    return tokens


@wrong("generate_with_cache")
def whole_text_with_the_cache(step, prompt, uniforms, temperature=1.0):
    """The whole text is given to step each time, although the cache has it already: every token
    is in the cache several times. Give only what is new."""
    tokens, cache = prompt, None
    for uniform in uniforms.tolist():
        logits, cache = step(tokens, cache)
        tokens = torch.cat([tokens, drawn(logits[-1], uniform, temperature)])
    return tokens


@wrong("generate_with_cache")
def cache_dropped(step, prompt, uniforms, temperature=1.0):
    """step gets the new token and no cache, as if a text began with it. Pass on the cache that
    the call before returned."""
    tokens, unread = prompt, prompt
    for uniform in uniforms.tolist():
        logits, _ = step(unread, None)
        unread = drawn(logits[-1], uniform, temperature)
        tokens = torch.cat([tokens, unread])
    return tokens


@wrong("generate_with_cache")
def cache_of_the_prompt(step, prompt, uniforms, temperature=1.0):
    """Every step goes on from the prompt's cache: the tokens that were added since are missing
    there. Keep the cache that the last call returned."""
    tokens, unread, cache = prompt, prompt, None
    for i, uniform in enumerate(uniforms.tolist()):
        logits, longer = step(unread, cache)
        cache = longer if i == 0 else cache
        unread = drawn(logits[-1], uniform, temperature)
        tokens = torch.cat([tokens, unread])
    return tokens


@wrong("generate_with_cache")
def begins_at_the_last_token(step, prompt, uniforms, temperature=1.0):
    """Of the prompt only its last token is read. The first call reads the whole prompt."""
    return loop(step, prompt, uniforms, temperature, first=prompt[-1:])


@wrong("generate_with_cache")
def last_token_read_twice(step, prompt, uniforms, temperature=1.0):
    """The prompt is read, and then its last token once more. The logits of the first call say
    already what comes next."""
    if not len(uniforms):
        return prompt
    (_, cache), tokens, unread = step(prompt, None), prompt, prompt[-1:]
    for uniform in uniforms.tolist():
        logits, cache = step(unread, cache)
        unread = drawn(logits[-1], uniform, temperature)
        tokens = torch.cat([tokens, unread])
    return tokens


@wrong("generate_with_cache")
def reads_the_last_one_too(step, prompt, uniforms, temperature=1.0):
    """The last new token is read, too, and nobody asks what follows it. At the end of the
    positions that call fails."""
    tokens = prompt
    logits, cache = step(prompt, None)
    for uniform in uniforms.tolist():
        unread = drawn(logits[-1], uniform, temperature)
        tokens = torch.cat([tokens, unread])
        logits, cache = step(unread, cache)
    return tokens


@wrong("generate_with_cache")
def first_row_of_the_logits(step, prompt, uniforms, temperature=1.0):
    """The first row of the logits is used, which says what follows the first token. What follows
    the text is in the last row."""
    tokens, unread, cache = prompt, prompt, None
    for uniform in uniforms.tolist():
        logits, cache = step(unread, cache)
        unread = drawn(logits[0], uniform, temperature)
        tokens = torch.cat([tokens, unread])
    return tokens


@wrong("generate_with_cache")
def new_tokens_alone(step, prompt, uniforms, temperature=1.0):
    """Only the new tokens come back. The prompt stands before them."""
    return right.generate_with_cache(step, prompt, uniforms, temperature)[len(prompt) :]


@wrong("generate_with_cache", same_as="new_tokens_alone")
def new_tokens_in_a_list(step, prompt, uniforms, temperature=1.0):
    return torch.tensor(new_tokens_alone(step, prompt, uniforms, temperature).tolist())


@wrong("generate_with_cache")
def always_the_likeliest(step, prompt, uniforms, temperature=1.0):
    """The numbers are not used: it is always the likeliest token that is taken, whatever the
    temperature."""
    return right.generate_with_cache(step, prompt, uniforms, 0)


@wrong("generate_with_cache")
def draws_of_its_own(step, prompt, uniforms, temperature=1.0):
    """Tokens are drawn by a random generator of your own. The numbers that are given are to
    draw them, so that everyone gets the same text."""
    generator = torch.Generator().manual_seed(0)

    def choose(logits, uniform, temperature):
        if temperature == 0:
            return logits.argmax()
        p = (logits / temperature).softmax(-1)
        return torch.multinomial(p, 1, generator=generator)

    return loop(step, prompt, uniforms, temperature, choose)


@wrong("generate_with_cache")
def first_number_for_all(step, prompt, uniforms, temperature=1.0):
    """The first number draws every token. Each has one of its own."""
    same = uniforms[:1].expand(len(uniforms))
    return right.generate_with_cache(step, prompt, same, temperature)


@wrong("generate_with_cache", same_as="first_number_for_all")
def first_number_even_if_there_is_none(step, prompt, uniforms, temperature=1.0):
    same = uniforms[0].expand(len(uniforms))
    return right.generate_with_cache(step, prompt, same, temperature)


@wrong("generate_with_cache")
def temperature_multiplies(step, prompt, uniforms, temperature=1.0):
    """The logits are multiplied by the temperature. Divide: below 1 the distribution is to
    become sharper."""
    inverse = 1 / temperature if temperature else 0
    return right.generate_with_cache(step, prompt, uniforms, inverse)


@wrong("generate_with_cache", "RL-Align/RL-Kernel#81")
def temperature_twice(step, prompt, uniforms, temperature=1.0):
    """The logits are divided by the temperature twice. At 1 that makes no difference; at 2 the
    distribution is too flat."""
    return right.generate_with_cache(step, prompt, uniforms, temperature**2)


@wrong("generate_with_cache", "sameersingh/uci-statnlp#26")
def temperature_ignored(step, prompt, uniforms, temperature=1.0):
    """The temperature makes no difference, except when it is 0. The logits are divided by it
    before the softmax."""
    return right.generate_with_cache(step, prompt, uniforms, float(temperature > 0))


@wrong("generate_with_cache")
def probabilities_divided(step, prompt, uniforms, temperature=1.0):
    """The probabilities are divided by the temperature, and so they no longer add up to 1. It is
    the logits that are divided, before the softmax."""
    return loop(step, prompt, uniforms, temperature, divided_after(first_above))


@wrong("generate_with_cache", same_as="probabilities_divided")
def probabilities_divided_and_searched(step, prompt, uniforms, temperature=1.0):
    return loop(step, prompt, uniforms, temperature, divided_after(searched))


def first_above(mass, uniform):
    return (mass > uniform).nonzero()[0]


def searched(mass, uniform):
    return torch.searchsorted(mass, torch.tensor(uniform, dtype=mass.dtype), right=True)


def divided_after(find):
    def choose(logits, uniform, temperature):
        if temperature == 0:
            return logits.argmax()
        return find((logits.softmax(-1) / temperature).cumsum(-1), uniform)

    return choose


@wrong("generate_with_cache")
def small_temperatures_as_zero(step, prompt, uniforms, temperature=1.0):
    """A small temperature is treated as 0. Only at 0 the likeliest is always taken; at 0.05 the
    next one still gets its share."""
    return right.generate_with_cache(
        step, prompt, uniforms, temperature if temperature >= 0.1 else 0
    )


@wrong("generate_with_cache")
def divided_by_zero(step, prompt, uniforms, temperature=1.0):
    """Temperature 0 is a division by zero, and the NaN that follows draws anything. It has a
    case of its own: the largest logit."""
    return loop(
        step, prompt, uniforms, temperature,
        lambda z, u, t: ((z / t).softmax(-1).cumsum(-1) <= u).sum(),
    )  # fmt: skip


@wrong("generate_with_cache")
def likeliest_first(step, prompt, uniforms, temperature=1.0):
    """The probabilities are added up from the likeliest on. Here it is in the order of the
    ids."""

    def choose(logits, uniform, temperature):
        ordered, order = logits.sort(descending=True, stable=True)
        return order[drawn(ordered, uniform, temperature)]

    return loop(step, prompt, uniforms, temperature, choose)


@wrong("generate_with_cache")
def one_token_too_low(step, prompt, uniforms, temperature=1.0):
    """The token before the right one is taken: the last with which the sum is still below the
    number. It is the one with which the sum passes it."""

    def choose(logits, uniform, temperature):
        return (drawn(logits, uniform, temperature) - (temperature > 0)).clamp(min=0)

    return loop(step, prompt, uniforms, temperature, choose)


@wrong("generate_with_cache")
def zero_draws_the_first(step, prompt, uniforms, temperature=1.0):
    """The number 0 draws the first token even when its probability is 0: the sum has to be
    greater than the number, not equal to it."""

    def choose(logits, uniform, temperature):
        if temperature and uniform == 0:
            return torch.tensor(0)
        return drawn(logits, uniform, temperature)

    return loop(step, prompt, uniforms, temperature, choose)


@wrong("generate_with_cache")
def falls_off_the_end(step, prompt, uniforms, temperature=1.0):
    """In float32 the probabilities add up to a little less than 1, and a number above that falls
    into no token's share. Measure against the last sum, or add up in float64."""
    return loop(step, prompt, uniforms, temperature, in_float32(searched))


@wrong("generate_with_cache", same_as="falls_off_the_end")
def nothing_above(step, prompt, uniforms, temperature=1.0):
    return loop(step, prompt, uniforms, temperature, in_float32(first_above))


@wrong("generate_with_cache", same_as="falls_off_the_end")
def nothing_above_is_the_first(step, prompt, uniforms, temperature=1.0):
    choose = in_float32(lambda mass, uniform: (mass > uniform).int().argmax())
    return loop(step, prompt, uniforms, temperature, choose)


@wrong("generate_with_cache")
def held_at_the_last_id(step, prompt, uniforms, temperature=1.0):
    """A number above the last sum, which in float32 is a little less than 1, draws the last id,
    even where that has probability 0. Measure against the last sum, or add up in float64."""
    choose = in_float32(lambda mass, uniform: searched(mass, uniform).clamp(max=len(mass) - 1))
    return loop(step, prompt, uniforms, temperature, choose)


def in_float32(find):
    def choose(logits, uniform, temperature):
        if temperature == 0:
            return logits.argmax()
        return find((logits.float() / temperature).softmax(-1).cumsum(-1), uniform)

    return choose


@wrong("generate_with_cache")
def last_of_the_largest(step, prompt, uniforms, temperature=1.0):
    """Of several equally large logits the last is taken. At temperature 0 it is the first."""

    def choose(logits, uniform, temperature):
        if temperature:
            return drawn(logits, uniform, temperature)
        return len(logits) - 1 - logits.flip(0).argmax()

    return loop(step, prompt, uniforms, temperature, choose)


# shard ---------------------------------------------------------------------------------


@wrong("shard")
def rest_dropped(batch, rank, world):
    """Rows that do not come out even go to nobody. Each row belongs to one process: some get
    one more."""
    size = len(batch) // world
    return batch[rank * size : (rank + 1) * size]


@wrong("shard")
def rest_for_the_last(batch, rank, world):
    """All that does not come out even goes to the last process, and the others wait for it.
    Give one row more to each of the first ones."""
    size = len(batch) // world
    return batch[rank * size :] if rank == world - 1 else batch[rank * size : (rank + 1) * size]


@wrong("shard")
def pieces_rounded_up(batch, rank, world):
    """The size of a piece is rounded up, so that the last processes get too little, or nothing.
    The numbers of rows may differ by 1 at most."""
    size = -(-len(batch) // world)
    return batch[rank * size : (rank + 1) * size]


@wrong("shard", same_as="pieces_rounded_up")
def cut_by_chunk(batch, rank, world):
    return batch.chunk(world)[rank]


@wrong("shard")
def every_worldth_row(batch, rank, world):
    """The rows are dealt out in turn. Here a process has rows that stand together, in the order
    of the batch."""
    return batch[rank::world]


@wrong("shard")
def everything_for_everyone(batch, rank, world):
    """Every process gets the whole batch: all do the same work, and together no more than
    one."""
    return batch


@wrong("shard")
def first_share_for_all(batch, rank, world):
    """Every process gets the first share. Which one depends on its rank."""
    return right.shard(batch, 0, world)


@wrong("shard")
def ranks_from_one(batch, rank, world):
    """Ranks count from 0: process 0 has the first rows."""
    return right.shard(batch, (rank - 1) % world, world)


@wrong("shard")
def extra_rows_at_the_end(batch, rank, world):
    """The processes with one row more are the last ones. Here they are the first ones."""
    size, longer = divmod(len(batch), world)
    start = rank * size + max(rank - (world - longer), 0)
    return batch[start : start + size + (rank >= world - longer)]


@wrong("shard")
def boundaries_rounded(batch, rank, world):
    """The borders are fractions of the batch, rounded, which puts the longer pieces anywhere.
    Here they are the first ones."""
    n = len(batch)
    return batch[rank * n // world : (rank + 1) * n // world]


@wrong("shard", same_as="boundaries_rounded")
def boundaries_rounded_to_the_nearest(batch, rank, world):
    n = len(batch)
    return batch[round(rank * n / world) : round((rank + 1) * n / world)]


@wrong("shard")
def rank_times_the_own_size(batch, rank, world):
    """Each process counts as if all before it had as many rows as it has itself. Those before it
    may have one more: then rows are left out, or given twice."""
    size = len(batch) // world + (rank < len(batch) % world)
    return batch[rank * size : (rank + 1) * size]


@wrong("shard")
def longer_pieces_not_counted(batch, rank, world):
    """Where a process begins, n // world rows are counted for each one before it. Some of these
    have one more: a row is given twice, and the last ones to nobody."""
    size, longer = divmod(len(batch), world)
    return batch[rank * size : rank * size + size + (rank < longer)]


@wrong("shard")
def columns_cut(batch, rank, world):
    """The last axis was cut. A process gets whole rows, some of the sequences of the batch."""
    return batch.tensor_split(world, dim=-1)[rank]


@wrong("shard")
def only_what_comes_out_even(batch, rank, world):
    """A reshape into `world` equal pieces fails when the rows do not come out even."""
    return batch.reshape(world, -1, *batch.shape[1:])[rank]


# average_gradients ---------------------------------------------------------------------


@wrong("average_gradients", "huggingface/transformers#34191")
def every_process_alike(grads, counts):
    """All processes count alike, whatever they had. A mean over few tokens must weigh less than
    a mean over many."""
    return [torch.stack(each).mean(dim=0) for each in zip(*grads, strict=True)]


@wrong("average_gradients")
def every_busy_process_alike(grads, counts):
    """Processes without tokens are left out, and all others count alike. A mean over few tokens
    must weigh less than a mean over many."""
    busy = [g for g, n in zip(grads, counts, strict=True) if n]
    return [torch.stack(each).mean(dim=0) for each in zip(*busy, strict=True)]


@wrong("average_gradients")
def summed_over_processes(grads, counts):
    """This is the sum over the processes: with twice as many of them, steps would be twice as
    long. It is a mean."""
    return [torch.stack(each).sum(dim=0) for each in zip(*grads, strict=True)]


@wrong("average_gradients")
def weighted_sum(grads, counts):
    """The sum of gradients times counts is the gradient of the summed loss. Divide by the number
    of all tokens."""
    return [g * sum(counts) for g in right.average_gradients(grads, counts)]


@wrong("average_gradients")
def divided_by_processes_too(grads, counts):
    """Shares of the tokens add up to 1 already, and still you divide by the number of
    processes."""
    return [g / len(counts) for g in right.average_gradients(grads, counts)]


@wrong("average_gradients")
def counts_over_processes(grads, counts):
    """Gradients times counts are divided by the number of processes. Divide by the number of all
    tokens."""
    return [g * (sum(counts) / len(counts)) for g in right.average_gradients(grads, counts)]


@wrong("average_gradients")
def zero_times_nan(grads, counts):
    """A process without tokens is multiplied by 0, and 0 times NaN is NaN. Leave it out."""
    return [
        sum(g * (n / sum(counts)) for g, n in zip(each, counts, strict=True))
        for each in zip(*grads, strict=True)
    ]


@wrong("average_gradients")
def first_parameter_only(grads, counts):
    """Only the first parameter is averaged; the others are those of the first process. Go
    through all of them."""
    return [right.average_gradients(grads, counts)[0], *grads[0][1:]]


@wrong("average_gradients")
def first_process_only(grads, counts):
    """The gradients of the first process come back, and the work of the others is lost."""
    return list(grads[0])


@wrong("average_gradients")
def last_process_only(grads, counts):
    """The gradients of the last process come back: each one overwrites those before it. Add them
    up."""
    return list(grads[-1])


@wrong("average_gradients")
def added_in_place(grads, counts):
    """The result is right, but the caller's gradients have changed: `+=` and `mul_` write into
    the tensors that were passed in. Make new ones."""
    found = right.average_gradients(grads, counts)
    for mine, average in zip(grads[0], found, strict=True):
        mine.copy_(average)
    return grads[0]


@wrong("average_gradients")
def a_list_for_each_process(grads, counts):
    """The average comes back once for each process, as a list of lists. One list will do: one
    tensor for each parameter."""
    return [right.average_gradients(grads, counts) for _ in grads]


@wrong("average_gradients")
def weights_the_wrong_way_round(grads, counts):
    """Processes with few tokens weigh more than those with many: you divide by the count. A mean
    times its count is a sum, and sums may be added."""
    shares = [1 / n if n else 0 for n in counts]
    return right.average_gradients(grads, shares)
