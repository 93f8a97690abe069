from crosslens.train.feature_sets import (
    FEATURE_SETS as FEATURE_SETS,
    ImageFeatures as ImageFeatures,
    Split as Split,
    TrainingData as TrainingData,
    load_features as load_features,
)
from crosslens.train.losses.protocol import LOSSES as LOSSES, BatchOutput as BatchOutput, build_loss as build_loss
from crosslens.train.models.protocol import (
    MODELS as MODELS,
    CaptionBatch as CaptionBatch,
    ImageBatch as ImageBatch,
    InputShape as InputShape,
    TrainableModel as TrainableModel,
)
from crosslens.train.recipe import (
    TrainingRecipe as TrainingRecipe,
    TrainingSettings as TrainingSettings,
    load_training_recipe as load_training_recipe,
    recipe_names as recipe_names,
)
from crosslens.train.trainer import Trained as Trained, train_model as train_model
