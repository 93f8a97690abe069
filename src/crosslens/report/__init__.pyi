from crosslens.report.export.files import (
    EXPORTS as EXPORTS,
    render_export as render_export,
    write_export as write_export,
    write_named_export as write_named_export,
)
from crosslens.report.export.tables import (
    comparison_latex as comparison_latex,
    grid_latex as grid_latex,
    grid_markdown as grid_markdown,
)
from crosslens.report.groups import (
    column_of as column_of,
    group_metrics as group_metrics,
    group_names as group_names,
    groupable_metrics as groupable_metrics,
)
from crosslens.report.pages.caption_changes import (
    changes_page as changes_page,
    counterfactuals_page as counterfactuals_page,
)
from crosslens.report.pages.explanations import explanation_page as explanation_page
from crosslens.report.plots.curves import (
    curve_facts as curve_facts,
    curve_grid as curve_grid,
    curve_title as curve_title,
    write_curves as write_curves,
)
from crosslens.report.plots.group_chart import Chart as Chart, chart as chart
from crosslens.report.plots.group_figures import (
    bar_figure as bar_figure,
    radar_figure as radar_figure,
    write_plot as write_plot,
)
from crosslens.report.plots.hard_negatives import write_negatives_plot as write_negatives_plot
from crosslens.report.plots.heat_maps import (
    write_atlas as write_atlas,
    write_drop_map as write_drop_map,
    write_heat_map as write_heat_map,
)
from crosslens.report.plots.panels import write_distributions as write_distributions, write_scatter as write_scatter
from crosslens.report.plots.style import figure_suffix as figure_suffix
from crosslens.report.runs_side_by_side import side_by_side as side_by_side
from crosslens.report.selection import select_metrics as select_metrics
from crosslens.report.text.annotations import (
    label_quality_text as label_quality_text,
    reviewed_text as reviewed_text,
)
from crosslens.report.text.caption_changes import (
    CaptionChanges as CaptionChanges,
    changes_text as changes_text,
    counts_grid as counts_grid,
    perturbations_as_dict as perturbations_as_dict,
    perturbations_text as perturbations_text,
    plain_summary as plain_summary,
)
from crosslens.report.text.counterfactuals import counterfactuals_text as counterfactuals_text
from crosslens.report.text.drop_table import (
    drop_table_text as drop_table_text,
    render_drop_table as render_drop_table,
)
from crosslens.report.text.explanations import explanation_text as explanation_text
from crosslens.report.text.failures import (
    comparison_text as comparison_text,
    concepts_grid as concepts_grid,
    concepts_text as concepts_text,
    overview_text as overview_text,
)
from crosslens.report.text.protocols import (
    protocol_description as protocol_description,
    protocol_text as protocol_text,
)
from crosslens.report.text.robustness import ROBUSTNESS_TABLES as ROBUSTNESS_TABLES, robustness_text as robustness_text
from crosslens.report.text.runs import run_table as run_table, terminal_bars as terminal_bars
