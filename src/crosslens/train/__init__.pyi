from crosslens.train.features import (
    FEATURE_SETS as FEATURE_SETS,
    ImageFeatures as ImageFeatures,
    Split as Split,
    TrainingData as TrainingData,
    load_features as load_features,
)
from crosslens.train.losses import (
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
from crosslens.train.recipe import (
    PublishedRow as PublishedRow,
    RecipeGroup as RecipeGroup,
    TrainingRecipe as TrainingRecipe,
    TrainingSettings as TrainingSettings,
    load_training_recipe as load_training_recipe,
    recipe_groups as recipe_groups,
    recipe_minutes as recipe_minutes,
    recipe_names as recipe_names,
    settings_of as settings_of,
    tables_of as tables_of,
)
from crosslens.train.stored.model_folder import load_model as load_model
from crosslens.train.sweep.plan import (
    PlannedTraining as PlannedTraining,
    SweepPlan as SweepPlan,
    SweepState as SweepState,
    plan_sweep as plan_sweep,
)
from crosslens.train.sweep.results import (
    Sweep as Sweep,
    run_sweep as run_sweep,
    sweep_state as sweep_state,
    write_sweep_files as write_sweep_files,
)
from crosslens.train.sweep.running import SweepWatch as SweepWatch, TrainingOutcome as TrainingOutcome
from crosslens.train.trainer import Trained as Trained, train_model as train_model
