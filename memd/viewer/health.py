"""Projects, and how memd is: sizes, embedder, ledger, consolidation runs, backups, the findings of the doctor."""

from memd.viewer.html import Child, Markup, render, tag
from memd.viewer.parts import write_pairs, write_section, write_table
from memd.viewer.visit import Json, Page, Visit
from memd.viewer.wording import format_gap, format_size, plural, write_time, write_words


def show_projects(visit: Visit) -> Page:
    """Every project with what is known of it, the one used last first."""
    found = visit.call("memd/projects")["projects"]
    found.sort(key=lambda one: -(one["last_event_at"] or one["last_memory_at"] or 0))
    rows = [
        [
            tag(
                "a",
                one["name"],
                href=visit.link("/project", name=visit.name_project(one["key"]), project=None),
            ),
            tag("code", one["key"]),
            f"{one['memories']:,}",
            f"{one['sessions']:,}",
            f"{one['events']:,}",
            write_time(one["last_event_at"], visit.now) if one["last_event_at"] else "never",
            "on"
            if one["switch"]["captures"] and one["switch"]["recalls"]
            else one["switch"]["reason"],
        ]
        for one in found
    ]
    names = ("Project", "Key", "Memories", "Sessions", "Events", "Last event", "Switch")
    content = [
        tag("h1", "Projects", tabindex=-1),
        write_table(names, rows, "Projects, the one used last first"),
    ]
    return Page("Projects · memd", render(content), "/projects")


def show_project(visit: Visit) -> Page:
    """One project: why it is one, its directories, its switch."""
    name = visit.text("name")
    found = visit.call("memd/project", project=name)
    address = visit.name_project(found["key"])
    may_change = visit.may_edit and found["key"] not in {"global", "scratch"}
    links = [
        tag("a", words, href=visit.link(f"/project/{what}", name=address), class_="button")
        for words, what in (
            ("Rename…", "rename"),
            ("Merge into another…", "merge"),
            ("Switch…", "switch"),
        )
    ]
    content = [
        tag("h1", found["name"], tabindex=-1),
        tag("p", links if may_change else links[-1:], class_="actions") if visit.may_edit else None,
        write_pairs(
            [
                ("Key", tag("code", found["key"])),
                ("Why", found["reason"]),
                ("Also", _write_aliases(visit, found["aliases"])),
                ("Switch", found["switch"]["reason"]),
                ("Memories", f"{found['memories']:,}"),
                ("Sessions", f"{found['sessions']:,}"),
                ("Events", f"{found['events']:,}"),
                (
                    "Last event",
                    write_time(found["last_event_at"], visit.now)
                    if found["last_event_at"]
                    else "never",
                ),
            ]
        ),
        tag(
            "p",
            tag("a", "What is known of it", href=visit.link("/", project=address), class_="button"),
        ),
    ]
    return Page(f"{found['name'][:60]} · memd", render(content), "/projects")


def _write_aliases(visit: Visit, keys: list[str]) -> Child:
    """The projects that were merged into this one, each with the way to take that back."""
    if not keys:
        return "no other directory"
    items = [
        tag(
            "li",
            tag("code", key),
            " ",
            tag(
                "a",
                "take the merge back…",
                href=visit.link("/unmerge", key=key),
                aria_label=f"Take the merge of {key} back",
            )
            if visit.may_edit
            else None,
        )
        for key in keys
    ]
    return tag("ul", items)


def show_health(visit: Visit) -> Page:
    """Show the health of memd."""
    status = visit.call("memd/status")
    runs = visit.call("memd/consolidate/runs")["runs"]
    backups = visit.call("memd/backups")["backups"]
    is_well = status["health"] == "healthy"
    doctor = tag("div", tag("p", "Looking…", class_="quiet"), data_load="/part/doctor")
    content = [
        tag(
            "h1",
            tag("span", "", class_=f"light {'well' if is_well else 'ill'}"),
            "memd is ",
            "well" if is_well else status["health"],
            tabindex=-1,
        ),
        [tag("p", write_words(reason), class_="notice") for reason in status["reasons"]],
        write_section("Sizes", _write_sizes(visit, status)),
        write_section("Embedder", _write_embedder(status["embedder"])),
        write_section("Ledger of events", _write_ledger(status["books"])),
        write_section("Rounds of consolidation", _write_runs(visit, runs)),
        write_section("Backups", _write_backups(visit, backups)),
        write_section("Other machines", _write_sync(visit, visit.call("memd/sync"))),
        write_section("Doctor", doctor),
        write_section(
            "Clean up",
            tag(
                "p",
                tag("a", "Scrub a text or secrets…", href=visit.link("/scrub")),
                " · ",
                tag("a", "Forget by words or time…", href=visit.link("/forget")),
            ),
        )
        if visit.may_edit
        else None,
        write_section(
            "Errors",
            tag(
                "ul",
                [
                    tag(
                        "li",
                        f"{one['room']}, {format_gap(int(one['ago_s'] * 1000))} ago: {one['error']}",
                    )
                    for one in status["errors"]
                ],
            ),
        )
        if status["errors"]
        else None,
    ]
    return Page("Health · memd", render(content), "/health")


