"""Short dialogues of people who talk to an agent in very different ways, and what stands after each.

Each was written before the rules that read them. `keeps` are words that the title and body of one decision,
instruction or preference must all have; empty if nothing stands.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialogue:
    """What the agent had said last, what the user says, and what the agent says at the end of its work."""

    name: str
    before: str
    says: str
    after: str = "Done."
    keeps: tuple[str, ...] = ()
    does_work: bool = True
    asked_before: str = "have a look at it"


_CACHE_OPTIONS = """There are three ways to do it.

### Option A: Redis
One more service to run, but shared between the workers.

### Option B: an in-process LRU cache
Simple; every worker has its own copy.

### Option C: no cache, but a better index
Removes the need; writes get a little slower.

I would recommend Option B. Which one do you prefer?"""

_NUMBERED = """The upload can fail in the middle. I see these possibilities:

1. **Resumable uploads** with the tus protocol
2. **Retry the whole file** up to three times
3. **Show an error** and let the user press the button again

Which approach should I take?"""

_LETTERED = """Where should the feature flags live?

A) in the database, editable at run time
B) in a YAML file in the repository
C) in environment variables

What do you prefer?"""

_EITHER = """The exporter works now.

Should I keep the semicolon as separator, or switch to tabs so that Excel opens it everywhere?"""

_OFFER = """The parser accepts both date formats now.

Want me to also add a fallback that guesses the format from the locale of the browser?"""

_COMMIT_OFFER = """All 214 tests pass. Want me to commit this and push the branch?"""

_QUESTIONS = """Before I begin, three questions:

