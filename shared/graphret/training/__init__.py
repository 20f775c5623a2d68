"""Fitting graphret to labelled questions."""

from graphret.training.conversations import ConversationReport, write_conversations
from graphret.training.field_weights import FieldTraining, FieldTuning, train_fields
from graphret.training.fusion import FusionCase, cases_of, tune_fusion
from graphret.training.lora import LoRASettings, fine_tune
from graphret.training.objectives import CandidateGroup, Conversation, Example
from graphret.training.paths import PathChoice, fit_scorer, train_paths
from graphret.training.pools import PoolReport, collect_pools
from graphret.training.queries import SynthesisReport, synthesize
from graphret.training.questions import LabelledQuestion, read_questions
from graphret.training.ranker import train_ranking
from graphret.training.reranker import RERANKER_TUNING, train_reranker
from graphret.training.writer import train_reasoner, train_writer

__all__ = [
    "RERANKER_TUNING",
    "CandidateGroup",
    "Conversation",
    "ConversationReport",
    "Example",
    "FieldTraining",
    "FieldTuning",
    "FusionCase",
    "LabelledQuestion",
    "LoRASettings",
    "PathChoice",
    "PoolReport",
    "SynthesisReport",
    "cases_of",
    "collect_pools",
    "fine_tune",
    "fit_scorer",
    "read_questions",
    "synthesize",
    "train_fields",
    "train_paths",
    "train_ranking",
    "train_reasoner",
    "train_reranker",
    "train_writer",
    "tune_fusion",
    "write_conversations",
]
