"""Faults of a configuration: all at once, each with its place and the way out."""

import pytest

from session_runtime.config.faults import written
from tests.config.conftest import Reader


@pytest.mark.requirement("CFG-1")
def test_every_fault_is_told_at_once_in_the_order_of_the_file(read: Reader) -> None:
    assert read.problems(
        """\
[ask]
max_steps = 0
prompt_file = "absent.md"
default_model = "mian"

[skills]
tool_serach_enabled = true
prefetch_tools = ["get_current_time", 3]

[models.main]
model = "m"

[http]
host = "0.0.0.0"

[access.rules.guests]
roles = ["guest"]
""",
        env={"TOOL_SEARCH_MAX_RESULTS": "many", "SESSION_RUNTIME__LOG": "debug"},
    ) == [
        "config.toml:2: ask.max_steps: must be at least 1 (given: 0)",
        f"config.toml:3: ask.prompt_file: there is no file {read.folder / 'absent.md'}",
        "config.toml:4: ask.default_model: no profile of [models] has this name"
        " (given: \"mian\"); did you mean 'main'?",
        "config.toml:7: skills.tool_serach_enabled: unknown key (given: true);"
        " did you mean tool_search_enabled?",
        "config.toml:8: skills.prefetch_tools: item 2 must be text (given: 3)",
        'config.toml:10: models.main.base_url: wire = "chat" needs it',
        "config.toml:14: http.host: callers need no key, so only a loopback address is allowed:"
        " 127.0.0.1, ::1 or localhost; for others, set keys: session-runtime keys add NAME"
        ' (given: "0.0.0.0")',
        "config.toml:16: access.rules.guests: the rule needs allow or deny",
        "env SESSION_RUNTIME__LOG: log: must be a JSON object: this name means a whole table",
        "env TOOL_SEARCH_MAX_RESULTS: skills.tool_search_max_results:"
        ' must be a whole number (given: "many")',
    ]


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[skills]\nTOOL_SEARCH_ENABLED = true",
            "2: skills.TOOL_SEARCH_ENABLED: unknown key (given: true);"
            " did you mean tool_search_enabled?",
        ),
        (
            "[SKILLS]\ntool_search_enabled = true",
            "1: SKILLS: unknown section (given: a table); did you mean skills?",
        ),
        (
            "[TOOL_SEARCH]\nENABLED = false",
            "1: TOOL_SEARCH: unknown section (given: a table);"
            " did you mean skills.tool_search_enabled?",
        ),
        (
            "[tool_serach]\nmax_resluts = 3",
            "1: tool_serach: unknown section (given: a table);"
            " did you mean skills.tool_search_max_results?",
        ),
        (
            "[ask]\ntool_search_enabled = true",
            "2: ask.tool_search_enabled: unknown key (given: true);"
            " did you mean skills.tool_search_enabled?",
        ),
        ("[amqp]\nx = 1", "1: amqp: unknown section (given: a table)"),
        (
            "[skils]\ntool_search_enabled = true",
            "1: skils: unknown section (given: a table); did you mean skills?",
        ),
        (
            "[skils]\ntool_serach_enabled = true",
            "1: skils: unknown section (given: a table); did you mean skills?",
        ),
        ("[webb]", "1: webb: unknown section (given: a table); did you mean web?"),
        (
            "[model.main]\nwire = 'offline'",
            "1: model: unknown section (given: a table); did you mean models?",
        ),
        (
            "[handlers.entris.x]\nimport = 'm:f'",
            "1: handlers.entris: unknown key (given: a table); did you mean entries?",
        ),
        (
            "[trace]\nmax = {bytes = 3}",
            "2: trace.max: unknown key (given: a table); did you mean max_bytes?",
        ),
        ("_env = 3", "1: _env: unknown section (given: 3)"),
        ("[log]\nlevl = 'debug'", '2: log.levl: unknown key (given: "debug"); did you mean level?'),
        (
            "[easter_egg]\nmode = 1",
            "2: easter_egg.mode: unknown key (given: 1); did you mean notices.mode?",
        ),
    ],
)
def test_an_unknown_key_is_told_with_the_nearest_one(read: Reader, text: str, problem: str) -> None:
    assert read.problems(text) == [f"config.toml:{problem}"]


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[skills]\ntool_search_enabled = 1",
            "tool_search_enabled: must be true or false (given: 1)",
        ),
        (
            '[skills]\ntool_search_enabled = "yes"',
            'tool_search_enabled: must be true or false (given: "yes")',
        ),
        (
            '[skills]\ntool_search_max_results = "7"',
            'tool_search_max_results: must be a whole number (given: "7")',
        ),
        (
            "[skills]\ntool_search_max_results = true",
            "tool_search_max_results: must be a whole number (given: true)",
        ),
        ("[skills]\nprefetch_timeout_s = 0", "prefetch_timeout_s: must be more than 0 (given: 0)"),
        ("[skills]\nprefetch_timeout_s = inf", "prefetch_timeout_s: must be a number (given: inf)"),
        ('[skills]\nprefetch_tools = "a"', 'prefetch_tools: must be a list (given: "a")'),
        (
            "[skills]\ntool_search_threshold_percent = 101",
            "tool_search_threshold_percent: must be at most 100 (given: 101)",
        ),
        (
            "[skills]\ntool_search_enabled = {}",
            "tool_search_enabled: must be true or false (given: a table)",
        ),
    ],
)
def test_a_value_of_another_kind_is_refused_and_never_converted(
    read: Reader, text: str, problem: str
) -> None:
    assert read.problems(text) == [f"config.toml:2: skills.{problem}"]


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("skills = 3", "1: skills: must be a table"),
        ("[models]\nmain = 3", "2: models.main: must be a table"),
        ("[features]\nbeta = 1", "2: features.beta: must be true or false (given: 1)"),
        ("[runtime]\nname = ''", '2: runtime.name: must not be empty (given: "")'),
        ("[trace]\npath = ''", '2: trace.path: must be a path (given: "")'),
        (
            "[log]\nlevel = 'INFO'",
            "2: log.level: must be 'debug', 'info', 'warning' or 'error' (given: \"INFO\")",
        ),
        (
            "[runtime]\nsecret_sources = ['env:*_KEY', 'HOME']",
            '2: runtime.secret_sources: item 2 is neither "env:PATTERN" nor "file:/folder"'
            ' (given: "HOME")',
        ),
        (
            "[models.o]\nwire = 'offline'\nname_separator = '.'",
            '3: models.o.name_separator: must match ^[A-Za-z0-9_-]{1,8}$ (given: ".")',
        ),
        ("[models.s]\nwire = 'scripted'", '1: models.s.script: wire = "scripted" needs it'),
        (
            "[models.a]\nwire = 'anthropic'\nmodel = 'm'\nbase_url = 'http://x'\ncall_mode = 'json_schema'",
            '5: models.a.call_mode: "json_schema" is not possible with wire = "anthropic", only with'
            ' chat, responses: leave it out, which means "native" (given: "json_schema")',
        ),
        (
            "[models.o]\nwire = 'offline'\ncall_mode = 'text'",
            '3: models.o.call_mode: "text" is not possible with wire = "offline", only with chat,'
            ' responses, anthropic: leave it out, which means "native" (given: "text")',
        ),
        (
            "[models.c]\nmodel = 'm'\nbase_url = 'http://x'\ncall_mode = 'text'\n"
            "recover_text_calls = false",
            '5: models.c.recover_text_calls: must be true with call_mode = "text", which reads calls'
            " from texts: leave it out (given: false)",
        ),
        (
            "[models.c]\nmodel = 'm'\nbase_url = 'http://x'\ncall_mode = 'json_schema'\n"
            "[models.c.extra_body]\nresponse_format = { type = 'text' }",
            '5: models.c.extra_body: cannot hold response_format with call_mode = "json_schema": leave'
            " it out",
        ),
        (
            "[models.r]\nwire = 'responses'\nmodel = 'm'",
            '1: models.r.base_url: wire = "responses" needs it',
        ),
        (
            "[models.c]\nmodel = 'm'\nbase_url = 'localhost:80'",
            "3: models.c.base_url: must be an address that begins with http:// or https://"
            ' (given: "localhost:80")',
        ),
        (
            "[models.c]\nmodel = 'm'\nbase_url = 'http://a:99999/v1'",
            "3: models.c.base_url: must name a host, and a port from 1 to 65535 or none"
            ' (given: "http://a:99999/v1")',
        ),
        *(
            (
                f"[models.c]\nmodel = 'm'\nbase_url = 'http://{host}/v1'",
                "3: models.c.base_url: must name a host of which each part has 1 to 63 letters"
                f' (given: "http://{host}/v1")',
            )
            for host in ("a..b", "xn--a-\u00e4.example", ".b")
        ),
        (
            '[models.c]\nmodel = "m"\nbase_url = "http://a\\u0000b/v1"',
            "3: models.c.base_url: must name a host of which each part has 1 to 63 letters"
            ' (given: "http://a\\u0000b/v1")',
        ),
    ],
)
def test_each_kind_of_fault_says_what_is_expected(read: Reader, text: str, problem: str) -> None:
    assert read.problems(text) == [f"config.toml:{problem}"]


