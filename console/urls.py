"""All addresses of the console on one screen."""

from __future__ import annotations

from django.urls import path

from console import search, views
from console.accounts.views import Login, Logout, language, password
from console.advising import views as advice
from console.audit import views as audit
from console.board import views as board
from console.costs import budgets, check_up, prices
from console.costs import card as card_hours
from console.costs import views as costs
from console.hosts import views as hosts
from console.journal import timeline
from console.journal import views as journal
from console.model_pages import views as models
from console.people import applications, imports, keys, members, tenants
from console.policy_pages import views as policies
from console.previews import views as previews
from console.quotas import views as quotas
from console.repack import views as repack
from console.requests import absences, asking, attaching, collecting, elsewhere, lists
from console.requests import page as asked
from console.services import batch_views as batch
from console.services import edit_views as edit
from console.services import keeps
from console.services import order_views as orders
from console.services import views as services
from console.services import wizard_views as wizard

handler403 = views.forbidden
handler404 = views.not_found
handler500 = views.broken

urlpatterns = [
    path("", board.page, name="board"),
    path("board/hosts", board.hosts, name="board-hosts"),
    path("board/numbers", board.numbers, name="board-numbers"),
    path("board/cards/<int:pk>", board.tile, name="board-tile"),
    path("board/cards/<int:pk>/drawer", board.drawer, name="board-drawer"),
    path("board/cards/<int:pk>/failure", board.failure, name="board-failure"),
    path("board/cards/<int:pk>/cordon", board.cordon, name="board-cordon"),
    path("services/", services.services, name="services"),
    path("services/export.yaml", batch.export, name="services-export"),
    path("services/import", batch.bring, name="services-import"),
    path("services/import/write", batch.write, name="services-import-write"),
    path("services/bulk", batch.bulk, name="services-bulk"),
    path("services/new", wizard.draft, name="service-new"),
    path("services/new/claim", wizard.claim, name="service-claim"),
    path("services/new/read", wizard.read, name="service-read"),
    path("services/new/answer", wizard.answer, name="service-answer"),
    path("services/new/register", wizard.register, name="service-register"),
    path("services/<slug:name>", services.service, name="service"),
    path("services/<slug:name>/now", services.now, name="service-now"),
    path("services/<slug:name>/preload", orders.preload, name="service-preload"),
    path("services/<slug:name>/preloads", services.preloads, name="service-preloads"),
    path("services/<slug:name>/prefetch", services.prefetch, name="service-prefetch"),
    path("services/<slug:name>/stop", orders.stop, name="service-stop"),
    path("services/<slug:name>/edit", edit.edit, name="service-edit"),
    path("services/<slug:name>/edit/answer", edit.answer, name="service-edit-answer"),
    path("services/<slug:name>/whitelist", asking.whitelist, name="service-whitelist"),
    path("services/<slug:name>/whitelist/end", keeps.end, name="service-whitelist-end"),
    path("services/<slug:name>/replicas/<int:pk>/<slug:act>", orders.replica, name="service-replica"),
    path("models/", models.models, name="models"),
    path("models/<int:pk>", models.model, name="model"),
    path("models/<int:pk>/edit", models.edit, name="model-edit"),
    path("models/<int:pk>/read", models.read, name="model-read"),
    path("decisions/", journal.decisions, name="decisions"),
    path("advice/", advice.page, name="advice"),
    path("advice/badge", advice.badge, name="advice-badge"),
    path("advice/<int:pk>/approve", advice.approve, name="advice-approve"),
    path("advice/pools/<int:pk>/mode", advice.mode, name="advice-mode"),
    path("advice/notices/<int:pk>/keep", advice.keep, name="advice-keep"),
    path("timeline/", timeline.timeline, name="timeline"),
    path("timeline/<int:pk>", timeline.story, name="story"),
    path("check-up/", check_up.page, name="check-up"),
    path("costs/", costs.costs, name="costs"),
    path("costs/table.csv", costs.costs_csv, name="costs-csv"),
    path("costs/cards/<int:pk>", card_hours.card, name="card-hours"),
    path("costs/budgets", budgets.budgets, name="budgets"),
    path("costs/budgets/card", budgets.card_budget_new, name="card-budget-new"),
    path("costs/budgets/card/<int:pk>/end", budgets.card_budget_end, name="card-budget-end"),
    path("costs/budgets/calls", budgets.call_budget_new, name="call-budget-new"),
    path("costs/budgets/calls/<int:pk>/end", budgets.call_budget_end, name="call-budget-end"),
    path("costs/prices", prices.prices, name="prices"),
    path("costs/prices/new", prices.price_new, name="price-new"),
    path("costs/pools/<int:pk>/owner", prices.pool_owner, name="pool-owner"),
    path("costs/prices/<int:pk>/approve", prices.price_approve, name="price-approve"),
    path("policies/", policies.policies, name="policies"),
    path("policies/review", policies.review, name="policy-review"),
    path("policies/save", policies.save, name="policy-save"),
    path("policies/versions", policies.versions, name="policy-versions"),
    path("policies/versions/<int:pk>/back", policies.roll_back, name="policy-roll-back"),
    path("policies/versions/<int:pk>/withdraw", policies.take_back, name="policy-withdraw"),
    path("policies/proposal", previews.proposal, name="policy-proposal"),
    path("policies/previews/", previews.previews, name="policy-previews"),
    path("policies/previews/new", previews.ask, name="policy-preview-ask"),
    path("policies/previews/<int:pk>", previews.preview, name="policy-preview"),
    path("policies/previews/<int:pk>/table.csv", previews.csv, name="policy-preview-csv"),
    path("policies/previews/<int:pk>/cancel", previews.cancel, name="policy-preview-cancel"),
    path("hosts/", hosts.hosts, name="hosts"),
    path("hosts/<int:pk>", hosts.host, name="host"),
    path("hosts/<int:pk>/cordon", hosts.cordon, name="host-cordon"),
    path("hosts/<int:pk>/maintenance", hosts.maintenance, name="host-maintenance"),
    path("hosts/<int:pk>/maintenance/end", hosts.maintenance_end, name="host-maintenance-end"),
    path("hosts/<int:pk>/storage", hosts.storage, name="host-storage"),
    path("hosts/<int:pk>/gone", hosts.gone, name="host-gone"),
    path("hosts/<int:pk>/foreign", hosts.foreign, name="host-foreign"),
    path("hosts/<int:pk>/foreign/<int:use>", hosts.foreign_end, name="host-foreign-end"),
    path("repack/", repack.page, name="repack"),
    path("repack/pools/<int:pk>/search", repack.search, name="repack-search"),
    path("repack/jobs/<int:pk>/cancel", repack.cancel, name="repack-cancel"),
    path("repack/proposals/<int:pk>/approve", repack.approve_all, name="repack-approve"),
    path("repack/moves/<int:pk>/approve", repack.approve, name="repack-move-approve"),
    path("repack/moves/<int:pk>/skip", repack.skip, name="repack-move-skip"),
    path("requests/", lists.everything, name="requests"),
    path("requests/mine", lists.mine, name="requests-mine"),
    path("requests/review", lists.review, name="requests-review"),
    path("requests/badge", lists.badge, name="requests-badge"),
    path("requests/new", asking.choose, name="request-choose"),
    path("requests/new/<slug:kind>", asking.new, name="request-new"),
    path("requests/new/<slug:kind>/draft", asking.draft, name="request-draft"),
    path("requests/<int:pk>/files", attaching.add, name="request-attach"),
    path("requests/<int:pk>/files/<int:file>", attaching.one, name="request-file"),
    path("requests/<int:pk>/files/<int:file>/remove", attaching.remove, name="request-detach"),
    path("requests/<int:pk>", asked.page, name="request"),
    path("requests/<int:pk>/weighed", asked.weighed, name="request-weighed"),
    path("requests/<int:pk>/decision", asked.decision, name="request-decision"),
    path("requests/<int:pk>/act", asked.act, name="request-act"),
    path("requests/<int:pk>/end", asked.end, name="request-end"),
    path("absences/<int:pk>/end", absences.end, name="absence-end"),
    path("requests/absences", absences.absences, name="request-absences"),
    path("api/v1/requests/<int:pk>/decision", elsewhere.decision, name="api-request-decision"),
    path("requests/<int:pk>/print", asked.on_paper, name="request-print"),
    path("requests/<int:pk>/key", collecting.key, name="request-key"),
    path("requests/<int:pk>/again", asking.again, name="request-again"),
    path("search", search.search, name="search"),
    path("search/services", search.service_names, name="search-services"),
    path("tenants/", tenants.tenants, name="tenants"),
    path("tenants/new", tenants.tenant_new, name="tenant-new"),
    path("tenants/import", imports.tenants, name="tenant-import"),
    path("tenants/import/template.xlsx", imports.tenants_template, name="tenant-import-template"),
    path("tenants/import/save", imports.tenants_save, name="tenant-import-save"),
    path("tenants/<int:pk>", tenants.tenant, name="tenant"),
    path("tenants/<int:pk>/edit", tenants.tenant_edit, name="tenant-edit"),
    path("tenants/quotas", quotas.quotas, name="quotas"),
    path("tenants/quotas/table.csv", quotas.quotas_csv, name="quotas-csv"),
    path("tenants/quotas/new", quotas.quota_new, name="quota-new"),
    path("tenants/quotas/answer", quotas.quota_answer, name="quota-answer"),
    path("tenants/quotas/<int:pk>", quotas.quota_edit, name="quota-edit"),
    path("tenants/quotas/<int:pk>/end", quotas.quota_end, name="quota-end"),
    path("applications/new", applications.new, name="application-new"),
    path("applications/<int:pk>", applications.application, name="application"),
    path("applications/<int:pk>/edit", applications.edit, name="application-edit"),
    path("applications/<int:pk>/remove", applications.remove, name="application-remove"),
    path("members/", members.members, name="members"),
    path("members/new", members.member_new, name="member-new"),
    path("members/import", imports.members, name="member-import"),
    path("members/import/template.xlsx", imports.members_template, name="member-import-template"),
    path("members/import/save", imports.members_save, name="member-import-save"),
    path("members/<int:pk>", members.member, name="member"),
    path("members/<int:pk>/access", members.member_access, name="member-access"),
    path("members/<int:pk>/password", members.member_password, name="member-password"),
    path("keys/", keys.keys, name="keys"),
    path("keys/new", keys.key_new, name="key-new"),
    path("keys/<int:pk>/rotate", keys.key_rotate, name="key-rotate"),
    path("keys/<int:pk>/application", keys.key_application, name="key-application"),
    path("keys/<int:pk>/revoke", keys.key_revoke, name="key-revoke"),
    path("audit/", audit.audit, name="audit"),
    path("audit/table.csv", audit.audit_csv, name="audit-csv"),
    path("audit/table.xlsx", audit.audit_xlsx, name="audit-xlsx"),
    path("password", password, name="password"),
    path("language", language, name="language"),
    path("login", Login.as_view(), name="login"),
    path("logout", Logout.as_view(), name="logout"),
    path("healthz", views.healthz, name="healthz"),
]
