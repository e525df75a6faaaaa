def test_a_restart_is_another_daemon_with_the_same_memory(machine):
    machine.run("start")
    machine.run("remember", "the build command is make all", "--project", "global")
    before = machine.run("status", "--json").json
    ran = machine.run("restart")
    assert ran.status == 0, ran.err
    assert [line.split(",")[0] for line in ran.out.splitlines()] == ["stopped", "started"]
    after = machine.run("status", "--json").json
    assert after["pid"] != before["pid"]
    assert after["summaries"]["count"] == before["summaries"]["count"] == 1
    assert "make all" in machine.run("search", "build", "command", "--project", "all").out


def test_a_wrong_setting_leaves_the_daemon_that_runs(machine):
    machine.run("start")
    before = machine.run("status", "--json").json
    config = machine.home / "config.toml"
    for text in ("[recall]\nkk = 3\n", '[recall]\nprofile = "mine"\n'):
        config.write_text(text, encoding="utf-8")
        ran = machine.run("restart")
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.count("\n") == 1
        assert machine.run("status", "--json").json["pid"] == before["pid"]


def test_a_restart_of_nothing_is_a_start(machine):
    ran = machine.run("restart")
    assert ran.status == 0
    assert ran.out.startswith("not running\nstarted")
