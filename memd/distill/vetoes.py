"""Vetoes: text that somebody or something else has written, and sentences that are asked, reported or ironic. Pure.

Every test is of text whose quotations are masked already. In doubt the answer is yes: what is lost is one rule that its
speaker can repeat; what is kept wrongly leads every session. Of the tests that there once were, each stays without which
one of the labelled texts of `tests/data/speech.toml` or of 14 people's prompts is taken for a rule.
"""

import itertools
import re
from dataclasses import dataclass

from memd.patterns import compile_lazily
from memd.text import words

OPAQUE = "\ue000"
"""Stands for each character of a quotation, a code span or a tag."""


@dataclass(slots=True)
class Line:
    """A line as it was said, and the same with OPAQUE for what is quoted in it."""

    text: str
    bare: str
    is_item: bool = False


BULLET = compile_lazily(r"^\s*(?:[-*]|\d{1,2}[.)])\s+(?=\S)")
_MENTION = r"\[[\w.-]{1,100}\]\((?![a-z]+:)[^)\s:#]{1,300}\) [a-z]"
"""A file that the client's dialogue put into a sentence: `[view.ts](src/view.ts) should not …`."""
_DATA_LINE = compile_lazily(
    r"^(?:\s*>|\t| {4,}\S"  # quoted, or indented like code
    r"|\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\s*\[?\d{1,2}:\d\d(?::\d\d)?(?:\s?[AP]M)?[\]\s]"  # times of logs and chats
    r"|\s*(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:\d\d"
    r"|.*\b\d{1,2}:\d\d\s?[AP]M\s*$"
    r"|\s*\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[ :\]]"
    r"|\s*(?:error|warning|note|help|hint|fatal|panic|npm ERR!)(?:\[\w+\])?: (?=[a-z])"
    r"|\s*Traceback \(most recent call last\):|\s*File .{1,200}, line \d+|\s*\w{2,40}(?:Error|Exception): "
    r"|\s*at \S+ ?\(.{0,200}:\d+\)|\s*\[Pasted text\b"
    r"|\s*(?:\$|%|>>>|#!|❯|➜|PS [A-Z]:.{0,80}>|[A-Z]:\\.{0,80}>) ?\S"  # a shell or a prompt
    r"|\s*[-+]{3} [ab]/|@@ |\+|-(?=\S)(?!-?\w+\s*$)"  # a diff
    r"|\s*(?://|/\*|\*/|\*\s*@|\s\*(?:\s|$)|--\s|<!--|#|;;?\s|%%|REM\s|\.\. )"  # a comment
    rf"|\s*[\[{{}}\]()]{{1,3}},?;?\s*$|\s*(?!{_MENTION})[{{\[]"  # JSON
    r"|\s*\[[\w .-]{1,40}\]\s*$|\s*[\w.$-]{1,40}\s*=\s"  # settings
    r"|.*\|.*\||\s*[│┃╭╰├└┌┐┘┤═─━+][-=+─═━]{2,}|.*[│┃]|\s*[⏺⎿●•◦▪✓✔✗✘➤►→]"  # tables and screens
    r"|\s*(?:[-*]\s+)?\[[ xX]\]\s"  # check boxes
    rf"|\s*(?!{_MENTION})!?\[[^\]\n]{{0,200}}\]\([^)\n]{{0,300}}\)|\s*\[!\[|\s*\\[a-z]+\b|.*\[/\w+\]"  # links
    r"|.*&(?:nbsp|quot|lt|gt|amp|#\d{2,5});|.*</\w"
    r"|.*[;{]\s*$|.*(?:=>|\(\) ?\{|\):\s*$|\)\s*->)"  # code
    r"|\s*(?:import|from|package|def|class|func|fn|function|const|let|var|return|public|private|static"
    r"|async def|export|struct|enum|interface) [\w.{*]+(?:\s*[=({:;.*]|.*[({:;]\s*$|\s+import\b|\s*$)"
    r"|\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP) [A-Z*\w]+ "
    r"|.{0,200}\(#\d+\)\s*$"  # an entry of a changelog
    r")"
)
_REST_IS_DATA = compile_lazily(
    r"^\s*(?:#{1,6} \S|={1,6} \S|\*{1,3} \*\w|\\(?:begin|section|documentclass|chapter)\b|https?://\S+\s*$|={3,}\s*$|-{3,}\s*$|[*_]{3,}\s*$|diff --git |index [0-9a-f]{6,}|commit [0-9a-f]{7,}"
    r"|(?:From|To|Cc|Bcc|Subject|Date|Sent|Reply-To|Message-ID|Author|AuthorDate|Von|An|Betreff|Gesendet|Datum|Objet"
    r"|Asunto|Para):\s"
    r"|-{3,} ?\w.*(?:[Mm]essage|[Nn]achricht)|Begin forwarded|-----BEGIN"
    r"|(?:On|Am|Le|El|Op|Il) .{5,150}(?:wrote|writes|schrieb|a écrit|escribió|schreef|ha scritto)\b.{0,80}$"
    r"|\[?v?\d+\.\d+\.\d+\]?\s*(?:[-–—(]|$)|\[?Unreleased\]?\s*$"  # dashes as changelogs have them
    r"|\d+(?:\.\d+)+\.?\s+[A-Z]|(?:Step|STEP|Chapter|Section|Article|Rule|Schritt) \d+[.:)]"
    r"|(?:Dear|Liebe[rs]?|Sehr geehrte|Cher|Chère|Estimad[oa]s?)\b|@(?:channel|here|everyone|all)\b"
    r"|\w+ (?:said|wrote|says|writes|commented|replied)\b.{0,80}:\s*$"
    r"|\w[\w.' -]{0,40} {2,}\d{1,2}:\d\d)"
)
_GREETING = compile_lazily(
    r"^\s*(?:hi|hello|hey|hallo|hola|bonjour|salut|ciao|good (?:morning|afternoon|evening)|greetings|morning)"
    r"(?: (?!claude\b|there\b|again\b|agent\b|assistant\b|codex\b|copilot\b|bot\b|you\b|man\b|buddy\b)[\w.'-]+){1,4}\s*[,!:.]?\s*$",
    re.IGNORECASE,
)
_WHOLE_IS_DATA = compile_lazily(
    r"^[ \t]*(?:(?:low|medium|high|critical|minor|major) severity|describe the bug|steps to reproduce|expected (?:behaviou?r|result)"
    r"|actual (?:behaviou?r|result)|acceptance criteria|additional context|(?:title|subject|summary|description|abstract|category|tags|severity|priority|component|environment|posted|published):\s|to reproduce|asked \d+ \w+ ago"
    r"|answered (?:[a-z]{3} \d|\d+ \w+ ago)|edited (?:[a-z]{3} \d|\d+ \w+ ago)|reviewers?:|assignees?:)"
    r"|^(?:Signed-off-by|Co-authored-by|Reviewed-by|Acked-by|Change-Id): |^-- ?$"
    r"|^[ \t]*(?:(?:best|kind|warm|many|all the) ?\w{0,10}|best wishes|(?:kind |best )?regards|sincerely|yours \w+|cheers|thanks"
    r"|thank you|thx|(?:mit )?(?:freundlichen|besten|vielen?|liebe) gr(?:ü|ue)(?:ß|ss)en?|viele grüße|cordialement|saludos)[ ,.!]*\n+"
    r"[ \t]*(?-i:[A-Z][\w.'-]+(?: [A-Z][\w.'-]+){0,2})[ \t]*(?:\n|\Z)"
    r"|\b(?:pretend (?:that )?(?:you|to be)|act as (?:an?|if|my|the)|role-?play|(?:let's|let us) play|imagine (?:that )?you(?:'re| are)"
    r"|in this (?:game|story|scene)|play the (?:role|part))\b"
    r"|(?:^|[.!?]\s+)you(?:'re| are) (?:an? |now an? |\w*bot\b|the \w+ (?:agent|assistant))",
    re.IGNORECASE | re.MULTILINE,
)
"""Marks of a ticket, a review tool, a signed letter or a role: the rest of such a message is of the same kind."""
_LABEL = compile_lazily(r"^\s*[\[(<*@]{0,2}([A-Za-z][\w .'-]{0,28}?)[\])>*]{0,2}\s*:(?:\s|$)")
_OWN_LABELS = frozenset(
    """decision reason why because rule rules note remember important reminder fyi todo also ps please
    instruction preference fact task context""".split()  # noqa: SIM905  # a page of quotes reads worse
)
_LABELS_OF_DATA_MIN = 2
_HEADING_WORDS_MAX = 8
_WRAPPED_CHARACTERS_MIN = 50
_WRAPPED_LINES_MIN = 2
SENTENCE_STOP = tuple(".!?:;…")


