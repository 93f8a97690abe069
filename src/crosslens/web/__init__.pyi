from crosslens.web.app import create_app as create_app
from crosslens.web.judging.accounts import (
    OpenInvitation as OpenInvitation,
    account_named as account_named,
    close_account as close_account,
    create_invitation as create_invitation,
    end_sessions as end_sessions,
    list_accounts as list_accounts,
    make_reset_link as make_reset_link,
    open_invitations as open_invitations,
    remove_member as remove_member,
    revoke_invitation as revoke_invitation,
)
from crosslens.web.judging.commands import (
    JudgedByModel as JudgedByModel,
    ModelSource as ModelSource,
    judge_project as judge_project,
    judge_table as judge_table,
    judging_database as judging_database,
    list_projects as list_projects,
    new_project as new_project,
    project_named as project_named,
    project_prompt as project_prompt,
    results_of as results_of,
    table_prompt as table_prompt,
)
from crosslens.web.judging.database.judgements import ModelRequests as ModelRequests
from crosslens.web.judging.database.projects import (
    audit_log as audit_log,
    members as members,
    note_export as note_export,
)
from crosslens.web.judging.exporting import (
    export_content as export_content,
    export_form as export_form,
    export_sheets as export_sheets,
    interface_of as interface_of,
)
from crosslens.web.judging.importing import import_items as import_items
from crosslens.web.judging.model_judges import (
    dataset_pictures as dataset_pictures,
    library_pictures as library_pictures,
    picture_files as picture_files,
)
from crosslens.web.judging.options import (
    IMP_SHEETS as IMP_SHEETS,
    LABEL_STUDIO as LABEL_STUDIO,
    QRELS as QRELS,
    AskingOptions as AskingOptions,
    ExportOptions as ExportOptions,
    ImportOptions as ImportOptions,
    JudgingFolder as JudgingFolder,
    ProjectOptions as ProjectOptions,
)
from crosslens.web.judging.results import load_answers as load_answers
from crosslens.web.server import running_address as running_address, serve_pages as serve_pages
from crosslens.web.settings import ServeOptions as ServeOptions, WebSettings as WebSettings
