"""Settings: where they come from, and what is refused; secrets that nobody gets to see."""

import base64
import json
import logging
from urllib.parse import quote, urlencode

import pytest
from fencepost.core.config import load as load_config
from fencepost.core.errors import (
    Hold,
    InvalidInput,
    PluginError,
    Retry,
)
from fencepost.core.model.effect import (
    EffectInfo,
    EffectRequest,
    Setting,
    Unknown,
)
from fencepost.plugins.redact import Redactor, Secret
from fencepost.plugins.settings import (
    NotConfigured,
    from_options,
    from_table,
    merged,
    resolve,
)

INFO = EffectInfo(
    name="post",
    summary="s",
    settings={
        "url": Setting("Where.", required=True),
        "timeout_s": Setting("How long.", default=30.0),
        "tries": Setting("How often.", default=3),
        "verify": Setting("Whether.", default=True),
        "headers": Setting("More.", kind=dict),
        "token": Setting("Who.", secret=True, env="POST_TOKEN"),
    },
)


def resolved(given, environ=(), **options):
    return dict(resolve(INFO, given, dict(environ), pure=False, **options))


def from_file(path):
    return from_table(load_config(str(path)).effects, origin=str(path))


def test_defaults_fill_what_is_not_given():
    assert resolved({"url": "u"}) == {
        "url": "u",
        "timeout_s": 30.0,
        "tries": 3,
        "verify": True,
        "headers": None,
        "token": None,
        "namespace": None,
    }


def test_the_option_wins_over_the_file_and_the_file_over_the_environment(tmp_path):
    path = tmp_path / "fencepost.toml"
    path.write_text('[effects.post]\nurl = "file"\ntoken = "in-the-file"\n[queues.mail]\nmax_attempts = 5\n')
    given = merged(from_file(path), from_options(["post.url=option"]))["post"]
    values = resolved(given, {"POST_TOKEN": "environment"})
    assert (values["url"], str(values["token"])) == ("option", "in-the-file")
    assert str(resolved({"url": "u"}, {"POST_TOKEN": "environment"})["token"]) == "environment"
    assert resolved({"url": "u"}, {"POST_TOKEN": ""})["token"] is None


def test_options_are_read_as_what_the_setting_is():
    options = ["url=7", "timeout_s=5", "tries=4", "verify=false", 'headers={"a": "b"}']
    values = resolved(from_options(options, effect="post")["post"])
    assert {key: values[key] for key in ("url", "timeout_s", "tries", "verify", "headers")} == {
        "url": "7",
        "timeout_s": 5.0,
        "tries": 4,
        "verify": False,
        "headers": {"a": "b"},
    }


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "ulr = 'x'",
            "the effect 'post' has no setting 'ulr'; its settings are: headers, namespace, timeout_s",
        ),
        ("tries = 'many'", "tries must be a whole number, not 'many'"),
        ("tries = true", "tries must be a whole number, not True"),
        ("timeout_s = 'x'", "timeout_s must be a number"),
        ("verify = 1", "verify must be true or false, not 1"),
        ("headers = []", "headers must be a table"),
        ("url = 2020-01-01", "url must be a string"),
        ("token = 123456", "token must be a string"),
        ("namespace = ' '", "namespace must be a text that is not empty"),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path, line, says):
    path = tmp_path / "fencepost.toml"
    path.write_text(f"[effects.post]\n{line}\n" + ("" if line.startswith("url") else "url = 'u'\n"))
    with pytest.raises(PluginError) as refused:
        resolved(from_file(path)["post"])
    assert says in str(refused.value)
    assert "123456" not in str(refused.value)
    assert f"{path} [effects.post]: " in str(refused.value)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("post.tries=x", "--set: tries must be a whole number, not 'x'"),
        ("post.tires=4", "--set: the effect 'post' has no setting 'tires'"),
        ("post.headers={", "--set: headers must be a table"),
    ],
)
def test_an_error_names_the_option(option, says):
    with pytest.raises(PluginError, match=says):
        resolved(from_options([option])["post"])