def has_document_marks(bare: str, blocks: list[list[Line]]) -> bool:
    """Return whether marks of a ticket, a letter, a role or labels say that all of a message was written elsewhere."""
    lines = [line for block in blocks for line in block]
    return _WHOLE_IS_DATA.search(bare) is not None or _count_labels(lines) >= _LABELS_OF_DATA_MIN


def is_document(bare: str, blocks: list[list[Line]]) -> bool:
    """Return whether marks say that all of a message was written elsewhere, or is asked about."""
    if has_document_marks(bare, blocks):
        return True
    lines = [line.bare for block in blocks for line in block]
    return any(asks_about_text(line, is_only=len(lines) == 1) for line in lines)


def _count_labels(lines: list[Line]) -> int:
    """Lines like `Alice: …` or `key: …`; 0 if every label is one that people set before their own words."""
    found = [m.group(1).strip().lower() for line in lines if (m := _LABEL.match(line.bare))]
    labels = [label for label in found if len(words(label)) <= 2]  # noqa: PLR2004  # a name has two words
    return len(labels) if any(label not in _OWN_LABELS for label in labels) else 0


def is_heading(line: str) -> bool:
    """Return whether a line stands like a heading: short, with a capital, without a stop."""
    line = line.strip()
    return (
        0 < len(words(line)) <= _HEADING_WORDS_MAX
        and line[0].isupper()
        and not line.endswith((*SENTENCE_STOP, ",", OPAQUE))
        and not BULLET.match(line)
    )


