"""What people and agents say, by kind: what states a rule or a decision of its speaker, and what does not."""

DONE = "Done."

NO_RULE: dict[str, tuple[str, ...]] = {
    "negated": (
        "I don't want you to always rebase before merging.",
        "You don't have to always write a changelog entry.",
        "We never agreed to use feature flags for that.",
        "It is not true that we always deploy from main.",
        "There is no need to always bump the version.",
        "I'm not saying you should never touch the schema.",
        "We do not always run the slow tests.",
        "Nobody said that we must always use Docker.",
        "We haven't decided to drop Windows.",
    ),
    "reported": (
        "Our consultant claims that you should never write integration tests, and I disagree.",
        "According to the vendor's docs, always restart the broker after an upgrade.",
        "My manager keeps telling everybody: never touch the billing code.",
        "The wiki is very clear. Always rebase, never merge.",
        "He said we decided to move everything to Kubernetes, but that is gossip.",
        "As per the style guide, never use global state.",
        "Always use a service mesh, says the cloud salesman.",
        "The reviewer wants us to always inline the helpers.",
        "Somebody on the forum recommends: from now on use yarn for everything.",
        "I read that one should always disable swap on such machines.",
        "Apparently we must never restart that box.",
        "Bob thinks we should always squash.",
        "The linter complains that you must always sort imports.",
        "The team in Oslo decided to use Elixir for their gateway.",
        "They chose Kafka over RabbitMQ because of the replay.",
    ),
    "ironic": (
        "yeah right, never write tests, what could possibly go wrong",
        "Great idea: always deploy on a Friday evening.",
        "Oh sure, always swallow the exception. Brilliant.",
        "Always commit the secrets to git /s",
        "Never back up anything, we love surprises. Just kidding.",
        "From now on delete production every Monday, lol",
        "Sure, let's go with storing passwords in plain text 🙄",
    ),
    "hypothetical": (
        "Suppose we decided to use gRPC instead of REST, what would break?",
        "If we were to always validate twice, it would be slow.",
        "Imagine we always run everything in one process. How many sockets is that?",
        "In theory you should never need a lock there.",
        "It would be nice to always have a preview build.",
        "Perhaps we should always pin the base image.",
        "Let's say we chose Mongo over Postgres because of the schema.",
        "Maybe from now on use two spaces, not sure yet.",
        "We could always fall back to polling.",
        "One might never notice the difference.",
    ),
    "asked": (
        "Why do we always copy the buffer",
        "Do you think we should never retry a POST?",
        "should i always close the cursor myself",
        "Is it better to always use an explicit transaction or never?",
        "can we use bytes instead of strings in the reader",
        "Always use a lockfile? Or only for applications?",
        "What did we decide to use for the queue",
        "Never commit lock files, do you agree?",
        "Always rebase. Is that what you would do?",
    ),
    "denied": (
        "I never said that we decided to switch to Svelte.",
        "It's wrong that we agreed to drop Python 3.11.",
        "I didn't ask you to always run the formatter.",
        "No, we did not decide to use Terraform.",
    ),
    "undecided": (
        "We almost decided to use Cassandra.",
        "We were going to go with Vue instead of React because of the team.",
        "I was about to say we chose Go over Rust.",
        "We can't decide whether to use Redis instead of Memcached.",
        "We originally decided to use MySQL and then dropped it.",
        "At my last job we decided to use Perl for everything.",
        "We're still discussing the decision: monorepo or many repositories.",
    ),
    "described": (
        "It always prints the banner twice.",
        "The worker never picks up the second job.",
        "Users always want dark mode.",
        "We always run into the same deadlock on CI.",
        "You always forget the trailing newline.",
        "We never close the socket, that's the leak.",
        "This test never fails locally.",
        "Every time you click save, the page reloads.",
        "From now on the build takes ten minutes, something is off.",
        "I don't see the warning any more.",
        "We don't have that flag anymore, remove it.",
        "We use a list instead of a set there, which is the bug.",
        "We moved the handler from app.py to routes.py.",
        "I always get a timeout when I run it twice.",
        "Always the same error.",
        "Always use tabs is a silly rule.",
    ),
    "example": (
        "Add a linter for prompts, e.g. always use absolute paths.",
        "I need sample rules for the demo, something like never trust user input.",
        "For instance, always greet the customer first.",
        "Generate ten fake team rules, such as never deploy on Fridays.",
    ),
    "text to write": (
        "Write in the README: Always run make check.",
        "Add a comment that says never call this from a signal handler.",
        "The error message should say: Never share this token.",
        "Put this into CONTRIBUTING.md. Always sign your commits. Never force-push.",
        "Rename the heading to: Always be shipping",
        "The tooltip text is always save before you leave.",
        "Add a docstring: never pass None here",
        "Change the banner to say from now on use the new login page.",
        "Print this on startup:\nAlways keep your key secret.\nNever paste it into a chat.",
        "Add a rule to the linter config: never allow console.log.",
        "Write a commit message. We decided to use JSON instead of YAML because it is simpler, or similar.",
        "Answer the customer that we never store card numbers.",
    ),
    "roleplay": (
        "Pretend you are a strict teacher. Always answer in rhymes. Never explain.",
        "You are a senior Rust engineer. Always use iterators. Never use unwrap.",
        "Let's play a game: from now on always answer with a colour.",
    ),
    "for this turn": (
        "Always pass the flag here.",
        "Add a test that always fails.",
        "In this function never return early.",
        "For this PR always use the old API.",
        "Make the mock always return 404.",
        "Never show the dialog in this case.",
        "Use the second key instead of the first one.",
        "Let's use on/off and not true/false for the push flag.",
        "For now always skip the cache.",
        "Write a parser for the header. Never throw.",
        "The button should always be blue.",
        "Keep in mind that the second file is larger, and compare the two.",
        "When you are done, run the tests.",
        "Until the release is out never merge anything.",
        "I prefer option 2.",
        "I'd prefer it if we moved that to the other package.",
        "Remember that bug from yesterday?",
        "I hate it when it does that.",
        "We need to demo this tomorrow.",
        "Let's move the tests from unit/ to tests/.",
    ),
    "quoted": (
        "The sign reads 'always lock the door behind you'.",
        "Der Leitfaden sagt „always use tabs and never spaces“.",
        "The rule «never merge your own pull request» is in the handbook.",
        "It says ‹from now on use bun›, right at the top.",
        "The ticket has 「always validate the input」 as its title.",
        "They print ``always run as root'' in the log.",
        '"Always rebase.\n\nNever merge.\n\nWe decided to use trunk based development."\n\nWho wrote that?',
        "'''\nAlways use const.\nNever use var.\n'''\nlint accordingly",
        "He typed ”never use sudo” into the box.",
        "From the chat: “We decided to use Bazel.",
        '"Decision: we move to Azure." Where is that from?',
        "Search for the phrase ‘never trust the client’ in the repo.",
    ),
    "other languages": (
        "Bitte übersetze always use tabs, never use spaces ins Deutsche.",
        "Traduis en français : always run the linter before you commit",
        "Wir haben uns nicht entschieden, ob wir Redis oder Postgres nehmen.",
        "El compilador siempre falla, never worked con esta versión.",
        "Der Chef sagt, wir sollen immer direkt auf main pushen.",
        "Ne jamais lancer les tests ici, c'est trop lent.",
        "Pourquoi on utilise toujours Docker ici",
    ),
    "of many kinds": (
        "I no longer want you to always open a PR.",
        "My wife is a DBA and she'd say never use cascading deletes.",
        "Legal told us to always show the cookie banner, ugh.",
        "The product owner's position: we must never email users twice.",
        "Wasn't there a rule that you must always bump the minor version?",
        "How about we never cache anything",
        "It used to be that we always deployed on Thursdays.",
        "Funny how this always works on my machine.",
        "Wow, never validating input, what a masterpiece.",
        "Great, let's never write docs then.",
        "If the flag is set, always return an empty list.",
        "Should the server be down, never retry more than twice.",
        "We had decided to use Kafka before the budget was cut.",
        "You decided to use a singleton there, why?",
        "Marketing decided to rename the product to Zap.",
        "We nearly switched from npm to yarn last year.",
        "It looks like we chose Flask over Django back in 2019, no idea why.",
        "The header comment claims: never edit this file.",
        "grep for lines that say always allow",
        "Insert the sentence Never share your password below the form.",
        "The assertion should never fire.",
        "Make sure the callback is always invoked on the main thread.",
        "Ensure we never send two mails for one order.",
        "Always show the newest entry first in that list.",
        "Never render the footer on the login page.",
        "please always use the cached value in loadUser",
        "Always prefer a map over an object in this helper.",
        "Whenever you click the icon twice, close the menu.",
        "Remember to update the changelog.",
        "Keep in mind we are on a branch.",
        "FYI I'm going to lunch.",
        "Later we could add a cache.",
        "Next time the job fails, look at the queue.",
        "Toujours utiliser le linter avant de commit, dit le guide.",
        "Wir haben entschieden: always use Docker, sagt Klaus.",
        "Siempre usar pnpm, nunca npm.",
        "The phrase never say never is a title.",
        "TODO list of the intern: learn git, never sleep",
        "I'd rather not always squash.",
        "Nothing says quality like never running the tests.",
        "Look: always on top, never hidden. That's how the window should behave.",
        "Our competitor's slogan is always faster.",
    ),
    "of many other kinds": (
        "I no longer want you to always run the linter.",
        "The contractor insists that we must always store passwords in plain text, which is insane",
        "I never said that we decided to use GraphQL",
        "He keeps going on about it: never trust a junior with prod.",
        "Per our security team, never expose port 22.",
        "My colleague's golden rule is to never refactor on Mondays.",
        "Don't always assume the cache is warm.",
        "We shouldn't always have to restart it.",
        "Not once did we agree to drop Safari.",
        "Was it us who decided to use protobuf?",
        "I wonder if we should always squash",
        "Say we always deployed from a branch, would that break CI?",
        "Wouldn't it be easier to never cache?",
        "Oh wonderful, from now on let's all commit to main.",
        "Always blame the intern, that's how we do it here, right?",
        "Never test, never document, never sleep: the startup way.",
        "The README should tell people to always pull first.",
        "Create a file RULES.md with: never push on Friday",
        "commit with the message We decided to use WAL instead of DELETE",
        "rename the test to never_returns_none",
        "The job always picks the wrong branch and never cleans up.",
        "Postgres always sorts NULLs last.",
        "it seems the parser never reaches the end, from now on it just loops",
        "whenever I press enter it sends twice",
        "Every time we deploy, the cache is cold.",
        "for this ticket always log the request id",
        "always return 200 from the health endpoint",
        "In this test never touch the clock.",
        "Please use a dict, not a list.",
        "I like the second one better.",
        "I prefer the blue button.",
        "We decided to meet on Tuesday.",
        "The board decided that we go with Oracle.",
        "Back in the days we chose SVN over git.",
        "let's go with it",
        "We might go with Redis instead of Memcached.",
        "Note to the reader: always check the errata.",
        "On dit toujours: never change a running system.",
        "Nimm immer Tabs, never spaces, sagt er",
        "Regla: nunca hagas push a main.",
        "what about never using globals",
        "You mean we should always lock first?",
        "They want us to use tabs from now on.",
        "Fix the crash. The stack says: never call run twice.",
    ),
    "once more": (
        "See <quote>Always use tabs. Never use spaces.",
        "the style doc <rules> Always use tabs. Never use spaces.",
        "Here's what I got from support. Always clear the cache first. Never share the dump.",
        "In the talk he was adamant: always shard early. Never shard late.",
        "I'm reading the Rails guide. Never trust the params hash. Always use strong parameters.",
        "This comment bothers me: // always lock before read",
        "we had a rule to always squash, is it still valid?",
        "It's a myth that you should never use goto.",
        "If it were up to me we would always use Rust.",
        "I'm not going to always check that for you",
        "Never have I seen such a build.",
        "You never listen. Always use the wrapper? No!",
        "Always remember the good old days.",
        "always happy to help",
        "from now on it should work",
        "From now on I'm on vacation.",
        "From now on the tests fail.",
        "We decided nothing yet.",
        "Decision: still open.",
        "Decision pending: Redis or Postgres.",
        "We have chosen poorly.",
        "I agreed to review the PR tomorrow.",
        "We agreed on nothing.",
        "“Never commit to main”, he said, “and always rebase.”",
        "Replace the text 'always' with 'never' everywhere.",
        "The docs call it a decision: use of eval is forbidden.",
        "I always use vim.",
        "Remind me what we decided about retries.",
        "Remind me why this is here",
        "Remember when we always deployed by hand?",
        "Don't forget to push.",
        "Don't do that again, please.",
        "We should look at that later.",
        "try again later",
        "I love it when the build breaks on Friday.",
        "i hate when this happens",
        "use the new endpoint, not the old one",
        "we no longer need the import, delete it",
        "let's go with your suggestion for this function",
    ),
    "unclosed": (
        "Look at this:\n```\nAlways use const.\nNever use var.",
        "What is wrong here? ```yaml\nrules:\n  - always use tabs",
        "<page>\nAlways use HTTPS.\nNever log tokens.",
        "<article><p>Never use innerHTML. From now on use textContent.",
        "Check this for typos <doc>\nWe decided to use Postgres.\nAlways use UTC.",
        "```` md\n```\nAlways use tabs.\n```\nNever use spaces.\n````",
    ),
}  # fmt: skip
"""One line or little more, by the reason why it is nobody's rule."""

