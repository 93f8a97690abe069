from crosslens.analyze import difficulty as difficulty, polysemy as polysemy
from crosslens.comparisons import compare as compare, leaderboard as leaderboard
from crosslens.core import CrosslensError as CrosslensError, InputError as InputError, load_plugin as load_plugin
from crosslens.data import (
    describe as describe,
    load_dataset as load_dataset,
    read_judgements as read_judgements,
    read_qrels as read_qrels,
    read_run as read_run,
    write_dataset as write_dataset,
    write_qrels as write_qrels,
    write_run as write_run,
)
from crosslens.engine import use_engine as use_engine
from crosslens.explanations import concept_metrics as concept_metrics
from crosslens.metrics import metric as metric
from crosslens.perturbations import perturb as perturb
from crosslens.pipeline import (
    Robustness as Robustness,
    agreement as agreement,
    compare_caption_sets as compare_caption_sets,
    evaluate as evaluate,
    explain as explain,
    granularity as granularity,
    group_metrics as group_metrics,
    plot as plot,
    robustness as robustness,
    robustness_from_runs as robustness_from_runs,
)
from crosslens.report import (
    audit as audit,
    calibrate as calibrate,
    read_results as read_results,
    write_report as write_report,
)
from crosslens.similarity import relevance_matrix as relevance_matrix
from crosslens.statistics import match_threshold as match_threshold
from crosslens.values import (
    Dataset as Dataset,
    Embeddings as Embeddings,
    RankedLists as RankedLists,
    Ranking as Ranking,
    Relevance as Relevance,
    Run as Run,
)

from . import (
    analyze as analyze,
    audits as audits,
    build as build,
    comparisons as comparisons,
    core as core,
    data as data,
    encode as encode,
    engine as engine,
    explanations as explanations,
    language as language,
    metrics as metrics,
    perturbations as perturbations,
    pipeline as pipeline,
    planning as planning,
    rank as rank,
    report as report,
    similarity as similarity,
    statistics as statistics,
    storage as storage,
    synth as synth,
    train as train,
    values as values,
)

__version__: str