def _write_sizes(visit: Visit, status: Json) -> Markup:
    summaries, vault = status["summaries"], status["vault"]
    return write_pairs(
        [
            ("Vault", [tag("code", vault["path"]), f", {format_size(vault['bytes'])}"]),
            (
                "Memories",
                f"{summaries['count']:,}, of which {summaries['superseded']:,} are replaced, {summaries['pinned']:,} pinned",
            ),
            (
                "Waiting",
                f"{summaries['to_index']:,} to index, {summaries['to_consolidate']:,} to compare, {summaries['contradictions']:,} to judge",
            ),
            (
                "Events",
                [
                    f"{status['events']['count']:,}",
                    [", the last on ", write_time(status["events"]["last_at"], visit.now)]
                    if status["events"]["last_at"]
                    else None,
                ],
            ),
            ("Spool", plural(status["spool"]["files"], "file")),
            (
                "Daemon",
                f"memd {status['versions']['memd']}, pid {status['pid']}, up for {format_gap(int(status['uptime_s'] * 1000) or 1)}",
            ),
        ]
    )


def _write_embedder(embedder: Json) -> Markup:
    learned = embedder.get("learned")
    pairs: list[tuple[str, Child]] = [
        ("In use", tag("code", embedder["space"] or embedder["active"]))
    ]
    if learned:
        pairs.append(
            (
                "Model",
                f"{learned['model']} ({learned['provider']}): {learned['state']}, {learned['coverage']:.0%} of the texts",
            )
        )
    if embedder["why"]:
        pairs.append(("Why", write_words(embedder["why"])))
    return write_pairs(pairs)


def _write_ledger(books: Json) -> Markup:
    names = ("received", "stored", "duplicate", "filtered", "refused")
    balance = (
        "It balances: received = stored + duplicate + filtered + refused."
        if books["balanced"]
        else "It does not balance."
    )
    return render(
        [
            write_pairs([(name.capitalize(), f"{books[name]:,}") for name in names]),
            tag("p", balance, class_="quiet"),
        ]
    )


def _write_runs(visit: Visit, runs: list[Json]) -> Markup:
    if not runs:
        return tag("p", "None has changed anything yet.", class_="quiet")
    rows = [
        [
            f"r{one['id']}",
            write_time(one["at"], visit.now, with_minute=True),
            f"{one['examined']:,}",
            f"{one['superseded']:,}",
            f"{one['contradicts']:,}",
            "undone"
            if one["undone_at"]
            else tag(
                "a", "undo…", href=visit.link(f"/run/{one['id']}"), aria_label=f"Undo r{one['id']}"
            )
            if visit.may_edit
            else "",
        ]
        for one in runs
    ]
    return write_table(
        ("Round", "When", "Memories examined", "Replaced", "Contradictions", ""),
        rows,
        "Rounds of consolidation that changed something",
    )


def _write_backups(visit: Visit, backups: list[Json]) -> Markup:
    if not backups:
        return tag(
            "p", "There is none yet: ", tag("code", "memd backup"), " makes one.", class_="quiet"
        )
    rows = [
        [
            write_time(one["at"], visit.now, with_minute=True),
            format_size(one["size"]),
            tag("code", one["path"]),
            "set aside by a restore" if one["is_aside"] else "",
        ]
        for one in backups
    ]
    return write_table(("When", "Size", "File", ""), rows, "Backups")


def _write_sync(visit: Visit, sync: Json) -> Markup:
    """The places that memories are shared by, and what is wrong with them."""
    if not sync["places"]:
        words = " shares memories with your other machines."
        return tag("p", "None yet: ", tag("code", "memd sync PLACE"), words, class_="quiet")
    rows = [
        [tag("code", one["place"]), write_time(one["synced_at"], visit.now, with_minute=True)]
        for one in sync["places"]
    ]
    problem = tag("p", sync["problem"], class_="notice") if sync["problem"] else None
    return render([problem, write_table(("Place", "Last sync"), rows, "Places")])


def write_findings(visit: Visit) -> Markup:
    """Write the doctor's findings on the vault: first those that are not well."""
    findings = visit.call("memd/doctor")["findings"]
    ill = [one for one in findings if one["verdict"] != "ok"]
    well = plural(len(findings) - len(ill), "check")
    items = [
        tag(
            "li",
            tag("b", f"{one['name']}: "),
            write_words(one["words"]),
            tag("p", "→ ", write_words(one["remedy"]), class_="facts") if one["remedy"] else None,
        )
        for one in ill
    ]
    fine = [
        tag("li", tag("b", f"{one['name']}: "), one["words"])
        for one in findings
        if one["verdict"] == "ok"
    ]
    return render(
        [
            tag("ul", items, class_="findings") if items else None,
            tag(
                "details",
                tag("summary", f"{well} of the vault, {'all' if not ill else 'these'} well"),
                tag("ul", fine),
            ),
            tag(
                "p",
                tag("code", "memd doctor"),
                " also checks this machine and your clients.",
                class_="quiet",
            ),
        ]
    )