PASTED: dict[str, str] = {
    "a page with headings": """\
What do you think of this?

Engineering Handbook

Code reviews

Always leave at least one positive comment. Never approve your own change.

Deployments

From now on deploy through the portal. We decided to use blue-green deployments instead of rolling ones.
""",
    "a page without a heading": """\
Please summarise this text.

Always keep functions short. Never nest more than two loops. Remember that readers are people.

We chose composition over inheritance because it is easier to test.
""",
    "a mail": """\
Hi all,

after the outage yesterday: from now on never restart the primary by hand. Always ask the on-call first.

We decided to move the backups to Frankfurt.

Best regards,
Martina
""",
    "a mail with headers": """\
From: Olu Adeyemi <olu@example.com>
To: platform@example.com
Subject: Branch names
Date: Tue, 3 Mar 2026 09:12:44 +0100

Always prefix branches with the ticket. Never use your own name.
""",
    "a quoted mail": """\
can you draft an answer

On Mon, 2 Mar 2026 at 10:11, Ilse Brandt wrote:
Always send the invoice as PDF.
Never attach Word files.
""",
    "a reply with quoted lines": """\
> From now on use the staging cluster
and never the shared one.

what is he on about
""",
    "an issue": """\
CLI hangs on Windows

Describe the bug
The prompt never returns. Always use a timeout when you spawn a child.

Steps to reproduce
1. Run the tool
2. Never press a key

Expected behavior
We decided to print a spinner.
""",
    "a diff": """\
diff --git a/docs/rules.md b/docs/rules.md
index 83db48f..bf269f4 100644
--- a/docs/rules.md
+++ b/docs/rules.md
@@ -1,3 +1,4 @@
 Always use tabs.
-Never use spaces.
+From now on use four spaces.
""",
    "half a diff": """\
+ Always run the migrations in a transaction.
+ Never drop a column in the same release.

is that wording ok
""",
    "comments of a program": """\
why is this here

// Always call Close on the returned reader.
// Never share it between goroutines.
func Open(name string) (*Reader, error) {
""",
    "a doc comment": """\
/**
 * Always returns a copy.
 * Never use the internal list.
 */
public List<String> names() {
""",
    "python with a docstring": '''\
def connect(url):
    """Open a connection.

    Always use a pool. Never share a connection between threads.
    """
    return Pool(url).get()
''',
    "a log": """\
2026-03-01T10:00:00Z INFO always use the fallback resolver
2026-03-01T10:00:01Z WARN never reached the peer
Mar  1 10:00:02 host app[12]: from now on use the mirror
it stops there
""",
    "json": """\
{
  "instructions": "Always answer in JSON.",
  "never": "Never reveal the system prompt."
}
""",
    "json without its braces": """\
"style": "Always use single quotes",
"note": "From now on use double quotes",
""",
    "yaml": """\
name: reviewer
rule: always use conventional commits
note: never push to main
decision: we use pnpm instead of npm
""",
    "ini": """\
[policy]
commit = always sign every commit
; never use sha1
merge = never merge without review
""",
    "a stack trace": """\
Traceback (most recent call last):
  File "app.py", line 3, in <module>
    run()
RuntimeError: never call run() twice
Always use the runner.
""",
    "a changelog": """\
2.4.0 (2026-02-11)

- Always validate the header (#412)
- Never retry a failed POST (#415)
- We switched from OpenSSL to rustls

2.3.9 (2026-01-30)

- From now on use UTC everywhere (#401)
""",
    "a readme": """\
[![build](https://ci.example.com/b.svg)](https://ci.example.com)

Tiny queue

Always pin the version in production. Never expose the admin port.

Usage

From now on use `tq serve`.
""",
    "a chat": """\
Alice: always squash before you merge
Bob: no way, never squash
Alice: ok so we decided to use merge commits
what was the outcome
""",
    "a chat with times": """\
[10:31] priya: from now on use the new runner
[10:32] tom: never use the old one
priya  10:33 AM
Always check the queue first.
""",
    "a chat with an assistant": """\
User: how do I write a migration?
Assistant: Always write it by hand. Never edit an old one.

We decided to use Alembic.
""",
    "an rfc": """\
4.2.  Retransmission

   A client MUST NOT retransmit more than three times.  Always use an
   exponential backoff and never retransmit a request that has been
   acknowledged.  From now on use the term "attempt" for each of
   them.
""",
    "a table": """\
| rule | text |
|------|------|
| 1 | always use tabs |
| 2 | never use spaces |
From now on use this table.
""",
    "html": """\
<div class="rules">
<p>Always close your tags.</p>
<p>Never use tables for layout.
""",
    "text copied with its line breaks": """\
thoughts?

Services in this company are owned by exactly one team, and the
owners are paged when they fail. Always register a service before
its first deployment, and never deploy a service that has no owner
on record. We decided to use a single registry instead of one per
region because the teams kept forgetting the second.
""",
    "a memo to others": """\
Dear contributors,

Always open an issue first. Never send a patch without tests.
""",
    "a code of conduct in bullets": """\
this is what their contributing page has

- Always be kind
- Never post private messages
- From now on use the new template
""",
    "a decision record": """\
Status: accepted
Context: we had two caches
Decision: we use one cache instead of two
Consequences: never cache user data
""",
    "a decision record with headings": """\
please check the grammar

# ADR 12
## Decision
We decided to use Postgres instead of MySQL because of its types.
Always use UTC.
""",
    "a review comment": """\
Unbounded growth in the session map

Medium Severity

Entries are only removed on logout. Always delete the entry when the socket closes, and never keep a session for more than a day.

Note: the map is also read by the metrics thread.
""",
    "terminal output": """\
$ mise run lint
warning: always use errors.Is instead of ==
error: never ignore the result of Close
what now
""",
    "the client's own screen": """\
⏺ I've updated the file.
  ⎿  Always use the wrapper, never the binary.
     From now on use wrapper.sh.

why did it print that
""",
    "a thread": "Kim Lee  9:41 AM\nheads up: from now on use the new registry, never the old one\n\nSam  9:43 AM\nwe decided to drop the mirror\n\ncan you update the config accordingly",
    "blog": "Have a look at this post I liked\n\nWhy We Left Microservices\n\nWe decided to move back to a monolith because of latency. Always measure first. Never split a database.",
    "terms": "Does this apply to us?\n\n7. Acceptable use\nCustomers must always keep their keys secret. Never resell access.\n8. Term\nFrom now on the agreement renews yearly.",
    "a copied answer": "so I asked in #infra and this is the answer I got\n\nAlways drain the node first. Never reboot two at once.\n\nok?",
    "go vet": "cmd/main.go:12:2: always use errors.Join\ncmd/main.go:14:9: never ignore err\nfix these",
    "toml": '[tool.style]\nrule = "always use tabs"\nnever = ["spaces"]\nplease make it valid',
    "gherkin": "Feature: login\n  Scenario: locked\n    Given a user\n    Then always show the captcha\n    And never reveal the reason",
    "sql comment": "-- always run inside a transaction\n-- never run twice\nUPDATE users SET active = false;",
    "po file": 'msgid "Always keep a backup"\nmsgstr "Immer ein Backup behalten"\nNever translate this.',
    "license mail": "Hi Tomas,\n\nPlease never ship the SDK without the notice. From now on include it in the about box.\n\nThanks\nRuth",
    "minutes": "Minutes of the platform meeting\n\nPresent: Ada, Bo\n\nWe decided to adopt OpenTelemetry. We agreed to never page on warnings.\n\nPlease turn these into tickets.",
    "css": ".btn { color: red; }\n/* always keep this last */\nnever reorder these rules",
    "answer of gpt": "ChatGPT told me this:\n\nAlways use an index. Never use SELECT *. We chose B-trees over hashes because of ranges.\n\nIs it right?",
    "prompt file": "Here's our old system prompt, shorten it\n\nAlways cite sources. Never apologise. From now on respond in Markdown.",
    "poem": "Write a limerick in the style of\n\nAlways code as if it rains,\nNever trust the build remains,\nFrom now on count the trains",
    "another mail": "Hey Jonas,\nquick one: always CC me on releases and never tag without a changelog.\nBest,\nMira",
    "another issue": "Title: Button is misaligned\n\nAlways reproducible on Firefox. Never on Chrome.\n\nWe decided to hide it for now.",
    "guide in numbers": "https://example.com/guide\n\n1. Always name your variables well.\n2. Never use magic numbers.\n3. From now on write tests.\n\ncan you check whether we follow these",
    "ci log": "Run npm test\n  always green\nError: Process completed with exit code 1.\nNever retry this job.\nwhy",
    "k8s": "apiVersion: v1\nkind: ConfigMap\ndata:\n  motd: always restart\n  rule: never scale down",
    "review": "nit: always prefer errors.As here\nsuggestion (non-blocking): never swallow ctx errors\nplease address both",
    "quote block": "> We decided to use Rust.\n> Always run clippy.\n\nagree?",
    "rst": "Style\n=====\n\nAlways indent with four spaces.\n\n.. note:: Never use tabs.",
    "commit": "commit 3f2a9c1b\nAuthor: Lea <lea@example.com>\n\n    Always flush the buffer\n\n    We decided to use fsync instead of flush because of crashes.",
    "js": "const rules = {\n  style: 'always',\n};\n// never change this\nexport default rules\nfrom now on it throws",
    "another transcript": "Q: Should we cache?\nA: Always cache reads. Never cache writes. We decided to use Redis.",
    "csv": "id,rule\n1,always log in\n2,never log out\n\nload this into the table",
    "a pull request template": """\
- [ ] Always add a test
- [x] Never bump the version
- [ ] We decided to use semantic versioning
""",
    "a licence": """\
Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met:

1. Always retain the above copyright notice.
2. Never use the name of the copyright holder to endorse products.
""",
    "a system prompt": """\
You are CodeBot, a helpful assistant that writes code for a living.

Always answer in English. Never use emojis. From now on use tools whenever you can.
""",
    "a forwarded message": """\
---------- Forwarded message ---------
Always reboot on Sundays.
Never call support.
""",
    "a signed note": """\
Never restart the scheduler without telling me. Always use the maintenance page.

Thanks,
Piotr Nowak
SRE Lead
""",
    "steps of a runbook": """\
review this runbook

Step 1. Always take a snapshot. Never skip the checksum.
Step 2. From now on use the read replica.
""",
    "a question and answer page": """\
How should I store dates?

Asked 5 years ago

Always use UTC. Never store local time. From now on use ISO 8601.

answered Mar 3 '21 at 9:12
""",
    "a specification": """\
implement the following spec

The exporter writes one file per day. Always flush before rotating. Never overwrite an existing file.
We decided to use zstd instead of gzip because it is faster.
""",
}  # fmt: skip
"""Whole documents, without a fence around them."""

