"""English verbs in their base form, as orders to a coding agent use them."""

CONDUCT = frozenset(
    """abbreviate abort accept acknowledge adapt add address adhere adjust adopt align alphabetise alphabetize amend analyse
    analyze announce annotate answer append apply approve archive ask assert assign assume attach attribute audit author
    automate avoid await back backport base batch be begin benchmark bind branch break build bump bundle call capitalise
    capitalize capture change check cherry-pick choose cite clarify clean clear clone code collapse combine comment commit
    communicate compare compile compose compress confirm connect consider construct consult contact contribute convert
    copy correct cover create credit cut debug declare decompose deduplicate deepen default defer define delete delegate
    deliver deploy deprecate describe design destroy develop diff disable discard discuss dismiss display do dockerise
    dockerize document download draft drop dry-run dump duplicate edit embed emphasise emphasize enable encapsulate encode
    encrypt end enforce ensure erase escalate escape evaluate examine exclude execute expand explain explore export
    expose express extend extract fail favor favour fetch file fill filter find finish fix flag fold follow force
    force-push forget fork format formulate freeze generalise generalize generate get give go grab group guard guess
    handle hard-code hardcode hand have hide highlight host ignore implement import improve include increase increment
    indent index infer inform inherit initialise initialize inject inline insert inspect install instrument introduce
    invalidate invent invoke involve isolate join justify keep label launch leave limit link lint list load localise
    localize lock log look lower maintain make manage map mark match measure memoise memoize mention merge migrate
    minimise minimize mirror mix mock model modify monitor mount move name namespace nest normalise normalize note notify
    number obey offer omit open optimise optimize order organise organize output override overwrite own pair parallelise
    parametrise parametrize parse paste patch perform persist phrase pick pin place plan plot pluralise point poll
    populate port post prefer prefix prepare present preserve print prioritise prioritize produce profile prompt
    propose protect prove provide prune publish pull purge push put query quit quote raise re-export re-run re-use
    read rebase rebuild recheck recommend record reduce redact refactor refer reference reformat refuse regenerate
    register reinstall reject release rely remind remove rename render renew reopen repeat rephrase replace reply report
    repeat reproduce request require rerun reset resolve respect respond restart restore restrict rethink reuse revert
    review revisit revoke rewrite roll rotate round route run sanitise sanitize save scan schedule scope search secure
    seed select send separate serve set share ship show sign simplify skip sleep snapshot solve sort source spawn
    specialise specify spell split squash stage standardise standardize start state stay step stick stop store stub
    structure submit subclass suggest summarise summarize suppress surround suffix swallow sync tag take talk target
    tell terminate test think throw tidy time timestamp touch track translate treat trigger trim trust try turn type
    unify unit-test unpin unset unsubscribe update upgrade upload use validate verify version view wait warn wire work
    wrap write yield""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""What an agent does in its work, and what code may be made to do."""

BEHAVIOUR = frozenset(
    """abort append be break call clear close collapse compress connect default display emit encode
    escape expand expose fail fall fetch filter flush get give go group handle hide highlight increment
    initialise initialize insert load lock log match output pass persist poll populate print raise redirect
    re-render refresh reject render repeat report require reset resolve respond retry return round route scroll
    select send serve set show sleep sort spawn store swallow take terminate throw time trigger trim
    wait warn work wrap yield""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""What code does: `always return null` is a rule of style only if it is said of nothing in particular."""

ALL = CONDUCT | BEHAVIOUR
