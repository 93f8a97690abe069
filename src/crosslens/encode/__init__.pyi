from crosslens.encode.adapters.stored_embeddings import StoredEmbeddings as StoredEmbeddings
from crosslens.encode.cache import Cache as Cache
from crosslens.encode.dataset import (
    Encoded as Encoded,
    caption_rows as caption_rows,
    encode_captions as encode_captions,
    encode_dataset as encode_dataset,
)
from crosslens.encode.encoder import (
    ENCODERS as ENCODERS,
    IMAGES as IMAGES,
    TEXTS as TEXTS,
    Array as Array,
    Encoder as Encoder,
    FeatureReader as FeatureReader,
    MatrixScorer as MatrixScorer,
    label as label,
    load_encoder as load_encoder,
    map_path as map_path,
    name_of as name_of,
    require_modality as require_modality,
)
from crosslens.encode.images import as_picture as as_picture, decode_image as decode_image, read_ahead as read_ahead
from crosslens.encode.options import (
    EACH as EACH,
    MEAN as MEAN,
    QUERY_CAPTION as QUERY_CAPTION,
    SHARED_IMAGES as SHARED_IMAGES,
    EncodeOptions as EncodeOptions,
    Notify as Notify,
    query_choice as query_choice,
    to_stderr as to_stderr,
)
from crosslens.encode.pairs.matrix import (
    ReadImages as ReadImages,
    read_features as read_features,
    score_texts as score_texts,
)
from crosslens.encode.pairs.scorers import (
    PAIR_SCORERS as PAIR_SCORERS,
    PairCache as PairCache,
    PairScorer as PairScorer,
    SecondStage as SecondStage,
    load_pair_scorer as load_pair_scorer,
    score_pairs as score_pairs,
)
from crosslens.encode.similarity import word_encoder as word_encoder
from crosslens.encode.stream import (
    encode_features as encode_features,
    encode_images as encode_images,
    encode_texts as encode_texts,
    feature_key as feature_key,
)
from crosslens.encode.summaries import (
    SUMMARISERS as SUMMARISERS,
    Summariser as Summariser,
    load_summariser as load_summariser,
)
from crosslens.encode.text_retrieval import (
    TextOnly as TextOnly,
    TextQueries as TextQueries,
    images_from_captions as images_from_captions,
    sentence_parts as sentence_parts,
    text_only as text_only,
    text_queries as text_queries,
)
from crosslens.encode.torch_model import Compute as Compute
from crosslens.encode.towers.pixels import PixelRows as PixelRows, stored_pixels as stored_pixels
from crosslens.encode.towers.pretrained import (
    Pretrained as Pretrained,
    PretrainedOutput as PretrainedOutput,
    TokenArrays as TokenArrays,
)
from crosslens.encode.writing import save_encoded as save_encoded
