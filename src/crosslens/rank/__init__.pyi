from crosslens.rank.gpu.blocks import (
    device_blocks as device_blocks,
    device_item_bytes as device_item_bytes,
    task_blocks as task_blocks,
)
from crosslens.rank.kernels import cosine_of as cosine_of, scale_to_unit as scale_to_unit
from crosslens.rank.parts import part_height as part_height
from crosslens.rank.rank import (
    BACKENDS as BACKENDS,
    rank_both as rank_both,
    rank_lists as rank_lists,
    rank_queries as rank_queries,
    rerank as rerank,
)
from crosslens.rank.score_functions import (
    SCORES as SCORES,
    FloatBlocks as FloatBlocks,
    default_score as default_score,
    score_function as score_function,
    scorer_of as scorer_of,
    unit_blocks as unit_blocks,
)
from crosslens.rank.scorers import (
    Cosines as Cosines,
    InnerProduct as InnerProduct,
    ScaledRows as ScaledRows,
    ScoreMatrix as ScoreMatrix,
    Scorer as Scorer,
    inverse_lengths as inverse_lengths,
    rounding_bound as rounding_bound,
    unit_rows as unit_rows,
)
from crosslens.rank.tiles import TILE as TILE, top_lists as top_lists
