"""People from a workbook: what is shown before, what is written, and what is refused."""

from __future__ import annotations

import base64
import io
import re

import pytest
from django.test import Client
from openpyxl import load_workbook

from console.accounts.models import Role, Tenant, User
from console.audit.models import Entry
from tests.console import rows
from tests.console.sheets import PEOPLE, book, confirm, seal, send, states, upload

pytestmark = pytest.mark.django_db
NEW = ("刘洋", "liuyang", "公司成员", "置业公司")
BAD, WARN, OK, LINE = "bad", "warn", "ok", "line"


def text(answer) -> str:
    return answer.content.decode()


def someone(name: str = "zhao", role: str = "tenant_member", slug: str | None = "estate") -> User:
    owner = Tenant.objects.get(slug=slug) if slug else None
    return User.objects.create(username=name, full_name="赵云", role=role, tenant=owner)


def test_the_preview_tells_each_row_apart_and_writes_nothing(browse):
    client = browse("account_officer")
    someone("kept"), someone("moved")
    before = list(User.objects.values())
    answer = upload(
        client,
        NEW,
        ("赵云", "kept", "公司成员", "置业公司"),
        ("赵云", "moved", "公司管理员", "置业公司"),
        ("错人", "wrong one", "老板", "没有的公司"),
    )
    assert states(answer) == {2: OK, 3: LINE, 4: WARN, 5: BAD}
    assert '<del class="gk-muted">公司成员</del> → 公司管理员' in text(answer)
    assert "没有这家公司" in text(answer)
    assert "没有这个角色" in text(answer)
    assert "确认写入" not in text(answer)  # one wrong row: nothing can be confirmed
    assert before == list(User.objects.values())


def test_confirming_writes_all_and_shows_first_passwords_once(browse):
    moved, client = someone("moved"), browse("account_officer")
    done = confirm(client, upload(client, NEW, ("赵子龙", "moved", "Manager", "")))
    made = User.objects.get(username="liuyang")
    moved.refresh_from_db()
    assert (made.tenant.slug, made.role, made.must_change_password) == ("estate", "tenant_member", True)
    assert (moved.full_name, moved.role, moved.tenant) == ("赵子龙", "manager", None)
    secrets = done.context["secrets"]
    assert [secret[:2] for secret in secrets] == [("刘洋", "liuyang")]
    file = re.search(r'href="data:[^;]+;base64,([^"]+)"', text(done))[1]
    sheet = load_workbook(io.BytesIO(base64.b64decode(file))).active
    assert list(sheet.iter_rows(min_row=2, values_only=True)) == secrets
    client = Client()
    client.post("/login", {"username": "liuyang", "password": secrets[0][2]})
    assert client.get("/").url == "/password"
    assert not User.objects.get(username="liuyang").password.startswith("first$")  # the usual hash from now on


def test_the_same_file_again_changes_nothing(browse):
    client = browse("account_officer")
    confirm(client, upload(client, NEW))
    before = list(User.objects.filter(username="liuyang").values())
    again = upload(client, NEW)
    assert states(again) == {2: LINE}
    assert "没有要写的" in text(again)
    assert confirm(client, again).context["secrets"] == []
    assert before == list(User.objects.filter(username="liuyang").values())


def test_a_row_that_changed_since_is_said_and_nothing_is_written(browse):
    moved, client = someone("moved"), browse("account_officer")
    shown = upload(client, NEW, ("赵子龙", "moved", "公司成员", "置业公司"))
    User.objects.filter(pk=moved.pk).update(role="tenant_admin")
    answer = confirm(client, shown)
    assert answer.status_code == 409
    assert {row.number: row.moved for row in answer.context["rows"]} == {2: False, 3: True}
    assert "没有写入" in text(answer)
    assert not User.objects.filter(username="liuyang").exists()
    assert confirm(client, answer).status_code == 200  # what is shown now can be confirmed
    moved.refresh_from_db()
    assert (moved.full_name, moved.role) == ("赵子龙", "tenant_member")