@pytest.mark.parametrize("option", ["tries", "=4", "post.=4", "Post!.tries=4"])
def test_an_option_of_another_form_is_refused(option):
    with pytest.raises(InvalidInput, match=r"write EFFECT\.KEY=VALUE"):
        from_options([option], effect="post")


def test_an_option_must_say_for_which_effect():
    with pytest.raises(InvalidInput, match=r"say for which effect, as EFFECT\.tries=VALUE"):
        from_options(["tries=hunter2"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("effects = 3", "'effects' must be a table"),
        ("[effects]\npost = 3", r"\[effects.post\] must be a table"),
        ("[effects.'Not a name']\nx = 1", r"\[effects.Not a name\] must be a table named like an effect"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, text, says):
    path = tmp_path / "fencepost.toml"
    path.write_text(text)
    with pytest.raises(PluginError, match=says) as refused:
        from_file(path)
    assert str(path) in str(refused.value)


def test_what_is_required_and_missing_is_said_with_the_places_to_give_it():
    with pytest.raises(
        NotConfigured, match=r"needs the setting url: .* \[effects.post\], or with --set post.KEY"
    ):
        resolved({})


@pytest.mark.parametrize("delivery", ["keyed", "probed"])
def test_effects_with_keys_at_a_receiver_require_a_namespace(delivery):
    info = EffectInfo(name="post", summary="s", delivery=delivery, receiver_key="header")
    with pytest.raises(NotConfigured, match="needs the setting namespace"):
        resolve(info, {}, {}, pure=False)
    assert dict(resolve(info, {"namespace": "shop"}, {}, pure=False)) == {"namespace": "shop"}


def test_a_pure_effect_takes_no_namespace():
    info = EffectInfo(name="pure", summary="s")
    assert dict(resolve(info, {}, {}, pure=True)) == {}
    with pytest.raises(PluginError, match="no setting 'namespace'; its settings are: none"):
        resolve(info, {"namespace": "shop"}, {}, pure=True)


# -- Secrets --

SECRET = "hunter2-hunter2"
LEAKY = """
    import logging

    @hookimpl
    def effect_info():
        return EffectInfo(name="leaky", summary="s", settings={
            "token": Setting("t", required=True, secret=True, env="LEAKY_TOKEN")})

    @hookimpl
    def effect_configure(settings):
        global token
        token = settings["token"]
        if token.startswith("bad"):
            raise ValueError(f"no such user: {token}")

    @hookimpl
    def effect_validate(text):
        if text == "bad":
            raise ValueError(f"{text} {token}")

    @hookimpl
    def effect_apply(request):
        if request.text == "raise":
            try:
                raise OSError(5, f"cannot reach {token}")
            except OSError as error:
                raise KeyError(token) from error
        if request.text == "retry":
            raise Retry(f"later: {token}", after_s=7)
        if request.text == "log":
            request.log.warning("using %s", token)
            try:
                raise ValueError(token)
            except ValueError:
                request.log.exception("failed with %(token)s", {"token": token})
        return {"sent": [token, {"with": f"Bearer {token}"}]} if request.text == "go" else {}
    """


def request(text):
    return EffectRequest(
        id="a",
        text=text,
        attempt=1,
        fence=1,
        effect="leaky",
        namespace="test",
        deadline=0,
        extend=lambda request: None,
        logger=logging.getLogger("test.leaky"),
    )


def chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.fixture
def leaky(load_source, monkeypatch):
    monkeypatch.setenv("LEAKY_TOKEN", SECRET)
    plugins = load_source(LEAKY)
    return plugins, plugins.choose("leaky")


def test_an_outcome_that_holds_a_secret_fails_the_attempt_instead_of_being_altered(leaky):
    with pytest.raises(
        PluginError, match=r"'leaky' holds a secret setting, in 'sent\[0\]'; .* return something else"
    ):
        leaky[1].apply(request("go"))


def test_what_the_receiver_stored_may_hold_no_secret_either(load_source, monkeypatch):
    monkeypatch.setenv("LEAKY_TOKEN", SECRET)
    source = LEAKY.replace('summary="s",', 'summary="s", delivery="probed",')
    source += "\n    @hookimpl\n    def effect_reconcile(request): return Applied({'by': {'token': token}})\n"
    effect = load_source(source).choose("leaky", {"namespace": "n"})
    with pytest.raises(PluginError, match=r"holds a secret setting, in 'by\.token'"):
        effect.reconcile(request("x"))


def test_a_key_of_an_outcome_is_looked_at_too(leaky):
    assert Redactor([SECRET]).where({"a": [1, {SECRET: 2}]}) == "a[1].***"
    assert Redactor([SECRET]).where({"a": [1, None, "fine"]}) is None


@pytest.mark.parametrize("secret", ["m", "short"])
def test_a_secret_that_is_too_short_to_be_hidden_is_refused(secret):
    with pytest.raises(
        PluginError, match="environment POST_TOKEN: token is a secret with fewer than 6 characters"
    ) as refused:
        resolved({"url": "u"}, {"POST_TOKEN": secret})
    assert repr(secret) not in str(refused.value)
    info = EffectInfo(name="vault", summary="s", settings={"keys": Setting("k", default={}, secret=True)})
    with pytest.raises(PluginError, match="keys is a secret with fewer than 6"):
        resolve(info, {"keys": {"a": "long enough", "b": [secret]}}, {}, pure=True)


PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\nBKcwggSj\n-----END KEY-----\n"


@pytest.mark.parametrize("line", ["MIIEvQIBADANBgkq", "hkiG9w0BAQEFAASC", "BKcwggSj"])
def test_each_line_of_a_secret_of_several_lines_is_hidden(line):
    assert Redactor([PEM]).text(f"bad line {line!r}") == "bad line '***'"


@pytest.mark.parametrize("user", ["", "a", "ab", "abc", "someone"])
@pytest.mark.parametrize("secret", ["hunter2-hunter2", "pass?>wörd~", PEM])
def test_the_base64_of_a_secret_is_hidden_alone_and_in_a_longer_text(user, secret):
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(f"{user}:{secret}:x".encode()).decode()
        hidden = Redactor([secret]).text(f"Basic {whole}")
        assert "***" in hidden
        assert len(hidden) - len("Basic ***") <= len(whole) - len(secret.encode()) * 4 // 3 + 4
        assert Redactor([secret]).text(encode(secret.encode()).decode()) == "***"


def test_a_secret_reaches_no_error_nor_any_of_its_causes(leaky):
    import traceback

    with pytest.raises(Exception, match=r"\*\*\*") as raised:
        leaky[1].apply(request("raise"))
    assert SECRET not in "".join(traceback.format_exception(raised.value))
    assert all(SECRET not in f"{error} {error!r}" for error in chain(raised.value))


def test_a_signal_stays_a_signal_without_its_secret(leaky):
    with pytest.raises(Retry, match=r"later: \*\*\*") as raised:
        leaky[1].apply(request("retry"))
    assert raised.value.after_s == 7


def test_a_secret_reaches_no_log(leaky, caplog):
    leaky[1].apply(request("log"))
    assert [record.getMessage() for record in caplog.records] == [
        "using ***",
        "failed with *** (ValueError: ***)",
    ]
    assert SECRET not in caplog.text


def test_a_wrong_format_of_a_log_line_is_no_reason_for_the_work_to_fail(leaky, caplog):
    leaky[1].apply(asked := request("log"))
    asked.log.warning("%d of %s", "many")
    assert "%d of %s ('many',) (a wrong format" in caplog.text
    line = logging.LogRecord("other", logging.INFO, "", 0, "%d of %s", (SECRET,), None)
    assert leaky[0].redactor.clean(line)
    assert line.getMessage().startswith("%d of %s ('***',) (a wrong format")


def test_a_signal_that_carries_an_exception_stays_a_signal(leaky):
    redactor = leaky[0].redactor
    error = ValueError(f"401 for {SECRET}")
    held = redactor.error(Hold(error))
    assert type(held) is Hold
    assert str(held) == "401 for ***"


def test_the_reason_of_an_unknown_outcome_shows_no_secret(load_source, monkeypatch):
    monkeypatch.setenv("LEAKY_TOKEN", SECRET)
    source = LEAKY.replace('summary="s",', 'summary="s", delivery="probed",')
    source += "\n    @hookimpl\n    def effect_reconcile(request): return Unknown(f'401 for {token}')\n"
    effect = load_source(source).choose("leaky", {"namespace": "n"})
    assert effect.reconcile(request("x")) == Unknown("401 for ***")


def test_the_members_of_a_secret_table_are_secrets(load_source):
    plugins = load_source("""
        @hookimpl
        def effect_info():
            return EffectInfo(name="vault", summary="s", settings={
                "keys": Setting("k", default={}, secret=True)})

        @hookimpl
        def effect_outcome(text):
            return {}
        """)
    plugins.choose("vault", {"keys": {"a": "first-secret", "b": ["second-secret"]}})
    assert plugins.redactor.text("first-secret, second-secret") == "***, ***"


def test_a_secret_reaches_no_error_of_validation_or_set_up(leaky, load_source, monkeypatch):
    with pytest.raises(InvalidInput, match=r"refuses the text: bad \*\*\*"):
        leaky[1].validate("bad")
    monkeypatch.setenv("LEAKY_TOKEN", "bad-" + SECRET)
    with pytest.raises(PluginError, match=r"'leaky' cannot be set up: ValueError: no such user: \*\*\*"):
        load_source(LEAKY).choose("leaky")


def test_a_secret_has_no_repr(leaky):
    assert SECRET not in repr(resolved({"url": "u"}, {"POST_TOKEN": SECRET}))
    assert SECRET not in repr(resolved({"url": "u", "token": SECRET}))
    assert repr({"token": Secret(SECRET)}) == "{'token': '***'}"
    assert f"Bearer {Secret(SECRET)}" == f"Bearer {SECRET}"
    assert SECRET not in repr(from_options([f"x.token={SECRET}"]))


def test_the_redactor_of_all_chosen_effects_cleans_a_traceback(leaky):
    assert leaky[0].redactor.text(f"Authorization: {SECRET}") == "Authorization: ***"
    assert Redactor(["ab", "abc"]).text("abcd") == "***d"


class Unspeakable(Exception):
    """What cannot be shown."""

    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __str__


def test_what_cannot_be_shown_is_no_reason_for_the_work_to_fail(leaky):
    redactor = leaky[0].redactor
    log = logging.getLogger("unspeakable")
    with redactor.cleaning_logs():
        log.error("%s", Unspeakable())
        log.error(Unspeakable())
        log.error("wrong: %d", SECRET)
        try:
            raise Unspeakable
        except Unspeakable:
            log.exception("dead")
    assert str(redactor.error(Unspeakable())) == "Unspeakable (its message could not be read)"


@pytest.mark.parametrize("secret", ["ab\udcff-cd", 'pa"ss\\word', "пароль", "a b/c&d+e", "it's"])
def test_a_secret_is_hidden_in_whatever_form_it_is_written(secret):
    redactor = Redactor([secret])
    written = [
        secret,
        json.dumps({"t": secret}),
        json.dumps({"t": secret}, ensure_ascii=False),
        repr([secret]),
        urlencode({"t": secret}, errors="surrogateescape"),
        f"https://host/{quote(secret, errors='surrogateescape')}",
        f"https://host/?t={quote(secret, safe='', errors='surrogateescape')}",
    ]
    for text in written:
        hidden = redactor.text(text)
        assert hidden.count("***") == 1
        assert len(hidden) - 3 <= len(text) - len(secret)


def test_a_secret_is_refused_as_an_option_which_everybody_can_see():
    with pytest.raises(PluginError, match="put it into the environment as POST_TOKEN") as refused:
        resolved(from_options([f"post.token={SECRET}"])["post"])
    assert SECRET not in str(refused.value)
