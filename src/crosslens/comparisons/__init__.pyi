from crosslens.comparisons.comparison import (
    compare as compare,
    notes_on_protocols as notes_on_protocols,
    notes_on_published as notes_on_published,
    primary_metric as primary_metric,
    run_labels as run_labels,
    same_lists as same_lists,
    unused_label as unused_label,
)
from crosslens.comparisons.leaderboards import (
    Leaderboard as Leaderboard,
    dataset_label as dataset_label,
    group_runs as group_runs,
    leaderboard as leaderboard,
)
from crosslens.comparisons.options import PRIMARY as PRIMARY, PermutationOptions as PermutationOptions
from crosslens.comparisons.paired_queries import (
    CAPTION_LENGTH as CAPTION_LENGTH,
    SETS as SETS,
    group_words as group_words,
    grouping_columns as grouping_columns,
    pair_queries as pair_queries,
    query_sets as query_sets,
)
from crosslens.comparisons.results import (
    CaptionSets as CaptionSets,
    CaptionSetsOfModels as CaptionSetsOfModels,
    Comparison as Comparison,
    MetricChange as MetricChange,
    MetricComparison as MetricComparison,
    corrected as corrected,
    difference_figure as difference_figure,
    disagreements as disagreements,
    letter_sentence as letter_sentence,
    query_bar as query_bar,
    run_letters as run_letters,
    significance_sentences as significance_sentences,
    undecided as undecided,
)