def test_a_change_between_look_and_write_takes_everything_back(browse, monkeypatch):
    from console.people import member_sheet

    moved, client = someone("moved"), browse("account_officer")
    shown = upload(client, NEW, ("赵子龙", "moved", "公司成员", "置业公司"))

    def meanwhile(people):
        User.objects.filter(pk=moved.pk).update(full_name="别人改的")

    monkeypatch.setattr(member_sheet, "about_to_change", meanwhile)
    answer = confirm(client, shown)
    assert (answer.status_code, [row.moved for row in answer.context["rows"]]) == (409, [True, False])
    moved.refresh_from_db()
    assert moved.full_name == "赵云"
    assert not User.objects.filter(username="liuyang").exists()


def test_somebody_else_made_the_account_meanwhile(browse):
    client = browse("account_officer")
    shown = upload(client, NEW)
    someone("liuyang", slug="energy")
    assert confirm(client, shown).status_code == 409
    assert User.objects.get(username="liuyang").full_name == "赵云"


def test_a_preview_is_confirmed_by_who_saw_it_and_as_it_was(browse):
    client = browse("account_officer")
    shown = upload(client, NEW)
    other = browse("tenant_admin")
    assert confirm(other, shown).status_code == 409
    for text_ in ("", seal(shown)[:-1], "x"):
        assert client.post("/members/import/save", {"seal": text_}).status_code == 409
    assert not User.objects.filter(username="liuyang").exists()


def test_a_preview_with_a_wrong_row_cannot_be_confirmed_by_a_script(browse):
    client = browse("account_officer")
    assert confirm(client, upload(client, NEW, ("", "x1", "审计", ""))).status_code == 409
    assert not User.objects.filter(username="liuyang").exists()


@pytest.mark.parametrize("role", ["运维", "审批人", "审计", "账户管理员", "Operator", "auditor"])
def test_a_companys_administrator_imports_nobody_of_the_centre(browse, role):
    answer = upload(browse("tenant_admin"), ("刘洋", "liuyang", role, ""))
    assert states(answer) == {2: BAD}
    assert "不能由您给" in text(answer)


def test_a_companys_administrator_imports_its_own_people_only(browse):
    someone("theirs", slug="finance")
    someone("officer", role="auditor", slug=None)
    client = browse("tenant_admin")
    answer = upload(
        client,
        ("刘洋", "liuyang", "公司成员", ""),
        ("张三", "zhang3", "公司成员", "金融公司"),
        ("抢人", "theirs", "公司成员", ""),
        ("抢人", "officer", "公司成员", ""),
    )
    assert states(answer) == {2: OK, 3: BAD, 4: BAD, 5: BAD}
    assert text(answer).count("已被别人用了") == 2
    assert "赵云" not in text(answer)  # nothing of the other's row is told
    confirm(client, upload(client, ("刘洋", "liuyang", "公司成员", "置业公司")))
    assert User.objects.get(username="liuyang").tenant.slug == "estate"


@pytest.mark.parametrize("role", sorted(set(Role.values) - {"account_officer", "tenant_admin"}))
def test_nobody_else_imports_people(browse, role):
    client = browse(role)
    assert upload(client, NEW).status_code == 403
    assert client.get("/members/import/template.xlsx").status_code == 403


def test_nobody_changes_the_own_role(browse):
    client, me = browse("account_officer"), rows.person("account_officer")
    same = (me.full_name or "账户", me.username, "账户管理员", "")
    User.objects.filter(pk=me.pk).update(full_name=same[0])
    assert states(upload(client, same)) == {2: LINE}
    assert states(upload(client, (same[0], me.username, "运维", ""))) == {2: BAD}