1. Should the audit log go to its own table?
2. The secrets are in `settings.env` today. Should I move them into the keychain?
3. Which database should the audit log use: A) SQLite or B) Postgres?"""

DIALOGUES = (
    # --- a choice among what was offered ---
    Dialogue("terse, a letter", _LETTERED, "B", "Moved the flags to `flags.yaml`.", ("YAML", "feature flags")),
    Dialogue("terse, a number with a full stop", _NUMBERED, "2.", "The client retries three times.", ("Retry the whole file",)),
    Dialogue("lowercase, option named", _CACHE_OPTIONS, "lets go with option c pls", "Added the index.", ("no cache", "index")),
    Dialogue("by ordinal", _NUMBERED, "The first one, please. Users on trains will thank us.", "Uploads resume.", ("tus", "trains")),
    Dialogue("by its name", _CACHE_OPTIONS, "redis it is, we have one running anyway", "Uses Redis.", ("Redis", "running anyway")),
    Dialogue("dictated", _CACHE_OPTIONS, "okay so um I think option B sounds right to me because we only ever run one worker", "Added the LRU.", ("LRU", "one worker")),
    Dialogue("German in the middle", _LETTERED, "ich nehme B, das ist am einfachsten zu reviewen", "Moved to YAML.", ("YAML", "einfachsten")),
    Dialogue("French in the middle", _CACHE_OPTIONS, "on part sur l'option C, merci", "Added the index.", ("no cache",)),
    Dialogue("either or", _EITHER, "tabs", "The exporter writes tabs.", ("tabs", "separator")),
    Dialogue("one with a change", _LETTERED, "B but as TOML, we have no yaml parser in there", "Flags are in TOML.", ("TOML",)),
    Dialogue("a number, but", _NUMBERED, "2, but only for files under 5 MB", "The client retries.", ("Chosen: Retry the whole file", "up to three times, but only for files under 5 MB")),
    Dialogue("an option without a part", _CACHE_OPTIONS, "let's go with option B, but without the copy per worker", "Added the LRU.", ("an in-process LRU cache", ", but without the copy per worker")),
    Dialogue("two sentences, the second takes back a part", _LETTERED, "B. But please don't put the secrets there.", "Moved.", ("Chosen: in a YAML file in the repository", "but please don't put the secrets there")),
    Dialogue("by ordinal, except", _LETTERED, "the second one, except for the two flags that ops need", "Moved.", ("Chosen: in a YAML file in the repository", ", except for the two flags that ops need")),
    Dialogue("by name, but", _CACHE_OPTIONS, "redis but with a TTL of ten minutes", "Uses Redis.", ("Chosen: Redis", ", but with a TTL of ten minutes")),
    Dialogue("the recommended, but", _CACHE_OPTIONS, "go with your recommendation but cap it at 500 entries", "Added the LRU.", ("LRU cache", ", but cap it at 500 entries")),
    Dialogue("yes, but only", _OFFER, "yes but only for signed-in users", "Added.", ("fallback that guesses", ", but only for signed-in users")),
    Dialogue("the recommended", _CACHE_OPTIONS, "yes, go with your recommendation", "Added the LRU.", ("LRU",)),
    # --- a refusal, with or without its reason ---
    Dialogue("refusal with reason", _OFFER, "No, guessing is worse than an error here.", "Left as it is.", ("guess", "locale", "worse than an error"), does_work=False),
    Dialogue("fine as it is", _OFFER, "no this is fine as it is", "Okay.", ("guess", "fine"), does_work=False),
    Dialogue("senior, three words", _OFFER, "nope. keep it strict.", "Okay.", ("strict", "locale"), does_work=False),
    Dialogue("non-native refusal", _OFFER, "No please, I don't want that we guess something, it will make problem with customer data", "Okay, no fallback.", ("guess", "customer data"), does_work=False),
    Dialogue("removed on purpose", "There is no `--watch` flag any more. Should I add it back?", "no, we took --watch out on purpose, it kept two processes alive", "Okay.", ("--watch", "on purpose"), does_work=False),
    # --- a correction of what the agent did ---
    Dialogue("only one of them", "Both commands write the lock file now.", "only `sync` should write the lock file, `check` must stay read-only", "`check` no longer writes.", ("sync", "lock file", "read-only")),
    Dialogue("should not", "The importer now deletes rows that are missing in the CSV.", "hmm that should never delete anything, a missing row just means it wasn't exported", "No deletes any more.", ("delete", "exported")),
    Dialogue("undo with the better way", "I made the timeout configurable.", "revert that, I'd rather have one fixed timeout of 30s than one more setting", "Reverted.", ("30s", "setting")),
    Dialogue("a reason in passing", "I replaced the raw SQL by the ORM in report.py.", "we use raw SQL there on purpose because the planner needs the hint", "Restored the SQL.", ("raw SQL", "on purpose", "hint")),
    # --- a decision that is shaped like a question ---
    Dialogue("why not just", "The id is `user-<n>-<region>`, built by hand.", "why don't we just use a uuid instead of building that ourselves?", "Ids are UUIDs now.", ("uuid", "building")),
    Dialogue("scope in a question", "The unit tests run with a fake clock now.", "shouldn't that be for all tests, not just the unit tests?", "All tests use the fake clock.", ("all tests", "unit tests")),
    Dialogue("can't we", "Errors are logged and swallowed.", "can't we return the error to the caller instead of swallowing it?", "The error is returned.", ("return the error", "swallow")),
    Dialogue("better idea", "The config is read at import time.", "wouldnt it be better to read it lazily? importing should have no side effects", "Reads lazily.", ("lazily", "side effects")),
    Dialogue("a thing in another way", "The feed is cached for an hour.", "can the feed expire by event instead of by time?", "Expires by event.", ("expire by event", "by time")),
    Dialogue("how about doing", "The feed is cached for an hour.", "how about dropping the cache and using ETags instead?", "ETags it is.", ("dropping the cache", "ETags")),
    # --- limits and deferrals ---
    Dialogue("limit", "I can do Linux, macOS and Windows.", "let's only support linux for now, the rest can come later", "Linux only.", ("linux", "for now")),
    Dialogue("deferral", _OFFER, "not now, let's do the locale thing after the release", "Okay, later.", ("locale", "after the release"), does_work=False),
    # --- taste and conduct ---
    Dialogue("taste", "Wrote the release notes.", "shorter please. I don't want emojis or marketing words in our release notes", "Shortened.", ("emojis", "release notes")),
    Dialogue("conduct", "Fixed it and bumped the version.", "please don't bump the version yourself, the release job does that", "Reverted the bump.", ("version", "release job")),
    # --- nothing of this stands ---
    Dialogue("could it be that", "The feed is cached for an hour.", "could it be that the cache is only for guests and not for members?", "You're right, only for guests."),
    Dialogue("is it not so already", "The feed is cached for an hour.", "isn't it cached by default?", "You're right, it is."),
    Dialogue("what about its state", "The feed is cached for an hour.", "what about the search page, is it cached, too, not just the feed?", "Good question. It is now."),
    Dialogue("news of a thing", "The feed is cached for an hour.", "how about the load without the cache?", "Good question. It is twice as high."),
    Dialogue("why is it not so", "The feed is cached for an hour.", "why doesn't it expire for all members?", "Good catch, the key was wrong. Fixed."),
    Dialogue("a consequence", "The feed is cached for an hour.", "wouldn't it be built twice then, not just once?", "You're right, fixed."),
    Dialogue("can a thing happen", "The feed is cached for an hour.", "can the feed be read without a token?", "Yes, exactly. Closed now."),
    Dialogue("were you about to", "The feed is cached for an hour.", "were you about to cache the search page, too, or only the feed?", "You're right, I was. Only the feed then."),
    Dialogue("one liked, another safer", _LETTERED, "I like A, but B is safer"),
    Dialogue("praise, but a fault", _OFFER, "ok, but it still fails for me"),
    Dialogue("a chore, but only a part", _COMMIT_OFFER, "yes, but only the importer files"),
    Dialogue("go-ahead for a chore", _COMMIT_OFFER, "yes"),
    Dialogue("go-ahead", "I will now rename the variable. Shall I go on?", "yep do it"),
    Dialogue("refusal of a chore", _COMMIT_OFFER, "no, not yet, I want to look at the diff first", does_work=False),
    Dialogue("a question", _CACHE_OPTIONS, "what would option A cost us per month?", "About 15 dollars.", does_work=False),
    Dialogue("a question with instead", "The worker polls.", "could we use websockets instead of polling, or is that hard?", "It is possible, but hard.", does_work=False),
    Dialogue("steering", _OFFER, "no wait, first show me the failing input again", "Here it is.", does_work=False),
    Dialogue("a bug report", "The list is sorted.", "no, it still shows the oldest first when I reload", "Fixed the sort order."),
    Dialogue("a number that is no choice", "How many retries does the job have?", "3", "Okay.", does_work=False),
    Dialogue("an order", "The table is ready.", "now add a column for the country and show the flag", "Added the column."),
    Dialogue("a chore question", "The fix is in.", "can you also add a test for that and update the readme?", "Added."),
    Dialogue("a pasted review", "The branch is pushed.", "The loop in parse() should use a map instead of a linear scan (lines 88-97). Consider extracting the comparison into a helper and document the complexity.\n\nSeverity: low", "Uses a map."),
    Dialogue("a pasted log", "Run it again please.", 'ERROR worker: should never happen: queue is None\nTraceback (most recent call last):\n  File "worker.py", line 3, in run\nAssertionError', "Fixed the race."),
    Dialogue("thinking aloud", "Both are possible.", "hmm not sure, maybe we should use a queue, maybe not. let me think about it over lunch", does_work=False),
    Dialogue("ironic", _CACHE_OPTIONS, "yeah sure, let's go with option A and buy a datacenter while we're at it, lol", "Understood.", does_work=False),
    Dialogue("what others want", _CACHE_OPTIONS, "Marta says we should go with option A", "She has a point.", does_work=False),
    Dialogue("thanks", "It works now.", "great, thats fine, thanks a lot!", "You're welcome.", does_work=False),
    Dialogue("a dislike of one word", 'The label of the dialog is "Turn".', "I don't like \"Turn\"", "I call it Step now."),
    Dialogue("a rule about it", "The step has the number 4.", "don't give it a number, the order is clear", "Removed the number."),
    # --- several answers at once, and a list of how it shall be ---
    Dialogue("numbered answers", _QUESTIONS, "1. yes 2. no, keep them in the file 3. B", "Done.", ("secrets", "keep them in the file")),
    Dialogue("numbered answers, dashes", _QUESTIONS, "1 - sure, 2 - no, the file is fine, 3 - Postgres please", "Done.", ("audit log", "Postgres")),
    Dialogue("a specification", "What should the list look like?", "ok so:\n1. we show only open orders, the newest first\n2. an order that waits for stock is grey\n3. a click opens the order, a double click its customer", "Built the list.", ("grey", "double click")),
    # --- how it shall be, without not or only ---
    Dialogue("condition and should", "The table lists all shops.", "If a shop has an opening time it should have a clock beside its name.", "Added the clock.", ("shop", "clock")),
    Dialogue("should, plainly", "Exports work.", "invoices should go to billing.example.org, the old host has none", "Changed.", ("invoices", "billing.example.org")),
    Dialogue("better not, with its ground", "I can cache the address in the browser.", "hmm, given how careful our users are, I think it's better not to keep addresses in the browser", "Removed the cache.", ("addresses", "browser")),
    Dialogue("good idea to", "Both queues run now, so you can go back.", "good idea to keep both queues running", "Yes.", ("both queues",), does_work=False),
    Dialogue("next time", "I fixed it and pushed.", "Next time you change something, let me commit.", "Understood.", ("let me commit",), does_work=False),
    Dialogue("next time, in the past tense", "I fixed it and pushed.", "next time you made such changes, ask me before you push", "Understood.", ("ask me",), does_work=False),
    Dialogue("the goal", "Which model do you use?", "the goal is to run the small model on the laptop and to drop the rented one", "Understood.", ("small model", "laptop"), does_work=False),
    # --- nothing of this stands, either ---
    Dialogue("back to work", "The hook is fixed.", "let's go back to fixing up the folder names", "Done."),
    Dialogue("back to what you did", "The hook is fixed.", "ok, let's go back to what you were doing, commit first", "Done."),
    Dialogue("a report of an option", "You have two options:\n\n1. Switch to weekly backups\n2. Delete old snapshots", "I already switched. So from now on every week there is a backup?", "Yes.", does_work=False),
    Dialogue("one word of a list", "Open points:\n\n1. ✅ Report pages - layout and colours\n2. ⏳ Import of orders\n\nWhich one next?", "let's do the import of mails, and tell me about the layout while you work", "Done."),
    Dialogue("do not care", "I keep the log.", "we can send the whole file, dont really care about size, i guess", "Done."),
    Dialogue("why is it so", "The job runs.", "why is the job executing odd shell commands?", "It checks the disk."),
    Dialogue("do the same there", "The docs are updated.", "Can you do the same for the other repo?", "You're right, done."),
    Dialogue("add that there", "One line is enough: `tool add x`.", "Can you add that information to the wiki?", "Good idea! Added."),
    Dialogue("keep without a referent", "I squashed the three.", "can't we just keep them as they were?", "Done."),
    Dialogue("a branch to start from", "I will begin.", "dont forget to branch off main and not the current branch.", "Created the branch."),
    Dialogue("an order to us", "The page is ready.", "So I think we should update the layout of the header bar", "Done."),
    Dialogue("it should work", "I restarted it.", "ok it should work now", "Great."),
    Dialogue("an estimate", "The job is started.", "the import should take about ten minutes", "Okay.", does_work=False),
    Dialogue("a pr that should", "The pr is open.", "this pr should be merged into the release branch", "Done."),
    # --- handing over, orders about what was just shown, and words about the question ---
    Dialogue("commit rather than tweak", "The header is narrower. Ready to commit the header pass, or keep tweaking?", "commit and push", "Pushed."),
    Dialogue("go on rather than pause", "Want me to keep going with the importer, or pause here while it runs?", "keep going", "Done."),
    Dialogue("no before a noun", "Want me to sketch the export in detail, or collect more ideas?", "no dashboards or anything, just files in my opinion", "Understood.", does_work=False),
    Dialogue("fine as an answer to objections", "One rate per country. Any objections, or shall we keep it simple?", "it is fine", "Good."),
    Dialogue("which of three is refused", "Want this text, a shorter one, or to keep the old one?", "nah lets just say hello", "Done."),
    Dialogue("looks", "The chart is on the page.", "the chart should be bigger, with a better colour", "Bigger now."),
    Dialogue("looks, or something", "The exit is animated.", "the exit should be more festive or something", "Confetti added."),
    Dialogue("there should be a spot", "The map shows the vans.", "i think there should be a spot where all vans stand", "Added a depot."),
    Dialogue("instead it", "The button says Save.", "instead it should say which file is saved", "Changed."),
    Dialogue("leave a file", "The sketch is done.", "lets leave a plan.md of what we build and where we stopped", "Written."),
    Dialogue("that which was shown", "The row blinks now.", "i dont like the thing that blinks, there is always a better way", "Removed."),
    Dialogue("if later", "The sync is incremental.", "and if we pick up the sync later this would also work?", "Yes.", does_work=False),
    Dialogue("an option in a quotation", "Options:\n\n> A. Keep the token fixed\n> B. Split the token into a base and a use\n\nWhich do you prefer - A or B?", "b", "Split.", ("split the token",)),
    Dialogue("more than was offered", "Want me to also consider renaming `--rate` or aliasing it?", "I'd go with renaming --rate to --tax-rate and add a plain --rate", "Done.", ("--tax-rate", "plain --rate")),
)  # fmt: skip
