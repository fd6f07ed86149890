"""The catalogue's pages: where a number came from, reading files, the shipped catalogue, changes by hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from console.audit.models import Entry
from console.catalog.models import Model, Service
from console.catalog.weights.problem import Code, Unknown
from console.model_pages.words import ATTENTION, FIELDS, PARTS, PROBLEMS, UNKNOWN
from console.services.shapes import model_row, shape, slug_of
from tests.console.test_wizard import fields
from tests.weights.made import weights

pytestmark = pytest.mark.django_db
SLUG = "qwen3-8b-bf16"


def text(answer) -> str:
    return answer.content.decode()


def row() -> Model:
    return Model.objects.get(slug=SLUG)


def sent(**changed: object) -> dict[str, object]:
    """What the edit page sends: each field, and what it was."""
    now = {name: getattr(row(), name) for name in FIELDS}
    return {f"was-{name}": str(value) for name, value in now.items()} | now | changed


@pytest.fixture
def operator(browse):
    return browse("operator")


@pytest.fixture
def root(settings, tmp_path: Path) -> Path:
    settings.WEIGHTS_ROOTS = [tmp_path]
    return tmp_path


def take(client, page: str):
    """The button of the page that was looked at."""
    seen = re.search(r'name="seen" value="(\w+)"', text(client.get(page)))
    assert seen is not None
    return client.post(page, {"seen": seen[1]})


def test_everything_that_can_be_wrong_has_words():
    assert set(PROBLEMS) == set(Code)
    assert set(UNKNOWN) == set(Unknown)
    assert set(FIELDS) >= {"weights_mib", "kv_bytes_per_token", "max_context", "min_compute_cap", "shards"}
    assert len(ATTENTION) == 7
    assert "precision" in PARTS


def test_the_list_and_the_page_say_where_numbers_came_from(operator):
    assert "随附目录" in text(operator.get("/models/"))
    html = text(operator.get(f"/models/{row().pk}"))
    for said in ("15,626", "147,456", "随附目录", "没有记下", "权重还没有读过"):
        assert said in html, said
    assert Service.objects.filter(model=row()).first().label in html
    assert 'href="/models/"' in text(operator.get("/services/"))
    assert re.search(r'href="/services/"[^>]*aria-current', html), "the menu says where one is"


def test_files_are_read_shown_and_only_then_taken(operator, root):
    weights(root / SLUG, [6000, 9000])
    page = f"/models/{row().pk}/read"
    html = text(operator.get(page))
    for said in ("文件怎么说", "15,000", "GQA", "一样"):
        assert said in html, said
    assert row().weights_mib == 15626, "looking writes nothing"
    answer = take(operator, page)
    assert (answer.status_code, answer.url) == (302, f"/models/{row().pk}")
    after = row()
    assert (after.weights_mib, after.shards, after.kv_bytes_per_token) == (15000, 2, 147456)
    assert set(after.origins.values()) == {"read"}
    assert (after.shape["layers"], after.shape["attention"]) == (36, "gqa")
    assert after.read_at is not None
    told = Entry.objects.latest("pk")
    assert (told.act, told.subject) == ("model-read", str(after))
    assert "读自权重" in text(operator.get(answer.url))


def test_what_changed_since_it_was_looked_at_is_not_taken(operator, root):
    weights(root / SLUG, [6000])
    page = f"/models/{row().pk}/read"
    seen = re.search(r'name="seen" value="(\w+)"', text(operator.get(page)))[1]
    weights(root / SLUG, [7000])
    answer = operator.post(page, {"seen": seen})
    assert answer.url == page
    assert row().weights_mib == 15626
    assert operator.post(page).url == page
    Model.objects.filter(slug=SLUG).update(max_context=7)
    assert operator.post(page, {"seen": seen}).url == page


def test_files_that_are_not_there_leave_the_shipped_catalogue(operator, root):
    Model.objects.filter(slug=SLUG).update(weights_mib=1, origins={"weights_mib": "hand"})
    page = f"/models/{row().pk}/read"
    html = text(operator.get(page))
    assert "权重目录下没有这个文件夹" in html
    assert "随附目录怎么说" in html
    take(operator, page)
    after = row()
    assert (after.weights_mib, after.origins["weights_mib"], after.read_at) == (15626, "catalogue", None)
    assert "没有读成" not in text(operator.get(f"{page}?from=catalogue"))


def test_a_model_that_neither_knows_is_for_a_person(operator, root):
    own = Model.objects.create(
        slug="own", name="自训", weights="own/v2", weights_mib=9, kv_bytes_per_token=1, max_context=0
    )
    html = text(operator.get(f"/models/{own.pk}/read"))
    assert "随附目录里也没有它" in html
    assert operator.post(f"/models/{own.pk}/read").status_code == 302
    weights(root / "own" / "v2", [9], mamba_d_state=16)
    html = text(operator.get(f"/models/{own.pk}/read"))
    assert "每个 token 的 KV 算不出" in html
    take(operator, f"/models/{own.pk}/read")
    own.refresh_from_db()
    assert own.kv_bytes_per_token == 1, "what cannot be told is not overwritten"
    assert "kv_bytes_per_token" not in own.origins


def test_without_roots_the_page_says_what_to_set(operator, settings):
    settings.WEIGHTS_ROOTS = []
    assert "GONGKA_WEIGHTS_ROOTS" in text(operator.get(f"/models/{row().pk}/read"))


def test_a_change_by_hand_is_marked_and_a_new_path_forgets_what_was_read(operator):
    Model.objects.filter(slug=SLUG).update(origins={"weights_mib": "read", "max_context": "catalogue"})
    page = f"/models/{row().pk}/edit"
    assert "业务的声明不跟着变" in text(operator.get(page))
    answer = operator.post(page, sent(kv_bytes_per_token=1000))
    assert answer.status_code == 302
    assert row().origins == {"weights_mib": "read", "max_context": "catalogue", "kv_bytes_per_token": "hand"}
    operator.post(page, sent(weights="other/place"))
    assert row().origins == {"max_context": "catalogue", "kv_bytes_per_token": "hand"}
    assert "没有什么不同" in text(operator.post(page, sent(), follow=True))


@pytest.mark.parametrize("path", ["/etc", "../x", "a/../../b", ""])
def test_a_path_that_leaves_is_refused_beside_its_field(operator, path):
    answer = operator.post(f"/models/{row().pk}/edit", sent(weights=path))
    assert answer.status_code == 422
    assert "id_weights_error" in text(answer)
    answer = operator.post("/services/new/register", fields(model="other", weights_path=path, kv_bytes="57344"))
    assert answer.status_code == 422
    assert "id_weights_path_error" in text(answer)


def test_of_two_who_change_one_number_the_second_is_told(operator):
    page, first = f"/models/{row().pk}/edit", sent(max_context=1000)
    second = sent(max_context=2000)
    assert operator.post(page, first).status_code == 302
    answer = operator.post(page, second)
    assert answer.status_code == 422
    assert "刚才有人也改了这个模型" in text(answer)
    assert row().max_context == 1000


def test_the_wizard_reads_files_and_the_claim_follows(operator, root):
    weights(root / "own" / "tuned", [4000, 4000])
    given = {"model": "", "weights_path": "own/tuned", "kv_bytes": ""}
    answer = operator.post("/services/new/read", fields(**given))
    html = text(answer)
    assert 'value="147456"' in html
    assert answer.headers["HX-Trigger-After-Swap"] == "weights-read"
    seal = re.search(r'name="read" value="([^"]+)"', html)[1]
    known = fields(model="other", weights_path="own/tuned", kv_bytes="147456", read=seal)
    assert 'value="7.82"' in text(operator.post("/services/new/claim", known)), "8,000 MiB"
    operator.post("/services/new/register", known)
    model = Service.objects.get(name="contract-compare").model
    assert (model.weights, model.weights_mib, model.shards, model.max_context) == ("own/tuned", 8000, 2, 40960)
    assert set(model.origins.values()) == {"read"}


def test_a_seal_of_another_path_or_a_forged_one_counts_for_nothing(operator, root):
    weights(root / "own" / "tuned", [8])
    html = text(operator.post("/services/new/read", fields(weights_path="own/tuned")))
    seal = re.search(r'name="read" value="([^"]+)"', html)[1]
    assert shape("other", "own/tuned", 147456, seal).origins["kv_bytes_per_token"] == "read"
    for path, kv, given in (("own/else", 147456, seal), ("own/tuned", 1, seal), ("own/tuned", 147456, seal[:-1] + "x")):
        assert set(shape("other", path, kv, given).origins.values()) == {"hand"}


def test_the_wizard_says_why_files_were_not_read(operator, root):
    html = text(operator.post("/services/new/read", fields(weights_path="own/none")))
    assert "权重目录下没有这个文件夹" in html
    made = weights(root / "own" / "cut", [8])
    os.truncate(made / "model.safetensors", 4096)
    html = text(operator.post("/services/new/read", fields(weights_path="own/cut")))
    assert "model.safetensors：" in html
    assert "还没有拷完" in html


def test_only_the_centre_reads_files(browse):
    for name in ("tenant_admin", "tenant_member", "manager"):
        client = browse(name)
        assert client.get("/models/").status_code == 403
        assert client.post("/services/new/read", fields(weights_path="own")).status_code == 403
    assert "读取权重" not in text(browse("tenant_member").get("/services/new"))
    auditor = browse("auditor")
    assert auditor.get(f"/models/{row().pk}").status_code == 200
    assert auditor.get(f"/models/{row().pk}/edit").status_code == 403


def test_two_paths_never_share_a_slug():
    assert len({slug_of(path) for path in ("a/b", "a-b", "A/b", "a_b", "甲/乙", "乙/甲", "x" * 90, "x" * 91)}) == 8
    assert all(len(slug_of(path)) <= 80 for path in ("x" * 500, "甲", "a/b"))


def test_paths_that_read_alike_become_two_models_and_one_path_stays_one(farm):
    first = model_row(shape("other", "a/b", 57344), 1000)
    second = model_row(shape("other", "a-b", 57344), 2000)
    assert first.pk != second.pk
    assert (second.weights, second.weights_mib) == ("a-b", 2000)
    assert model_row(shape("other", "a/b", 57344), 3000).pk == first.pk
    like_shipped = model_row(shape("other", SLUG, 1), 10)
    assert like_shipped.pk != row().pk, "a path that reads like a model of the catalogue is none"


def test_one_folder_with_two_numbers_is_a_mistake_that_is_said(operator):
    known = {"model": "other", "weights_path": SLUG, "kv_bytes": "57344"}
    answer = operator.post("/services/new/register", fields(**known))
    assert answer.status_code == 422
    assert "这个路径已经是模型 Qwen3-8B" in text(answer)
    operator.post("/services/new/register", fields(**known | {"kv_bytes": "147456"}))
    assert Service.objects.get(name="contract-compare").model == row()
