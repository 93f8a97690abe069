from crosslens.similarity.embedding import (
    EmbeddingSimilarity as EmbeddingSimilarity,
    StoredEmbeddingSimilarity as StoredEmbeddingSimilarity,
    WordVectors as WordVectors,
)
from crosslens.similarity.matrix import (
    CacheChoice as CacheChoice,
    load_similarity as load_similarity,
    pairs_table as pairs_table,
    prepare_dataset as prepare_dataset,
    read_pairs as read_pairs,
    relevance_matrix as relevance_matrix,
    relevance_pairs as relevance_pairs,
    summarise_matrix as summarise_matrix,
)
from crosslens.similarity.measures.ngrams import Cider as Cider
from crosslens.similarity.precomputed import (
    PrecomputedSimilarity as PrecomputedSimilarity,
    description_file as description_file,
)
from crosslens.similarity.protocol import (
    SIMILARITIES as SIMILARITIES,
    IdSimilarity as IdSimilarity,
    Phi as Phi,
    PreparedSimilarity as PreparedSimilarity,
    Similarity as Similarity,
    in_parallel as in_parallel,
    references_of as references_of,
    thread_count as thread_count,
)
from crosslens.similarity.semantic import (
    Semantic as Semantic,
    TextEncoder as TextEncoder,
    load_semantic_fit as load_semantic_fit,
    packaged_semantic_fits as packaged_semantic_fits,
    semantic_fits as semantic_fits,
)
