"""Candidates as a trie of tokens: what a model may write next (section 4.2)."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphret.errors import ModelError

_Floats = NDArray[np.float64]
#: Tokens that a model reads at once, where the best branch alone has fewer: enough to
#: keep a processor busy.
_TOKENS = 128


class TrieNode(NamedTuple):
    """A node of the trie: the range of sequences that begin with the same tokens."""

    start: int
    stop: int
    depth: int


class Trie:
    """Sequences of tokens, sorted; its nodes are made when they are first asked for.

    Parameters
    ----------
    sequences
        Each ends with one token that none has elsewhere, so that one may begin another.

    Attributes
    ----------
    places
        Of each sequence in order its place among those that were given.
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        self.places = sorted(
            range(len(sequences)), key=lambda place: list(sequences[place])
        )
        self.sequences = [sequences[place] for place in self.places]
        self.root = TrieNode(0, len(self.sequences), 0)
        self._children: dict[TrieNode, dict[int, TrieNode]] = {}

    def children(self, node: TrieNode) -> dict[int, TrieNode]:
        """Return the node behind each next token; none for a complete sequence."""
        if node not in self._children:
            children, depth, at = {}, node.depth, node.start
            while at < node.stop and depth < len(self.sequences[at]):
                token = self.sequences[at][depth]
                end = node.stop
                if self.sequences[end - 1][depth] != token:
                    end = bisect_right(
                        self.sequences,
                        token,
                        at,
                        end,
                        key=lambda sequence: sequence[depth],
                    )
                children[token] = TrieNode(at, end, depth + 1)
                at = end
            self._children[node] = children
        return self._children[node]

    def find(self, tokens: Sequence[int]) -> TrieNode | None:
        """Return the node that tokens lead to, if they begin a sequence."""
        node: TrieNode | None = self.root
        for token in tokens:
            node = self.children(node).get(token) if node is not None else None
        return node


