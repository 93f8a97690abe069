from crosslens.explanations.causes import (
    CAUSES as CAUSES,
    cause_column as cause_column,
    cause_numbers as cause_numbers,
    plain_text as plain_text,
)
from crosslens.explanations.changes import (
    QueryChange as QueryChange,
    RunChanges as RunChanges,
    TopHit as TopHit,
    compare_queries as compare_queries,
)
from crosslens.explanations.concept_batches import concept_table as concept_table
from crosslens.explanations.concepts import concept_metrics as concept_metrics
from crosslens.explanations.counterfactual_options import CounterfactualOptions as CounterfactualOptions
from crosslens.explanations.counterfactuals import (
    Counterfactual as Counterfactual,
    Counterfactuals as Counterfactuals,
    Radius as Radius,
    find_counterfactual as find_counterfactual,
    find_counterfactuals as find_counterfactuals,
)
from crosslens.explanations.explainer import (
    DatasetObjects as DatasetObjects,
    HitComparison as HitComparison,
    compare_hits as compare_hits,
    explain_queries as explain_queries,
)
from crosslens.explanations.explanation import ExplainedQueries as ExplainedQueries, Explanation as Explanation
from crosslens.explanations.failures import (
    DIRECTION_NAMES as DIRECTION_NAMES,
    TEXT_TO_TEXT as TEXT_TO_TEXT,
    failed_queries as failed_queries,
    first_relevant as first_relevant,
    item_rows as item_rows,
    list_scores as list_scores,
    query_outcomes as query_outcomes,
    ranking_of as ranking_of,
)
from crosslens.explanations.galleries import (
    Gallery as Gallery,
    GalleryItem as GalleryItem,
    GalleryList as GalleryList,
    GalleryQuery as GalleryQuery,
    retrieval_gallery as retrieval_gallery,
)
from crosslens.explanations.lexicon import (
    GENERIC_NOUNS as GENERIC_NOUNS,
    PERSON as PERSON,
    hypernym_path as hypernym_path,
    hypernyms_of as hypernyms_of,
    is_tangible as is_tangible,
    meaning as meaning,
    same_meaning as same_meaning,
    senses as senses,
    synset_word as synset_word,
)
from crosslens.explanations.mentions import OPEN as OPEN, SATISFIED as SATISFIED, VIOLATED as VIOLATED
from crosslens.explanations.objects import (
    AnnotatedImage as AnnotatedImage,
    ImageObject as ImageObject,
    ImageObjects as ImageObjects,
    image_objects as image_objects,
    objects_of as objects_of,
)
from crosslens.explanations.overview import (
    Overview as Overview,
    explain_run as explain_run,
    save_overview as save_overview,
)
from crosslens.explanations.run_comparison import (
    ConceptTable as ConceptTable,
    OverviewComparison as OverviewComparison,
    compare_overviews as compare_overviews,
    tabulate_overviews as tabulate_overviews,
)
from crosslens.explanations.run_dataset import (
    dataset_change as dataset_change,
    dataset_of_run as dataset_of_run,
    image_files_of_run as image_files_of_run,
    image_folder_of as image_folder_of,
)
from crosslens.explanations.sentences import join_words as join_words
from crosslens.explanations.statistics import association_rules as association_rules