def is_wrapped(block: list[Line]) -> bool:
    """Return whether lines were broken at a width, as no one does who types a prompt."""
    breaks = 0
    for line, following in itertools.pairwise(block):
        said = line.bare.rstrip()
        is_open = not said.endswith(SENTENCE_STOP) and not BULLET.match(following.bare)
        breaks += is_open and len(said) >= _WRAPPED_CHARACTERS_MIN
    return breaks >= _WRAPPED_LINES_MIN


_TEXT_NOUNS = (
    r"(?:text|page|website|site|mail|e-?mail|message|issue|ticket|comments?|thread|article|docs?|documents?|paragraphs?|sections?"
    r"|sentences?|spec|specification|plan|proposal|runbook|playbook|rfc|adr|logs?|output|snippet|feedback|transcript|chat|conversation"
    r"|post|excerpt|quote|guidelines?|template|draft|policy|notice|letter|memo|announcement|report|wording|grammar|typos"
    r"|spelling|description|release notes|changelog|readme|wiki|handbook|manual|blog|advice|answer|rant|story)"
)
_ABOUT_TEXT = compile_lazily(
    rf"\b(?:summari[sz]e|translate|proof-?read|rephrase|reword|rewrite|paraphrase|shorten|review|check|read|analy[sz]e|explain"
    rf"|look (?:at|into)|comment on|reply to|answer|respond to|implement|address|correct|draft|format|clean up|lint|search|parse|convert)\b"
    rf"[^.!?\n]{{0,30}}\b(?:this|that|these|those|the following|below|above|attached|pasted|the)\s+(?:\w+\s+){{0,2}}{_TEXT_NOUNS}\b"
    rf"|\b(?:is|are) (?:this|that|the|these) (?:\w+ )?(?:{_TEXT_NOUNS}|right|true|correct|ok|sensible|good advice)\b"
    r"|\b(?:do you agree|is that what|who (?:wrote|said)|where (?:is|does) (?:this|that|it) (?:come )?from)\b",
    re.IGNORECASE,
)
_ABOUT_THIS = compile_lazily(
    r"\b(?:summari[sz]e|translate|proof-?read|rephrase|reword|rewrite|paraphrase|shorten|review|read|analy[sz]e|explain|look (?:at|into)"
    r"|comment on|reply to|respond to|implement|address|check)\s+(?:this|that|these|it|the following|below)\b"
    r"(?:\s*[.:!?]*$|\s+(?:for|and|in|into|please|to|as)\b)"
    r"|\bwhat (?:do you (?:think|make) of|does|is|was|are|do|now|about|happened)\b.{0,60}$|\b(?:thoughts|opinions?|wdyt|tl;?dr|any comments)\b[\s?]*$"
    r"|^\s*(?:why|who|where|how come|is|are|was|were|(?:does|did|do|has|have) (?:you|we|they|i|he|she|it|this|that|the|these|any|anyone))\b.{0,80}\b(?:this|that|it|he|she|they|these|those)\b"
    r"|^\s*(?:please )?(?:(?:can|could|would|will) you )?\w+\b.{0,60}\b(?:these|those|them|both|all of this)\s*[.?!]*$"
    r"|\b(?:draft|write|send) an? (?:answer|reply|response)\b|\bwhat (?:did|does|do) .{0,40}\b(?:mean|say)\b",
    re.IGNORECASE,
)
_SOURCES = (
    r"(?:docs?|documentation|read ?me|guide|guidelines?|handbook|manual|wiki|page|website|site|article|blog|post|paper|book|tutorial|spec"
    r"|specification|rfc|adr|standard|changelog|release notes|issue|ticket|comment|thread|forum|newsletter|mail|e-?mail|letter|memo|slack"
    r"|chat|transcript|boss|manager|colleague|co-?worker|contractor|consultant|vendor|customer|client|lead|architect|cto|ceo|pm|po|team ?mate"
    r"|friend|intern|reviewer|auditor|upstream|maintainers?|authors?|internet|stack ?overflow|reddit|chatgpt|gpt|gemini|copilot|llm|bot"
    r"|linter|compiler|error|log|output|console|terminal|message|feedback|review|plan|proposal|policy|template|quote|excerpt|snippet|book)"
)
_SHOWS_SOURCE = compile_lazily(
    rf"\b(?:here(?:'s| is| are| comes?| you go)|this (?:is|was|came)|these are|that's|got|found|saw|received|sent|copied|pasted|see|from|reading|watching|watched|studying)\b"
    rf".{{0,60}}\b(?:{_SOURCES}|what|below|following|attached)\b|\b(?:below|see attached|pasted|copied from|quoting|verbatim)\b",
    re.IGNORECASE,
)
_OTHERS_TEXT = compile_lazily(
    rf"(?<!\bit)(?<!\blet)(?<!\bthat)['’]s (?:\w+ )?(?:lists?|rules|{_TEXT_NOUNS})\s*:?\s*$",
    re.IGNORECASE,
)
"""“The reviewer's list”, before what it holds."""
_WRITES_THIS = compile_lazily(
    r"\b(?:write|add|put|insert|include|document|mention|print|paste|append|translate|quote|post|send|copy|save|store)\b"
    r"[^.!?]{0,20}\b(?:this|that(?! (?:is|are|was|were|has|have|can|we|you|they)\b)|these|the following|these lines)\b"
    r"[^.!?]{0,60}\b(?:in|into|to|on|at|under|as|for)\b"
    r"|\b(?:write|draft|compose|generate|suggest|propose)\s+(?:me |us )?(?:an? |the |some |\w+ )?(?:\w+ ){0,3}"
    r"(?:messages?|comments?|texts?|mails?|e-?mails?|docs?|docstrings?|paragraphs?|announcements?|posts?|repl(?:y|ies)|letters?|adrs?|rules"
    r"|prompts?|sentences?|slogans?|titles?|labels?|changelog|readme|entry|entries|notes?)\s*[.:!]?\s*$",
    re.IGNORECASE,
)


