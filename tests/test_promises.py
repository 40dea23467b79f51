"""The names and signatures that the course promises: whoever builds on them may rely on them."""

import inspect

import pytest

from autograde.exercise import chapters

PROMISED = {
    "01-autoregressive": [
        "sequence_log_prob(log_probs, tokens)",
        "perplexity(log_probs, tokens)",
        "teacher_forcing(tokens, bos)",
        "influence(f, x)",
    ],
    "02-self-attention": [
        "softmax(scores, axis=-1)",
        "scaled_scores(q, k)",
        "attention(q, k, v)",
        "entropy(weights)",
    ],
    "03-causal-mask": [
        "causal_mask(n_query, n_key=None)",
        "additive_mask(allowed, dtype=np.float64)",
        "masked_softmax(scores, allowed)",
        "masked_attention(q, k, v, allowed)",
        "padding_mask(lengths, n_key)",
        "causal_padding_mask(lengths, n)",
        "dog_by_hand()",
    ],
    "04-numerics": [
        "log_softmax(scores, axis=-1)",
        "fill_value(dtype)",
        "softmax_backward(weights, d_weights)",
        "masked_attention_backward(q, k, v, allowed, d_out)",
    ],
    "05-multi-head": [
        "split_heads(x, n_heads)",
        "merge_heads(x)",
        "multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, allowed)",
        "cross_attention(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None)",
        "attention_parameters(d_model, n_heads, bias=False)",
    ],
    "06-decoder": [
        "layer_norm(x, gain, bias, eps=1e-05)",
        "rms_norm(x, gain, eps=1e-06)",
        "rotary(x, positions, base=10000.0)",
        "decoder_block(x, params, n_heads, allowed)",
        "decoder_logits(tokens, params, n_heads)",
        "decoder_parameters(config)",
    ],
    "07-debugging": [
        "leaks(f, x)",
        "numerical_gradient(f, x, eps=1e-05)",
        "first_bad(named_arrays)",
        "repair_scale(q, k, allowed)",
        "repair_window(q, k, v, window)",
        "repair_softmax(scores, allowed)",
        "repair_unused_slots(q, k_buffer, v_buffer, length)",
        "repair_norm(x, gain, bias, eps=1e-05)",
        "repair_merge(x, w_q, w_k, w_v, w_o, n_heads)",
        "repair_head_masks(scores, allowed, n_heads)",
        "repair_return_weights(q, k, v, return_weights=False)",
        "repair_prefill(q, k, v, cache=None)",
        "repair_loss(logits, tokens)",
    ],
    "08-kv-cache": [
        "next_token_distribution(logits, temperature=1.0, top_k=None, top_p=None)",
        "prefill(x, w_q, w_k, w_v, w_o, n_heads)",
        "decode_step(x_new, cache, w_q, w_k, w_v, w_o, n_heads)",
        "cache_bytes(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value)",
        "left_padding_mask(lengths, n)",
        "generate(next_logits, prompt, n_new)",
    ],
    "09-variants": [
        "sliding_window_mask(n, window)",
        "strided_mask(n, window, stride)",
        "alibi_bias(n, n_heads)",
        "grouped_query_attention(q, k, v, allowed)",
        "axial_causal_attention(q, k, v)",
        "ring_append(k_cache, v_cache, k_new, v_new, position)",
        "ring_positions(position, capacity)",
    ],
    "10-memory": [
        "merge_softmax(a, b)",
        "flash_attention(q, k, v, block_query, block_key, causal=True)",
        "visible_blocks(n, block_query, block_key)",
    ],
    "11-training": [
        "split_tokens(tokens, val_fraction)",
        "get_batch(tokens, starts, block)",
        "cross_entropy(logits, targets, ignore_index=-100)",
        "learning_rate(step, max_lr, min_lr, warmup, total)",
        "clip_by_global_norm(grads, max_norm)",
        "adamw_step(param, grad, m, v, step, lr, betas, eps, weight_decay)",
        "train(tokens, seed, seconds)",
    ],
    "12-mixed-precision": [
        "round_to_bfloat16(x)",
        "unscale(grads, scale)",
        "update_scale(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000)",
        "mixed_precision_step(loss_fn, params, batch, scale, dtype)",
        "training_bytes(n_params, optimizer='adamw', precision='mixed')",
    ],
    "13-capstone": [
        "decoder_step(tokens, params, n_heads, cache=None)",
        "train_decoder(tokens, config, seed, seconds)",
        "generate_with_cache(step, prompt, uniforms, temperature=1.0)",
        "shard(batch, rank, world)",
        "average_gradients(grads, counts)",
    ],
}


def signature(function):
    """The call, without annotations; a type as NumPy's users write it."""
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        default = parameter.default
        shown = f"np.{default.__name__}" if isinstance(default, type) else repr(default)
        empty = default is parameter.empty
        parameters.append(parameter.name if empty else f"{parameter.name}={shown}")
    return f"{function.__name__}({', '.join(parameters)})"


@pytest.mark.parametrize("chapter", chapters())
def test_names_and_signatures_are_those_promised(chapter):
    found = [signature(exercise.reference) for exercise in chapters()[chapter]]
    assert found == PROMISED.get(chapter), "a new exercise is promised in this file, too"


def test_another_signature_is_noticed():
    def causal_mask(n, n_key=None): ...

    assert signature(causal_mask) not in PROMISED["03-causal-mask"]
