import time


def test_a_second_daemon_on_one_vault_is_refused_by_the_pid_of_the_first(served):
    ran = served.run("serve", "--foreground")
    pid = served.run("status", "--json").json["pid"]
    assert ran.status == 1
    assert f"pid {pid}" in ran.err
    assert ran.err.count("\n") == 1


def test_serving_in_the_foreground_answers_until_it_is_interrupted(machine):
    with machine.popen("serve", stdout=-1, stderr=-1) as process:
        deadline = time.monotonic() + 60
        while machine.run("status").status == 2:
            assert time.monotonic() < deadline
            assert process.poll() is None
        process.send_signal(2)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"", b"")
