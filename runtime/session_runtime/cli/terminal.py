"""How an ask is shown to a person at a terminal: as it happens, in colour."""

from rich.console import Console
from rich.text import Text

from session_runtime.cli.report import show_error
from session_runtime.cli.screen import first_line
from session_runtime.transports.outbox import Delivery
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskResult,
    AskStarted,
    ConfirmationRequired,
    MessageSent,
    Notice,
    PrefetchFinished,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolsLoaded,
    ToolStarted,
    TurnStarted,
)
from session_runtime.wire import printable, to_bytes


class TerminalReport:
    """Writes the model's text as it comes, and a dim line for everything that happens between."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._written = ""  # of the model's text since the last line of our own

    def event(self, delivery: Delivery) -> None:
        """Show one event."""
        match delivery.event:
            case TextDelta(text=text):
                self._written += text
                self._console.print(Text(printable(text)), end="")
            case MessageSent(text=text):
                self._line(text, "bold")
            case AskFinished(result=result):
                self._end(result)
            case other:
                if line := _line_of(other):
                    self._line(line, "dim")

    def _line(self, text: str, style: str) -> None:
        if self._written:
            self._console.print()
        self._written = ""
        self._console.print(Text(printable(text), style))

    def _end(self, result: AskResult) -> None:
        if result.text and result.text != self._written:
            self._line(result.text, "")
        elif self._written:
            self._console.print()
        tokens = result.usage.total_tokens
        summary = f"{result.outcome} after {result.steps} turns, {tokens} tokens"
        self._console.print(Text(f"— {summary}", "dim"))
        show_error(result)


def _line_of(event: AskEvent) -> str | None:
    match event:
        case TurnStarted(step=step, exposed=exposed, attempt=attempt, model=model):
            again = f", attempt {attempt} with {model}" if attempt > 1 else ""
            return f"· turn {step} with {len(exposed)} tools{again}"
        case ToolsLoaded(names=names):
            return f"+ loaded {', '.join(names)}"
        case PrefetchFinished(ok=ok, failed=failed):
            return f"· prefetched {', '.join([*ok, *(f'{name} (failed)' for name in failed)])}"
        case Notice(text=text):
            return f"· {text}"
        case ToolStarted() | ToolProgress() | ToolFinished():
            return _tool_line(event)
        case ConfirmationRequired(pending=call):
            return f"? {call.tool} waits for consent"
        case AskStarted() | TextDelta() | MessageSent() | AskFinished():
            return None


def _tool_line(event: ToolStarted | ToolProgress | ToolFinished) -> str | None:
    match event:
        case ToolStarted(name=name, arguments=arguments):
            return f"→ {name} {first_line(to_bytes(arguments).decode(), 80)}"
        case ToolProgress(done=done, total=total, message=message):
            of = f" of {total:g}" if total is not None else ""
            return f"  {done:g}{of} {message or ''}".rstrip()
        case ToolFinished(name=name, status="ok"):
            return f"✓ {name}"
        case ToolFinished(name=name, status=status, error_code=code):
            return f"✗ {name}: {status} ({code})"