@pytest.mark.requirement("CFG-1")
def test_a_profile_made_by_variables_is_told_by_their_names(read: Reader) -> None:
    assert read.problems(env={"SESSION_RUNTIME__MODELS__MAIN__MODEL": "m"}) == [
        'env SESSION_RUNTIME__MODELS__MAIN__MODEL: models.main.base_url: wire = "chat" needs it'
    ]


@pytest.mark.requirement("CFG-1")
def test_long_values_are_cut_in_messages(read: Reader) -> None:
    [problem] = read.problems(f"[log]\nlevel = '{'x' * 500}'")
    assert len(problem) < 200


@pytest.mark.requirement("CFG-1")
def test_the_prompt_is_given_once(read: Reader) -> None:
    read.file("prompt.md", "Be brief.")
    text = '[ask]\nsystem_prompt = "Be kind."\nprompt_file = "prompt.md"\nmax_steps = 0'
    assert read.problems(text) == [
        "config.toml:3: ask.prompt_file: ask.system_prompt is given too: remove one of them"
        ' (given: "prompt.md")',
        "config.toml:4: ask.max_steps: must be at least 1 (given: 0)",
    ]


@pytest.mark.requirement("CFG-1")
def test_a_key_without_the_beginning_of_its_name_is_looked_for_in_its_own_section(
    read: Reader,
) -> None:
    assert read.problems("[skills]\nmax_resluts = 3") == [
        "config.toml:2: skills.max_resluts: unknown key (given: 3); "
        "did you mean tool_search_max_results?"
    ]