class GroundedLogits:
    """A logits processor that lets beams write only candidates (equation 2).

    A step costs what the tokens cost that are allowed at the beams' places in the trie,
    whatever the number of candidates. NaN counts as next to nothing.

    Parameters
    ----------
    tries
        The candidates of each question of a batch.
    prompt
        Tokens of the padded prompts, which are skipped.
    end
        The token that ends a sequence.
    """

    def __init__(self, tries: Sequence[Trie], prompt: int, end: int) -> None:
        self.tries, self.prompt, self.end = tries, prompt, end

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores, ``(rows, vocabulary)``, −∞ for forbidden tokens."""
        masked = scores.new_full(scores.shape, -np.inf)
        beams = len(scores) // len(self.tries)
        for row, written in enumerate(input_ids[:, self.prompt :].tolist()):
            trie = self.tries[row // beams]
            node = trie.find(written)
            if node is not None and (allowed := [*trie.children(node)]):
                masked[row, allowed] = scores[row, allowed].nan_to_num(nan=-1e4)
            # No more than an end after it, and where there are fewer candidates than
            # beams.
            else:
                masked[row, self.end] = 0.0
        return masked


#: What leads to a branch, its tokens, and the first of them after which logits are
#: wanted.
_Branch = tuple[NDArray[np.intp], Sequence[int], int]


class SharedPrefixes:
    """Reads branches in one sequence, whose mask shows each branch its own prefix.

    Keys and values of shared prefixes are computed once. What leads to a branch is its
    positions in the sequence.
    """

    def __init__(self, model: Any) -> None:
        from transformers import DynamicCache

        self._model, self._cache = model, DynamicCache()

    def read(self, branches: Sequence[_Branch]) -> list[tuple[Any, NDArray[np.intp]]]:
        """Return the logits of each branch from `first` on, and its new prefix."""
        import torch

        past, sizes = (
            self._cache.get_seq_length(),
            [len(tokens) for _, tokens, _ in branches],
        )
        offsets = np.cumsum(sizes)
        mask = np.full((offsets[-1], past + offsets[-1]), -np.inf, dtype=np.float32)
        positions: list[int] = []
        paths, logit_places = [], list[int]()
        for (before, _, first), end, size in zip(branches, offsets, sizes, strict=True):
            rows = np.arange(end - size, end)
            mask[rows[:, None], before] = 0.0
            mask[rows[:, None], past + rows] = np.where(np.tri(size), 0.0, -np.inf)
            positions += range(len(before), len(before) + size)
            paths.append(np.concatenate([before, past + rows]))
            logit_places += rows[first:].tolist()
        device, dtype = self._model.device, self._model.dtype
        logits = self._model(
            input_ids=torch.tensor(
                [[token for _, tokens, _ in branches for token in tokens]],
                device=device,
            ),
            attention_mask=torch.from_numpy(mask)[None, None].to(device, dtype),
            position_ids=torch.tensor([positions], device=device),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=torch.tensor(logit_places, device=device),
        ).logits[0]
        return list(
            zip(
                logits.split([len(tokens) - first for _, tokens, first in branches]),
                paths,
                strict=True,
            )
        )


def best_first(
    trie: Trie,
    reader: SharedPrefixes,
    prompt: Sequence[int],
    most: int,
    prior: _Floats,
    length_power: float,
) -> list[tuple[int, float]]:
    """Return the best sequences with their scores, exactly as if scored alone.

    What is read next is the branch whose bound is the highest. A bound falls with every
    token, and a complete sequence above all bounds is the best of what is left.

    Parameters
    ----------
    most
        How many are wanted.
    prior
        What is added to the log-probability of each, by place.
    length_power
        Log-probabilities are divided by the length to this power.

    Raises
    ------
    ModelError
        When a logit is NaN.
    """
    queue = _Queue(trie, prior, length_power)
    queue.push(0.0, trie.root, np.zeros(0, np.intp), list(prompt), len(prompt) - 1)
    best: list[tuple[int, float]] = []
    while len(best) < most and not queue.is_empty():
        branches = queue.pop_branches()
        if not branches:
            best.append(queue.pop_sequence())
            continue
        reads = [branch.to_read(trie) for branch in branches]
        for branch, (logits, before) in zip(branches, reader.read(reads), strict=True):
            queue.extend(branch, logits.float().log_softmax(-1), before)
    return best


class _UnreadBranch(NamedTuple):
    """A branch that the model has not read.

    `before` is what leads to it; of its `tokens` those up to `first` are counted in
    `logprob`. `node` is where they end in the trie.
    """

    logprob: float
    node: TrieNode
    before: NDArray[np.intp]
    tokens: list[int]
    first: int

    def to_read(self, trie: Trie) -> _Branch:
        """Return what the model reads; after the end of a sequence nothing follows."""
        tokens = self.tokens if trie.children(self.node) else self.tokens[:-1]
        return self.before, tokens, self.first


class _Queue:
    """Unread branches by their bounds and complete sequences by their scores."""

    def __init__(self, trie: Trie, prior: _Floats, length_power: float) -> None:
        self.trie = trie
        lengths = np.asarray([len(sequence) for sequence in trie.sequences])
        self.divisors = lengths**length_power
        self.prior = prior[trie.places]
        # the negated bound or score, whether it is complete, its order among equals,
        # and the branch or the score
        self.heap: list[tuple[float, bool, int, _UnreadBranch | float]] = []

    def is_empty(self) -> bool:
        return not self.heap

    def push(
        self,
        logprob: float,
        node: TrieNode,
        before: NDArray[np.intp],
        tokens: list[int],
        first: int,
    ) -> None:
        """Add a branch, with the tokens that can only follow; see `_UnreadBranch`."""
        while len(after := self.trie.children(node)) == 1:
            [(token, node)] = after.items()
            tokens = [*tokens, token]
        if not after and len(tokens) == first + 1:
            self.push_complete(logprob, node)
            return
        span = slice(node.start, node.stop)
        bound = float(logprob / self.divisors[span].max() + self.prior[span].max())
        branch = _UnreadBranch(logprob, node, before, tokens, first)
        heapq.heappush(self.heap, (-bound, False, node.start, branch))

    def push_complete(self, logprob: float, node: TrieNode) -> None:
        """Add the sequences that end at a node, which are of one text."""
        for i in range(node.start, node.stop):
            score = float(logprob / self.divisors[i] + self.prior[i])
            heapq.heappush(self.heap, (-score, True, self.trie.places[i], score))

    def pop_branches(self) -> list[_UnreadBranch]:
        """Return the best branches, as many as are read at once.

        There are none where a complete sequence is above all bounds.
        """
        branches: list[_UnreadBranch] = []
        room = _TOKENS
        while self.heap:
            branch = self.heap[0][3]
            if not isinstance(branch, _UnreadBranch):
                break
            if branches and len(branch.tokens) > room:
                break
            heapq.heappop(self.heap)
            branches.append(branch)
            room -= len(branch.tokens)
        return branches

    def pop_sequence(self) -> tuple[int, float]:
        """Return the place and the score of the best complete sequence."""
        negated, _, place, _ = heapq.heappop(self.heap)
        return place, -negated

    def extend(
        self, branch: _UnreadBranch, shares: Any, before: NDArray[np.intp]
    ) -> None:
        """Add what follows a branch by the log-probabilities after each of its tokens.

        Raises
        ------
        ModelError
            When one is NaN.
        """
        forced = branch.tokens[branch.first + 1 :]
        logprob = branch.logprob + float(shares[range(len(forced)), forced].sum())
        if logprob != logprob or shares[-1].isnan().any():
            raise ModelError("the model's logits are NaN")
        after = self.trie.children(branch.node)
        if not after:
            self.push_complete(logprob, branch.node)
            return
        next_shares = shares[-1, [*after]].tolist()
        for (token, node), share in zip(after.items(), next_shares, strict=True):
            self.push(logprob + min(share, 0.0), node, before, [token], 0)