def asks_about_text(line: str, *, is_only: bool = False) -> bool:
    """Return whether a line asks something about text that the message holds."""
    if _ABOUT_TEXT.search(line):
        return True
    parts = re.split(r"(?<=[.!?])\s+", line)
    return not is_only and any(map(_ABOUT_THIS.search, parts))


def has_indented_line(block: list[Line]) -> bool:
    """Return whether a line is set in without belonging to a list, as in text copied from a screen or a document."""
    in_list = False
    for line in block:
        in_list = in_list or BULLET.match(line.bare) is not None
        if line.bare.startswith("  ") and not in_list:
            return True
    return False


def is_data(line: str) -> bool:
    """Return whether a line is code, a log, a setting, a table, a comment or quoted; what is below it belongs to it."""
    return _DATA_LINE.match(line) is not None


def begins_data(line: str) -> bool:
    """Return whether a mail, a page or a diff begins with this line: nothing below it is the speaker's own."""
    return _REST_IS_DATA.match(line) is not None or _GREETING.match(line) is not None


def shows_text(sentence: str) -> bool:
    """Return whether a sentence hands over a text from elsewhere: `this is from the wiki`, `put this into the README`."""
    return bool(_SHOWS_SOURCE.search(sentence) or _WRITES_THIS.search(sentence))