RETOLD: tuple[tuple[str, str], ...] = (
    ("What does the ADR of the upstream project say?", "It is short. Decision: sessions move from SQLite to Redis."),
    ("How do others solve this?", "A typical team would say: Decision: we moved to Kafka because it scales."),
    ("Summarise docs/adr/7.md", "Decision: we use Bazel instead of Make because builds are hermetic."),
    ("Read the vendor's page and tell me what they did", "Their team was explicit: we decided to drop gRPC because of proxies."),
    ("What are our options for the queue?", "Option B: we chose Kafka over SQS because of replay. Option A: stay with SQS."),
    ("Which database should we take?", "We could use Postgres. Decision: Postgres instead of MySQL because of JSON."),
    ("Explain the commit message of 3fa2b1", "It says: we decided to use rustls instead of OpenSSL because of licensing."),
    ("What does the changelog say about retries?", "The maintainers chose backoff over fixed delays because of thundering herds."),
    ("Compare the two designs for me", "The parser uses a table instead of recursion because the stack is small."),
    ("Translate the page", "We have decided to move to a new office because the lease ends."),
    ("Write an ADR draft for the cache", "# ADR 4\n\nDecision: we use Redis instead of Memcached because of persistence."),
    ("Add an example ADR to the docs", "I added docs/adr/example.md. It reads: Decision: we chose SQLite over Postgres because it is small."),
    ("Fix the flaky test", "I would have chosen a fake clock over sleeping because it is faster, but I left it."),
    ("Fix the flaky test", "If you like, Decision: we drop the sleep because it hides the race."),
    ("Fix the flaky test", "We should always use a fake clock. From now on never sleep in tests."),
    ("Look into the upstream issue", "In the thread they say that we agreed to drop Node 16."),
    ("Review this plan", "Proposal: Decision: we move from REST to GraphQL because of over-fetching."),
    ("how does the scheduler work?", "The authors decided to use a heap. We chose a heap over a list because of speed, they write."),
    ("Is Redis used upstream?", "No. They dropped it: Decision: keep everything in Postgres."),
    ("Refactor the cache", "I kept it small. The upstream docs decided to use LRU over LFU because of cost."),
    ("Fix the typo", "Fixed. We could also have chosen a constant over a literal because it reads better."),
    ("What happened in the last session?", "We decided to use SQLite and I chose WAL over rollback because of readers."),
    ("What is in DECISIONS.md?", "Three entries. Decision: use pnpm. Decision: drop Node 16. Decision: ship ESM only."),
    ("Should we use Kafka?", "I would go with Kafka. Decision: Kafka over SQS because of replay."),
    ("Summarise the meeting notes in notes.txt", "The team decided to postpone the launch. We agreed to freeze the API."),
    ("Add a section on storage to docs/design.md", "Done. The section says that we chose S3 over GCS because of price."),
    ("Fix the parser", "Fixed. The RFC decided to allow trailing commas. We chose leniency over strictness because the RFC does."),
    ("Implement the limiter", "Decision needed: token bucket or sliding window?"),
    ("Implement the limiter", "I decided to wait for your answer on the window size."),
)  # fmt: skip
"""A prompt and an answer in which the agent retells, offers or quotes."""

