"""Configuration files, good and bad, as operators write them; by name, as bytes.

They lie in a folder with ``tools/`` (one good tool), ``broken/`` (one that cannot be used) and
``prompt.txt``.
"""

from types import MappingProxyType

_CHAT = b'[models.main]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
_STEPS = b"[ask]\nmax_steps = 4\n"
_KEY = b"sha256:" + b"0" * 64


def _deep(opening: bytes, closing: bytes, levels: int = 5_000) -> bytes:
    return b"[ask]\nx = " + opening * levels + b"1" + closing * levels + b"\n"


CONFIGURATIONS = MappingProxyType(
    {
        # how it is written
        "an ordinary one": _STEPS,
        "a comment alone": b"# nothing\n",
        "nothing": b"",
        "blanks": b" \n\t\n",
        "a byte order mark alone": b"\xef\xbb\xbf",
        "a byte order mark first": b"\xef\xbb\xbf" + _STEPS,
        "a byte order mark twice": b"\xef\xbb\xbf\xef\xbb\xbf" + _STEPS,
        "Windows line ends": _STEPS.replace(b"\n", b"\r\n"),
        "line ends of old": _STEPS.replace(b"\n", b"\r"),
        "no last line end": _STEPS[:-1],
        "UTF-16": "[ask]\nmax_steps = 4\n".encode("utf-16"),
        "Latin-1": '[ask]\nsystem_prompt = "größer"\n'.encode("latin-1"),
        "Chinese": '[ask]\nsystem_prompt = "你是助手"\n'.encode(),
        "a null byte": b"[ask]\nmax_steps = 4\x00\n",
        "binary": bytes(range(256)),
        "half a table header": b"[ask\n",
        "half a value": b"[ask]\nmax_steps =",
        "half a text": b'[ask]\nsystem_prompt = "half',
        "half a list": b'[skills]\nprefetch_tools = ["a",\n',
        "JSON": b'{"ask": {"max_steps": 4}}',
        "YAML": b"ask:\n  max_steps: 4\n",
        "a key twice": _STEPS + b"max_steps = 5\n",
        "a table twice": _STEPS + _STEPS,
        "a dotted key": b"ask.max_steps = 4\n",
        "a section as a list": b"[[ask]]\nmax_steps = 4\n",
        "a section as a value": b"ask = 4\n",
        "nested too deeply": _deep(b"[", b"]"),
        "tables nested too deeply": _deep(b"{a=", b"}", 500),
        # keys and values
        "an unknown key": b"[ask]\nmax_step = 4\n",
        "an unknown section": b"[aks]\nmax_steps = 4\n",
        "an unknown key of a profile": _CHAT + b"modle = 1\n",
        "a text for a number": b'[ask]\nmax_steps = "4"\n',
        "a fraction for a whole number": b"[ask]\nmax_steps = 4.5\n",
        "true for a number": b"[ask]\nmax_steps = true\n",
        "a number for true": b"[skills]\ntool_search_enabled = 1\n",
        "a number out of bounds": b"[ask]\nmax_steps = 0\n",
        "no number": b"[runtime]\nask_timeout_s = nan\n",
        "endless": b"[runtime]\nask_timeout_s = inf\n",
        "a word that is none of the choices": b'[log]\nlevel = "loud"\n',
        "a text for a list": b'[skills]\nprefetch_tools = "end"\n',
        "a list with a number": b"[skills]\nprefetch_tools = [1]\n",
        "a date": b"[ask]\nmax_steps = 2026-01-01\n",
        "three faults": b'[ask]\nmax_steps = 0\nmax_step = 1\n[log]\nlevel = "loud"\n',
        "both spellings of a key": b'[notices]\nmode = "clean"\n[easter_egg]\n'
        b"agent_call_message_enabled = true\n",
        "the old spelling of a key": b"[easter_egg]\nagent_call_message_enabled = true\n",
        "weights": b"[search]\nname = 1.0\nnamespace = 0.0\n",
        "weights below zero": b"[search]\nname = -1.0\n",
        # what it refers to
        "a profile": _CHAT,
        "a profile without a model": _CHAT.replace(b'model = "m"\n', b""),
        "a profile without an address": b'[models.main]\nmodel = "m"\n',
        "an address that is none": _CHAT.replace(b"http://", b"ftp://"),
        "a name with a dot": _CHAT.replace(b"models.main", b"models.gpt-4.1"),
        "a default that is no profile": _CHAT + b'[ask]\ndefault_model = "other"\n',
        "a fallback that is no profile": _CHAT + b'fallback = "other"\n',
        "a fallback to itself": _CHAT + b'fallback = "main"\n',
        "a secret of a variable that is not set": _CHAT + b'api_key = "env:NO_SUCH_API_KEY"\n',
        "a secret that may not be read": _CHAT + b'api_key = "file:/etc/hostname"\n',
        "a secret file that is not there": _CHAT + b'api_key = "file:/run/secrets/no such one"\n',
        "a secret that is written out": _CHAT + b'api_key = "hidden"\n',
        "a script that is not there": b'[models.main]\nwire = "scripted"\nscript = "gone.json"\n',
        "a prompt file": b'[ask]\nprompt_file = "prompt.txt"\n',
        "a prompt file that is not there": b'[ask]\nprompt_file = "gone.txt"\n',
        "a prompt and a prompt file": b'[ask]\nsystem_prompt = "a"\nprompt_file = "prompt.txt"\n',
        "a folder of tools": b'[handlers]\npaths = ["tools"]\n',
        "a folder of tools that is not there": b'[handlers]\npaths = ["gone"]\n',
        "a folder with nothing but a broken tool": b'[handlers]\npaths = ["broken"]\n',
        "a folder beside a broken one": b'[handlers]\npaths = ["tools", "broken"]\n',
        "an entry of a module that is not there": b'[handlers.entries.x]\nimport = "no_such:f"\n',
        "a plug-in that is not installed": b'[handlers]\nplugins = ["no-such-plug-in"]\n',
        "tools that nobody has": b'[skills]\nprefetch_tools = ["no.such.tool"]\n',
        "a root": b'[files.roots.here]\npath = "tools"\n',
        "a root that is not there": b'[files.roots.here]\npath = "gone"\n',
        "a network that is none": b'[web]\nallow_networks = ["10.0.0.0/99"]\n',
        # what a restart has to bring
        "another port": b"[http]\nport = 1\n",
        "a port that is none": b"[http]\nport = 65536\n",
        "any host without keys": b'[http]\nhost = "0.0.0.0"\n',
        "any host with keys": b'[http]\nhost = "0.0.0.0"\n[http.keys.a]\nhash = "' + _KEY + b'"\n',
        "a key that is no hash": b'[http.keys.a]\nhash = "my-secret-key"\n',
        "two owners of one key": b"".join(
            b'[http.keys.%s]\nhash = "%s"\n' % (name, _KEY) for name in (b"a", b"b")
        ),
        "another state folder": b'[runtime]\nstate_dir = "elsewhere"\n',
        "another way of watching": b'[runtime]\nwatch = "polling"\n' + _STEPS,
    }
)