def introduces_text(clause: str) -> bool:
    """Return whether a text from elsewhere stands after this clause and a colon."""
    return shows_text(clause) or _OTHERS_TEXT.search(clause) is not None


# ── Sentences that their speaker does not affirm ──────────────────────────────────────────────────

_SAYS = (
    r"(?:says|said|saying|claimed|claiming|insists?|insisted|insisting|believes?|believed|argues?|argued|suggests?|suggested"
    r"|suggestion|recommends?|recommended|recommendation|advises?|advised|advice|tells|told|telling|wrote|stated|mentioned"
    r"|demanded|complains?|complained|complaining|warns|warned|reported|proposes?|proposed|thinks|thought|wants"
    r"|wanted|wishes|requires|required|expects|expected|preaches|swears|swore|argument|opinion|whines|keeps asking|asked|quoted"
    r"|suggesting|recommending|preached|ranted|commented|replied|according to|as per|per the|quoting"
    r"|(?:claims?|states|mentions|demands?|reports|reads|writes|asks|quotes|posts|posted|documented)"
    r"(?=\s*(?:[:,\ue000]|$|(?:that|we|you|to|us|me|it|always|never|i|the|everyone|everybody|people|for)\b)))"
)
_SPEAKER = compile_lazily(rf"\b{_SAYS}\b", re.IGNORECASE)
_IRONY = compile_lazily(
    r"(?:^|\s)/s(?:\s|$|\.)|\b(?:yeah,? (?:right|sure)|sure,? (?:because|why not|thing)|oh,? (?:sure|great|yes|yeah)|great idea|brilliant|genius"
    r"|what could (?:possibly )?go wrong|just kidding|kidding|jk|lol|lmao|rofl|haha\w*|hehe|joking|sarcasm|not!|as if|good luck with that"
    r"|because that (?:worked|went|always works)|wonderful idea|good one|nice try|clearly the best|who needs|we love surprises|yolo|right\?"
    r"|ironic\w*|funny|hilarious|ha ha)(?!\w)|^(?:yeah|sure|yep)?,? ?sure,? |[😀-😂🤣😅😆😉😏🙃🙄🤡😜😝🤪😈]|[;:]-?[)PD](?:\s|$)",
    re.IGNORECASE,
)


def is_reported(text: str) -> bool:
    """Return whether a text, masked, gives somebody else's words or wishes."""
    return _SPEAKER.search(text) is not None


def is_ironic(text: str) -> bool:
    """Return whether a text, masked, is meant in irony."""
    return _IRONY.search(text) is not None