def test_cells_are_read_as_they_were_meant(browse):
    answer = upload(
        browse("account_officer"),
        ("　刘洋\u200b ", "ｌｉｕｙａｎｇ０１ ", " Tenant_Member", "置业公司 "),
        ("王工", 10086, "公司成员", "ESTATE"),
        ("陈工", 10087.0, "公司成员", "estate"),
        ("'=刘", "eq", "公司成员", "estate"),
    )
    assert states(answer) == {2: OK, 3: OK, 4: OK, 5: OK}
    assert [row.cells[0][0] for row in answer.context["rows"]] == ["刘洋", "王工", "陈工", "=刘"]
    assert [row.cells[1][0] for row in answer.context["rows"]] == ["liuyang01", "10086", "10087", "eq"]
    assert "全角字符按“liuyang01”读" in text(answer)
    assert "前面的 0 会丢" in text(answer)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("刘洋", "a b", "公司成员", "estate"), "账户只能用"),
        (("", "liuyang", "公司成员", "estate"), "没有填"),
        (("刘洋", "", "公司成员", "estate"), "没有填"),
        (("刘" * 61, "liuyang", "公司成员", "estate"), "最多 60 个字"),
        (("刘洋", 1.5, "公司成员", "estate"), "带小数"),
        (("刘洋", True, "公司成员", "estate"), "日期或逻辑值"),
        (("刘洋", "OPERATOR", "公司成员", "estate"), "只差大小写"),
        (("刘洋", "liuyang", "公司成员", ""), "请选一家"),
        (("刘洋", "liuyang", "审计", "estate"), "不能属于一家"),
    ],
)
def test_a_wrong_row_says_what_to_do(browse, row, said):
    answer = upload(browse("account_officer"), row)
    assert states(answer) == {2: BAD}
    assert said in text(answer)


def test_the_same_account_twice(browse):
    answer = upload(browse("account_officer"), NEW, ("刘阳", "LiuYang", "公司成员", "置业公司"))
    assert states(answer) == {2: BAD, 3: BAD}
    assert text(answer).count("出现了 2 次") == 2


def test_english_heads_roles_and_answers(browse):
    client = browse("account_officer")
    client.cookies["gongka_language"] = "en"
    rows_ = [("Account", "Name", "Company", "Role", "Phone"), ("liuyang", "Liu Yang", "estate", "Member", "1")]
    heads = client.get("/members/import/template.xlsx").content
    sheet = load_workbook(io.BytesIO(heads)).worksheets[0]
    assert [cell.value for cell in sheet[1]] == ["Name", "Account", "Role", "Company"]
    label = str(Role.TENANT_MEMBER.value)
    answer = send(client, book([rows_[0], ("liuyang", "Liu Yang", "estate", label, "1")]))
    assert states(answer) == {2: OK}
    assert "were not read: Phone" in text(answer)


def test_the_list_as_it_is_goes_out_and_comes_back_unchanged(browse):
    User.objects.filter(full_name="").update(full_name="-某人")
    client = browse("account_officer")
    body = client.get("/members/import/template.xlsx?rows=1").content
    main, explained, values = load_workbook(io.BytesIO(body)).worksheets
    assert [cell.value for cell in main[1]] == list(PEOPLE)
    assert main["B2"].number_format == "@"
    assert main.data_validations.count == 2
    assert explained.max_row > 4
    assert "置业公司" in {cell.value for cell in values["D"]}
    assert set(states(send(client, body)).values()) == {LINE}


def test_the_audit_tells_each_row(browse):
    someone("moved")
    client = browse("account_officer")
    shown = upload(client, NEW, ("赵子龙", "moved", "公司成员", "置业公司"))
    count = Entry.objects.count()
    confirm(client, shown)
    one = Entry.objects.latest("id")
    assert (Entry.objects.count(), one.act) == (count + 1, "member-import-save")
    said = {(which, field): (before, after) for _, which, field, before, after in one.changes}
    assert said["moved", "full_name"] == ("赵云", "赵子龙")
    assert said["liuyang", "role"] == (None, "tenant_member")
    assert said["liuyang", "password"] == (None, "***")


def test_query_counts_do_not_grow_with_rows(browse, django_assert_num_queries):
    client = browse("account_officer")
    people = [(f"人{n}", f"p{n}", "公司成员", "置业公司") for n in range(300)]
    with django_assert_num_queries(4):
        shown = upload(client, *people)
    assert set(states(shown).values()) == {OK}