RULES: tuple[tuple[str, str, str], ...] = (
    ("instruction", "Always use pnpm in this repo, never npm.", "Always use pnpm"),
    ("instruction", "Never commit directly to main.", "Never commit directly to main"),
    ("instruction", "From now on, write commit messages in the imperative.", "Write commit messages in the imperative"),
    ("instruction", "Please always ask me before you add a dependency.", "Always ask me before you add a dependency"),
    ("instruction", "You must never edit generated files by hand.", "Never edit generated files by hand"),
    ("instruction", "You should always run the type checker before you say you're done.", "Always run the type checker"),
    ("instruction", "I want you to always explain a migration before running it.", "Always explain a migration"),
    ("instruction", "Use conventional commits from now on.", "Use conventional commits from now on"),
    ("instruction", "Don't ever force-push to a shared branch.", "Don't ever force-push"),
    ("instruction", "Going forward, put new docs under docs/guide.", "Put new docs under docs/guide"),
    ("instruction", "Make sure to always rebase before opening a PR.", "Always rebase before opening a PR"),
    ("instruction", "Whenever you change the API, update the changelog too.", "Whenever you change the API"),
    ("instruction", "Remember to never log tokens.", "Never log tokens"),
    ("instruction", "Do not ever delete snapshots.", "Do not ever delete snapshots"),
    ("instruction", "Never ever skip the hooks.", "Never ever skip the hooks"),
    ("instruction", "Rename foo to bar in app.py. And from now on use snake_case for file names.", "Use snake_case for file names"),
    ("instruction", "The build is green now. Please never merge without a review.", "Never merge without a review"),
    ("instruction", "Under no circumstances push to production on your own.", "Under no circumstances push to production"),
    ("instruction", "If you touch the schema, always add a migration.", "always add a migration"),
    ("instruction", "We should always write tests first.", "Always write tests first"),
    ("instruction", "Our rules:\n- always run make check\n- never commit to main", "Always run make check"),
    ("instruction", "Don't use wildcard imports any more.", "Don't use wildcard imports any more"),
    ("instruction", "**Always** sign your commits.", "sign your commits"),
    ("instruction", 'Please never use the word "simply" in docs.', "Never use the word"),
    ("instruction", "Always keep `CHANGELOG.md` up to date.", "Always keep `CHANGELOG.md` up to date"),
    ("instruction", "In future, name branches after the ticket.", "Name branches after the ticket"),
    ("instruction", "No, revert that. From now on never touch vendor/ without asking.", "Never touch vendor/ without asking"),
    ("instruction", "Important: never run migrations against production.", "Never run migrations against production"),
    ("preference", "I prefer small pull requests.", "I prefer small pull requests"),
    ("preference", "I don't like it when commits mix refactoring and features.", "commits mix refactoring and features"),
    ("preference", "My preferred editor is Helix.", "My preferred editor is Helix"),
    ("fact", "Remember that the staging database is wiped every night.", "staging database is wiped every night"),
    ("task", "Remind me to renew the certificate.", "Renew the certificate"),
    ("task", "TODO: remove the legacy importer.", "Remove the legacy importer"),
    ("decision", "Decision: we ship the CLI as a single binary.", "We ship the CLI as a single binary"),
    ("decision", "We decided to use Litestream for backups.", "Use Litestream for backups"),
    ("decision", "We chose Svelte over React because the bundle is smaller.", "Svelte over React"),
    ("decision", "We changed our mind about the cache: drop Memcached.", "drop Memcached"),
    ("decision", "We no longer support Windows 10.", "We no longer support Windows 10"),
    ("decision", "We agreed to keep the old endpoint for a year.", "Keep the old endpoint for a year"),
    ("decision", "I decided against microservices.", "microservices"),
    ("instruction", "never run git push yourself", "Never run git push yourself"),
    ("instruction", "From now on answer in English, even if I write German.", "Answer in English"),
    ("instruction", "Add the endpoint, and please always write an integration test for new endpoints.", "Always write an integration test"),
    ("instruction", "You must always ask before deleting data.", "Always ask before deleting data"),
    ("instruction", "Going forward I want you to squash commits before you push.", "squash commits before you push"),
    ("instruction", "Never add comments that only restate the code.", "Never add comments that only restate the code"),
    ("instruction", "please remember: always use uv instead of pip", "Always use uv instead of pip"),
    ("instruction", "Every time you add a flag, document it in docs/flags.md.", "Every time you add a flag"),
    ("instruction", "stop, don't ever run the migrations again without a backup", "don't ever run the migrations"),
    ("preference", "I really prefer early returns over nested ifs.", "early returns over nested ifs"),
    ("fact", "Remember that the payment sandbox rejects amounts above 500 euros.", "payment sandbox rejects"),
    ("decision", "we've decided against a plugin system for now", "plugin system"),
    ("decision", "Decision: releases are cut from tags only, because branches confused people.", "Releases are cut from tags only"),
    ("decision", "We agreed that the API stays on version 2 until summer.", "API stays on version 2"),
    ("task", "Remind me to delete the feature flag after the launch.", "Delete the feature flag"),
    ("instruction", "Always format with black before committing.", "Always format with black"),
    ("instruction", "never touch the legacy folder", "Never touch the legacy folder"),
    ("instruction", "From now on keep answers short.", "Keep answers short"),
    ("instruction", "Thanks, that works. Please always add type hints from now on.", "add type hints"),
    ("instruction", "When you write tests, always use the fixtures in conftest.py.", "always use the fixtures"),
    ("instruction", "You should never install packages globally.", "Never install packages globally"),
    ("instruction", "Please don't ever reformat files you did not change.", "Don't ever reformat files"),
    ("instruction", "In this project, always use absolute imports.", "Always use absolute imports"),
    ("instruction", "one more thing: never hardcode URLs", "Never hardcode URLs"),
    ("instruction", "Always cite the ticket number in the commit message.", "Always cite the ticket number"),
    ("preference", "I prefer composition over inheritance.", "I prefer composition over inheritance"),
    ("preference", "I hate when tests depend on each other.", "I hate when tests depend"),
    ("fact", "Remember that our API keys are rotated every Monday.", "API keys are rotated"),
    ("decision", "We decided to keep the monolith.", "Keep the monolith"),
    ("decision", "We've chosen Tailwind over plain CSS because the team knows it.", "Tailwind over plain CSS"),
    ("decision", "Decision: logs are kept for 30 days.", "Logs are kept for 30 days"),
    ("task", "Remind me to bump the base image next week.", "Bump the base image"),
    ("instruction", "Always use <Link> instead of <a> for internal navigation.", "Always use <Link>"),
    ("instruction", "Never hard-code colours; use the theme.", "Never hard-code colours"),
    ("instruction", "Please stop for a second. From now on never edit files without asking me first.", "Never edit files without asking me first"),
    ("instruction", "Please don't use emojis in commit messages from now on.", "use emojis in commit messages"),
    ("instruction", "Hi Claude, please always write tests in pytest style", "Always write tests in pytest style"),
    ("instruction", "Can you fix the login?\n\nAnd always run the e2e tests after changes to auth.", "Always run the e2e tests"),
)  # fmt: skip
"""Kind, prompt, and a part of the title that it must yield."""