@pytest.mark.requirement("CFG-4")
def test_the_query_of_an_address_is_not_repeated(read: Reader) -> None:
    text = "[models.c]\nmodel = 'm'\nbase_url = 'ftp://a/v1?key=sk-verysecret'"
    (problem,) = read.problems(text)
    assert "verysecret" not in problem
    assert "ftp://a/v1?***" in problem


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://user:pw@h/v1?api_key=v3ry", "***@h/v1?***"),
        ("//h?api_key=v3ry", "//h?***"),
        ("h.example/v1?api_key=v3ry&x=1", "h.example/v1?***"),
        ("?v3ry", "?***"),
        ("h.example/v1#access_token=v3ry", "h.example/v1#***"),
    ],
)
def test_no_query_is_repeated_whatever_stands_before_it(address: str, shown: str) -> None:
    assert written(address) == f'"{shown}"'


@pytest.mark.requirement("CFG-4")
def test_a_field_of_a_body_that_sounds_secret_is_not_repeated(read: Reader) -> None:
    text = "[models.c]\nmodel = 'm'\nbase_url = 'http://a'\nextra_body = {token = 1979-05-27}"
    (problem,) = read.problems(text)
    assert problem.endswith("(given: ***)")


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("text", "place", "meant"),
    [
        (
            "[handlers.entries.a.b]\nimport = 'm:f'\ndescription = 'D.'",
            "1: handlers.entries.a.b",
            'handlers.entries."a.b"',
        ),
        (
            "[handlers.entries.a]\nimport = 'm:f'\ndescription = 'D.'\n"
            "[handlers.entries.a.b.parameters]\ntype = 'object'",
            "4: handlers.entries.a.b",
            'handlers.entries."a.b"',
        ),
        (
            "[models.gpt-4.1.mini]\nwire = 'offline'",
            "1: models.gpt-4.1.mini",
            'models."gpt-4.1.mini"',
        ),
        (
            "[access.rules.team.guests]\nallow = ['x']",
            "1: access.rules.team.guests",
            'access.rules."team.guests"',
        ),
        ("[features]\nshop.beta = true", "2: features.shop.beta", 'features."shop.beta"'),
        (
            "[models.o]\nwire = 'offline'\nheaders = {X.Y = 'v'}",
            "3: models.o.headers.X.Y",
            'models.o.headers."X.Y"',
        ),
    ],
)
def test_a_name_with_dots_that_lacks_its_quotes_is_all_that_is_told(
    read: Reader, text: str, place: str, meant: str
) -> None:
    assert read.problems(text) == [
        f"config.toml:{place}: a name with dots is written in quotes: {meant}"
    ]


@pytest.mark.requirement("CFG-1")
def test_every_name_without_its_quotes_is_told_wherever_it_was_given(read: Reader) -> None:
    told = "a name with dots is written in quotes: "
    file = "[models.a]\n1.wire = 'offline'\n2.wire = 'offline'"
    assert read.problems(
        file,
        env={"SESSION_RUNTIME__FEATURES": '{"b": {"c": true}}'},
        explicit={"handlers.entries.d.e.import": "m:f"},
    ) == [
        f'config.toml:2: models.a.1: {told}models."a.1"',
        f'config.toml:3: models.a.2: {told}models."a.2"',
        f'env SESSION_RUNTIME__FEATURES: features.b.c: {told}features."b.c"',
        f'explicit: handlers.entries.d.e: {told}handlers.entries."d.e"',
    ]


@pytest.mark.requirement("CFG-1")
def test_a_table_inside_an_entry_that_looks_like_none_is_an_unknown_key(read: Reader) -> None:
    assert read.problems("[models.o]\nwire = 'offline'\n[models.o.heders]\nX = 'v'") == [
        "config.toml:3: models.o.heders: unknown key (given: a table); did you mean headers?"
    ]


@pytest.mark.requirement("CFG-1")
def test_every_item_of_a_list_that_is_wrong_is_told(read: Reader) -> None:
    told = 'is neither "env:PATTERN" nor "file:/folder"'
    assert read.problems("[runtime]\nsecret_sources = ['HOME', 'env:', 'file:x', 'env:*']") == [
        f'config.toml:2: runtime.secret_sources: item 1 {told} (given: "HOME")',
        f'config.toml:2: runtime.secret_sources: item 2 {told} (given: "env:")',
        f'config.toml:2: runtime.secret_sources: item 3 {told} (given: "file:x")',
    ]
