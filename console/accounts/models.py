"""Who: tenants, their people, who stands in for whom, and the keys their applications call with."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _


class Tenant(models.Model):
    """A subsidiary: owns services, quota, budget, members and keys."""

    slug = models.SlugField(_("标识"), unique=True)
    name = models.CharField(_("名称"), max_length=80, unique=True)
    mark = models.CharField(_("简称"), max_length=2, unique=True, help_text=_("画在卡上的一个字"))
    ordinal = models.PositiveSmallIntegerField(_("色号"), unique=True, help_text=_("按创建次序，决定颜色与纹理"))

    class Meta:
        ordering = ("ordinal",)

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    OPERATOR = "operator", _("运维")
    APPROVER = "approver", _("审批人")
    TENANT_ADMIN = "tenant_admin", _("公司管理员")
    TENANT_MEMBER = "tenant_member", _("公司成员")
    MANAGER = "manager", _("管理者")
    AUDITOR = "auditor", _("审计")
    ACCOUNT_OFFICER = "account_officer", _("账户管理员")


class User(AbstractUser):
    """A person. Staff of the centre have no tenant; what each role may do is decided in `access.py` alone."""

    role = models.CharField(_("角色"), max_length=16, choices=Role.choices, default=Role.TENANT_MEMBER)
    tenant = models.ForeignKey(Tenant, models.PROTECT, null=True, blank=True, related_name="members")
    full_name = models.CharField(_("姓名"), max_length=60, blank=True)
    language = models.CharField(_("语言"), max_length=10, blank=True, help_text="one of settings.LANGUAGES")
    must_change_password = models.BooleanField(
        default=False, help_text="somebody else knows the password: no page opens before it is changed"
    )

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(
                name="tenant_roles_have_a_tenant",
                condition=~models.Q(role__in=["tenant_admin", "tenant_member"]) | models.Q(tenant__isnull=False),
            )
        ]


class Application(models.Model):
    """What calls: a program of a company, below it in the tree. Its calls are those of its keys."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="applications", verbose_name=_("公司"))
    slug = models.SlugField(_("标识"))
    name = models.CharField(_("名称"), max_length=80)
    owner = models.ForeignKey(
        "User", models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("负责人")
    )
    note = models.CharField(_("备注"), max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("tenant__ordinal", "name")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "slug"], name="one_application_a_slug"),
            models.UniqueConstraint(fields=["tenant", "name"], name="one_application_a_name"),
        ]

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A caller's key: `gk_` and 32 random bytes, shown once, kept as a hash."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="keys")
    application = models.ForeignKey(
        Application, models.PROTECT, null=True, blank=True, related_name="keys", help_text="of the same tenant"
    )
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12, help_text="the first characters, to recognise it by")
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the key: 256 random bits need no salt")
    services = models.JSONField(default=list, blank=True, help_text="names it may call; empty: all that its tenant may")
    progress_content = models.BooleanField(default=False, help_text="loading progress as readable deltas in streams")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey("User", models.SET_NULL, null=True, blank=True, related_name="+")
    followed_by = models.OneToOneField(
        "self", models.SET_NULL, null=True, blank=True, related_name="follows", help_text="the key it was rotated to"
    )

    def __str__(self) -> str:
        return f"{self.prefix}… {self.name}"


class Absence(models.Model):
    """While an approver or a company's administrator is away, the deputy does what they may. `access` says what."""

    person = models.ForeignKey(User, models.CASCADE, related_name="absences")
    deputy = models.ForeignKey(User, models.CASCADE, related_name="deputised")
    starts_at = models.DateTimeField()
    until = models.DateTimeField()
    made_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, help_text="back earlier")

    class Meta:
        ordering = ("-id",)
        db_table = "requests_absence"  # where it was made first
        constraints = [
            models.CheckConstraint(name="nobody_is_their_own_deputy", condition=~models.Q(person=models.F("deputy"))),
            models.CheckConstraint(name="an_absence_lasts", condition=models.Q(until__gt=models.F("starts_at"))),
        ]

    def __str__(self) -> str:
        return f"{self.person_id} by {self.deputy_id} until {self.until:%m-%d %H:%M}"
