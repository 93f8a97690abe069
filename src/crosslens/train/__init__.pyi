from crosslens.train.curves import Trained as Trained
from crosslens.train.inputs.feature_sets import (
    FEATURE_SETS as FEATURE_SETS,
    FeatureOrigin as FeatureOrigin,
    ImageFeatures as ImageFeatures,
    Split as Split,
    TrainingData as TrainingData,
    load_features as load_features,
)
from crosslens.train.losses.protocol import (
    LOSSES as LOSSES,
    BatchOutput as BatchOutput,
    build_loss as build_loss,
    losses_called as losses_called,
    named_losses as named_losses,
)
from crosslens.train.models.protocol import (
    MODELS as MODELS,
    CaptionBatch as CaptionBatch,
    ImageBatch as ImageBatch,
    InputShape as InputShape,
    TrainableModel as TrainableModel,
)
from crosslens.train.recipes.files import recipe_names as recipe_names
from crosslens.train.recipes.listing import (
    RecipeGroup as RecipeGroup,
    recipe_groups as recipe_groups,
    tables_of as tables_of,
)
from crosslens.train.recipes.recipe import (
    PublishedRow as PublishedRow,
    TrainingRecipe as TrainingRecipe,
    TrainingSettings as TrainingSettings,
    load_training_recipe as load_training_recipe,
)
from crosslens.train.settings import settings_of as settings_of
from crosslens.train.stored.loading import LoadedModel as LoadedModel, load_model as load_model
from crosslens.train.sweep.grid import ABSENT as ABSENT, Combination as Combination
from crosslens.train.sweep.plan import (
    PlannedTraining as PlannedTraining,
    SweepPlan as SweepPlan,
    SweepState as SweepState,
    plan_sweep as plan_sweep,
)
from crosslens.train.sweep.results import (
    Sweep as Sweep,
    SweepDifference as SweepDifference,
    SweepFigure as SweepFigure,
    SweepRow as SweepRow,
)
from crosslens.train.sweep.running import (
    Failure as Failure,
    SweepWatch as SweepWatch,
    TrainingOutcome as TrainingOutcome,
)
from crosslens.train.sweep.study import (
    run_sweep as run_sweep,
    sweep_state as sweep_state,
    write_sweep_files as write_sweep_files,
)
from crosslens.train.trainer import train_model as train_model
